"""Verdicts about histories by hand, one row for each kind, and for each thing that could be mistaken for another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec
import pytest

from stowplan.columns.nodes.views import Nodes
from stowplan.framework.decision import Reject
from stowplan.objects.changes import Put
from stowplan.objects.pods import Pod
from stowplan.shadow.judge import ShadowSettings
from stowplan.testing.builders import a_node, a_pod, a_profile, a_profile_of
from tests.shadow.story import NAME, Story

WEB = a_pod("web", cpu=1, labels={"app": "web"})
DB = a_pod("db", cpu=1)
BIG = a_pod("big", cpu=3)
FULL = a_pod("full", cpu=3, node="a")


@dataclass
class Case:
    """`tell` has a story happen; `kind` is the verdict about the pod `web`, and its explanation has these words."""

    name: str
    tell: Callable[[], Story]
    kind: str
    words: tuple[str, ...] = ()


def best() -> Story:
    story = Story(FULL)
    story.put(WEB)
    story.bind(WEB, "b")
    return story


def tie() -> Story:
    story = Story()
    story.put(WEB)
    story.bind(WEB, "b")
    return story


def race_with_a_binding_shown_before() -> Story:
    """`db` came to the queue later, so it was decided later: `web` did not know of it."""
    story = Story(nodes=("a", a_node("b", cpu="3900m")))
    story.put(WEB, DB)
    story.bind(DB, "a")
    story.bind(WEB, "a")
    return story


def race_with_a_binding_shown_after() -> Story:
    """`db` came to the queue first, and its binding is shown later: `web` knew of it."""
    story = Story(nodes=("a", a_node("b", cpu="3900m")))
    story.put(DB, WEB)
    story.bind(WEB, "b")
    story.bind(DB, "a")
    return story


def later_than_the_window() -> Story:
    """The binding of a pod that was certainly decided before is waited for."""
    story = Story(nodes=("a", a_node("b", cpu="3900m")))
    story.put(DB, WEB)
    story.bind(WEB, "b")
    story.verdicts += story.wait(5.0)
    story.bind(DB, "a")
    return story


def not_a_race() -> Story:
    """`db` was certainly decided before `web`, so `web` knew of it: that it was better before does not count."""
    story = Story(nodes=("a", a_node("b", cpu="3900m")))
    story.put(DB, WEB)
    story.bind(DB, "a")
    story.bind(WEB, "a")
    return story


def race_of_priorities() -> Story:
    """`db` came first with less priority: which was decided first is not certain, so both are possible."""
    web, db = a_pod("web", cpu=1, priority=5), a_pod("db", cpu=1, priority=1)
    story = Story(nodes=("a", a_node("b", cpu="3900m")))
    story.put(db, web)
    story.bind(db, "a")
    story.bind(web, "a")
    return story


def race_with_a_pod_that_left() -> Story:
    story = Story(FULL, nodes=("a", a_node("b", cpu="3900m")))
    story.put(WEB)
    story.gone(FULL)
    story.bind(WEB, "b")
    return story


def race_with_a_node() -> Story:
    story = Story(FULL)
    story.put(WEB, a_node("c", cpu=64))
    story.bind(WEB, "b")
    return story


def race_with_a_cordon_shown_later() -> Story:
    story = Story(FULL)
    story.put(WEB)
    story.bind(WEB, "a")
    story.put(a_node("b", unschedulable=True))
    return story


def a_cordon_after_it() -> Story:
    """The versions say that the node was cordoned after the pod was bound, so nobody knew of it."""
    story = Story(FULL)
    story.put(WEB)
    story.bind(WEB, "a", version="7")
    cordoned = a_node("b", unschedulable=True)
    story.put(
        msgspec.structs.replace(cordoned, metadata=msgspec.structs.replace(cordoned.metadata, resource_version="8"))
    )
    return story


def later_change_of_a_later_pod() -> Story:
    """`db` came later. That it is on its node once it has begun to end makes it no earlier."""
    story = Story(nodes=("a", a_node("b", cpu="3900m")))
    story.put(WEB, DB)
    story.bind(WEB, "b")
    story.bind(DB, "a")
    story.put(a_pod("db", cpu=1, node="a", terminating=True))
    return story


def urgent_but_too_late() -> Story:
    """`db` came after `web` was bound, so no priority can have brought it before."""
    db = a_pod("db", cpu=1, priority=1000)
    story = Story(nodes=("a", a_node("b", cpu="3900m")))
    story.put(WEB)
    story.bind(WEB, "b")
    story.put(db)
    story.bind(db, "a")
    return story


def race_with_several() -> Story:
    """Both nodes that are better now were filled by pods whose bindings are shown later."""
    story = Story(nodes=("a", "b", a_node("c", cpu="3900m")))
    one, two = a_pod("one", cpu=1), a_pod("two", cpu=1)
    story.put(one, two, WEB)
    story.bind(WEB, "c")
    story.bind(one, "a")
    story.bind(two, "b")
    return story


def too_long_ago() -> Story:
    """`web` was created when the pod was gone already."""
    story = Story(FULL, nodes=("a", a_node("b", cpu="3900m")))
    story.gone(FULL)
    story.put(WEB)
    story.bind(WEB, "b")
    return story


def a_binding_that_was_throttled() -> Story:
    """The decision may be as old as the pod, although its binding comes much later."""
    story = Story(FULL, nodes=("a", a_node("b", cpu="3900m")))
    story.put(WEB)
    story.gone(FULL)
    story.verdicts += story.wait(40.0)
    story.bind(WEB, "b")
    return story


def tried_since_then() -> Story:
    """The decision is later than the last report."""
    story = Story(FULL, a_pod("other", cpu=4, node="b"), nodes=("a", a_node("b", cpu="4100m")))
    web = a_pod("web", cpu=2)
    story.put(web)
    story.gone(a_pod("other", cpu=4, node="b"))
    story.gone(FULL)
    story.report(web)
    (report,) = story.wait(3.0)
    assert report.kind == "race" and "default/full left a" in report.explanation
    story.bind(web, "a")
    return story


def lower_score() -> Story:
    story = Story(FULL)
    story.put(WEB)
    story.bind(WEB, "a")
    return story


def no_room_there() -> Story:
    story = Story(FULL)
    web = a_pod("web", cpu=2)
    story.put(web)
    story.bind(web, "a")
    return story


def no_room_here() -> Story:
    story = Story(FULL, nodes=("a",))
    web = a_pod("web", cpu=2)
    story.put(web)
    story.bind(web, "a")
    return story


def no_such_node() -> Story:
    story = Story()
    story.put(WEB)
    story.bind(WEB, "z")
    return story


class Fails:
    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        raise ValueError("no budget")


def a_plugin_fails() -> Story:
    story = Story(profile=a_profile_of(Fails()))
    story.put(WEB)
    story.bind(WEB, "a")
    return story


def neither_has_a_node() -> Story:
    story = Story(FULL, nodes=("a",))
    web = a_pod("web", cpu=2)
    story.put(web)
    story.report(web)
    return story


def room_that_others_took() -> Story:
    """`web` was tried when `big` was assumed on the node already."""
    story = Story(nodes=("a",))
    web = a_pod("web", cpu=2)
    story.put(BIG, web)
    story.report(web)
    story.bind(BIG, "a")
    return story


def tried_again_in_time() -> Story:
    story = Story()
    story.put(WEB)
    story.report(WEB)
    story.verdicts += story.wait(3.0)
    story.bind(WEB, "b")
    return story


def pending_there() -> Story:
    story = Story()
    story.put(WEB)
    story.report(WEB)
    story.verdicts += story.wait(30.0)
    return story


def room_since_then() -> Story:
    """The report was right, and then there was room for longer than the grace period."""
    story = Story(FULL, nodes=("a",))
    web = a_pod("web", cpu=2)
    story.put(web)
    story.report(web)
    story.verdicts += story.wait(5.0)
    story.gone(FULL)
    story.verdicts += [each for each in story.wait(60.0) if each.kind != "same"]
    return story


def nominated() -> Story:
    """kube-scheduler takes the nominated node without a look at others, and so do we."""
    story = Story(a_pod("victim", cpu=4, node="a"), nodes=("a", a_node("b", cpu="500m"), a_node("c", cpu="500m")))
    story.put(WEB)
    story.report(WEB, nominated="a")
    story.gone(a_pod("victim", cpu=4, node="a"))
    story.put(a_node("c", cpu=64))
    story.verdicts += story.wait(5.0)
    story.verdicts.clear()
    story.bind(WEB, "a")
    return story


def sampled(best_of: int) -> Story:
    """A hundred and fifty nodes of which so many are better than the one that was chosen."""
    nodes = [a_node(f"good-{i}", cpu=8) for i in range(best_of)]
    nodes += [a_node(f"n-{i}", cpu=4) for i in range(150 - best_of)]
    story = Story(nodes=tuple(nodes))
    story.put(WEB)
    story.bind(WEB, "n-0")
    return story


CASES = [
    Case("the best node", best, "same"),
    Case("one of two that are best", tie, "tie", ("one of 2 best nodes",)),
    Case("a race with a binding shown before", race_with_a_binding_shown_before, "race",
         ("a is best before pod default/db came to a 1 ms earlier",)),
    Case("a race with a binding shown after", race_with_a_binding_shown_after, "race",
         ("b is best once pod default/db came to a 1 ms later",)),
    Case("a race with a binding shown long after", later_than_the_window, "race", ("5.0 s later",)),
    Case("no race: the scheduler knew that binding", not_a_race, "different", ("there and", "here")),
    Case("a race of pods of two priorities", race_of_priorities, "race", ("default/db came to a",)),
    Case("a race with a pod that left", race_with_a_pod_that_left, "race", ("pod default/full left a",)),
    Case("a race with a new node", race_with_a_node, "race", ("Node c was created",)),
    Case("a race with a cordon shown later", race_with_a_cordon_shown_later, "race",
         ("a is best once Node b was changed 1 ms later",)),
    Case("no race: the cordon was written after the binding", a_cordon_after_it, "different"),
    Case("no race: a later pod, and a change of it", later_change_of_a_later_pod, "different"),
    Case("no race: an urgent pod that came too late", urgent_but_too_late, "different"),
    Case("a race with several at once", race_with_several, "race", ("default/one came to a", "default/two came to b")),
    Case("no race: the pod is younger than that", too_long_ago, "different"),
    Case("a race of a binding that comes late", a_binding_that_was_throttled, "race", ("left a 40.0 s earlier",)),
    Case("no race: it was tried since then", tried_since_then, "different"),
    Case("a lower score", lower_score, "different", ("NodeResourcesFit",)),
    Case("no room on that node", no_room_there, "different", ("a: Insufficient cpu (NodeResourcesFit)",)),
    Case("no room on any node", no_room_here, "pending-here", ("a: Insufficient cpu (NodeResourcesFit)",)),
    Case("a node that does not exist", no_such_node, "different", ("there is no node z",)),
    Case("a plugin of ours that fails", a_plugin_fails, "pending-here", ('"Fails" failed at filter', "no budget")),
    Case("no node in either", neither_has_a_node, "same"),
    Case("room that an assumed pod took", room_that_others_took, "race",
         ("no node is feasible once pod default/big came to a",)),
    Case("pending for a moment", tried_again_in_time, "race", ("it has its node 3.0 s after that",)),
    Case("pending although there is a node", pending_there, "pending-there", ("there has been a node for it",)),
    Case("pending although there is a node since then", room_since_then, "pending-there"),
    Case("the nominated node", nominated, "same", ("it was nominated to this node",)),
    Case("a sample without the better ones", lambda: sampled(20), "sampled", ("not all feasible nodes",)),
    Case("no sample can be without the better ones", lambda: sampled(60), "different"),
]  # fmt: skip


@pytest.mark.parametrize("case", [pytest.param(each, id=each.name) for each in CASES])
def test_a_verdict(case: Case) -> None:
    story = case.tell()
    found = [each for each in (*story.verdicts, *story.ending()) if each.pod == "default/web"]
    assert found, "the decision about the pod is judged"
    kinds = [each.kind for each in found]
    assert case.kind in kinds and set(kinds) <= {case.kind, "same", "tie"}, found
    (verdict,) = (each for each in found if each.kind == case.kind)
    assert all(words in verdict.explanation for words in case.words), verdict.explanation
    assert story.shadow.counts[case.kind] >= 1


def test_scores_are_told_by_plugin() -> None:
    (verdict,) = (each for each in lower_score().ending() if each.kind == "different")
    assert (verdict.there, verdict.here, verdict.ties) == ("a", "b", 1)
    scores = {each.plugin: each for each in verdict.scores}
    fit = scores["NodeResourcesFit"]
    assert fit.there is not None and fit.there < fit.here
    weighted = [sum(each.weight * score for each in verdict.scores if (score := getattr(each, side)) is not None)
                for side in ("there", "here")]  # fmt: skip
    assert weighted == [verdict.total_there, verdict.total_here]


def test_another_configuration_is_a_difference() -> None:
    """What `tie` and `best` call right is wrong by the opposite strategy."""
    config = (
        """profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]}]"""
    )
    for node, kind in (("b", "different"), ("a", "same")):
        story = Story(a_pod("there", cpu=2, memory="4Gi", node="a"), profile=a_profile(config))
        web = a_pod("web", cpu=1, memory="2Gi")
        story.put(web)
        story.bind(web, node)
        (verdict,) = story.ending()
        assert verdict.kind == kind, verdict


def test_nothing_is_left_of_what_was_tried() -> None:
    """After all trials the columns are those of a cluster that had no trial."""
    story = race_with_several()
    story.ending()
    fresh = Story(*story.pods.values(), nodes=("a", "b", a_node("c", cpu="3900m")))
    ours, theirs = story.shadow.state, fresh.shadow.state
    assert {uid: placed.row for uid, placed in ours.pods.items()} == {
        uid: placed.row for uid, placed in theirs.pods.items()
    }
    rows = ours.table.live_rows()
    assert (ours.table.requested["cpu"][rows] == theirs.table.requested["cpu"][rows]).all()


def test_a_decision_waits_for_one_before_it() -> None:
    story = race_with_a_binding_shown_after()
    early = Story(nodes=("a", a_node("b", cpu="3900m")))
    early.put(DB, WEB)
    early.bind(WEB, "b")
    assert not early.wait(ShadowSettings().patience - 1), "db was decided before, and nobody knows where"
    (verdict,) = early.wait(2.0)
    assert verdict.kind == "different" and "pod default/db was decided before" in verdict.explanation
    assert story.wait(ShadowSettings().window + 1), "db is known, so nothing more is waited for"


def test_pods_of_others_are_not_judged_but_count() -> None:
    story = Story()
    other = a_pod("other", cpu=3, schedulerName="other")
    story.put(other)
    story.bind(other, "a")
    story.verdicts += story.wait(5.0)
    story.put(WEB)
    story.bind(WEB, "a")
    found = story.ending()
    assert [(each.pod, each.kind) for each in found] == [("default/web", "different")]
    assert found[0].scheduler == NAME


def test_decisions_that_were_not_seen_are_not_judged() -> None:
    """A list after a gap says nothing about the order of things."""
    story = Story()
    story.put(WEB)
    story.shadow.handle(Put(a_pod("web", cpu=1, labels={"app": "web"}, node="a")), story.now, judged=False)
    assert story.ending() == [] and story.shadow.missed == 1
    story.shadow.handle(Put(a_pod("static", node="a")), story.now)
    assert story.ending() == [] and story.shadow.missed == 1, "it was never without a node"
