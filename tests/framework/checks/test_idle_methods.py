"""A method that never acted was not tried: `check_plugin` says so, and what to do."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from stowplan.framework.decision import SKIP, Avoid, Reject, RejectPod
from stowplan.framework.group import Group
from stowplan.framework.interfaces import Gauge, QueueEntry, Wake
from stowplan.framework.per_node import per_node
from stowplan.framework.plugin_checks import check_plugin, examine
from stowplan.objects.actions import Patch
from stowplan.testing.builders import a_pod

GIVE = "give pods that it acts on with --pods FILE (or pods= in check_plugin)"


def line_of(plugin: type, text: str) -> int:
    """Return the number of the line of a class that has this text."""
    lines, first = inspect.getsourcelines(plugin)
    return next(first + number for number, line in enumerate(lines) if text in line)


class Heavy:
    """The plugin of the issue: it acts on one label alone."""

    def filter(self, pod: Any, nodes: Any) -> Any:
        if pod.labels.get("heavy") == "true":
            1 / 0  # noqa: B018
            yield Reject(nodes.label("size") != "large", "node(s) are small")


def test_the_label_that_a_plugin_acts_on_is_found_by_itself() -> None:
    fails, idle = check_plugin(Heavy())
    at = f"test_idle_methods.py:{line_of(Heavy, '1 / 0')}"
    assert fails.startswith(f"Heavy: filter fails: ZeroDivisionError: division by zero ({at}) (pod ")
    assert idle.startswith("Heavy: filter never rejected a node: none of the 80 drawn pods made it, and it failed for ")
    line = line_of(Heavy, "yield")
    assert idle.endswith(f"; line {line} never ran; mend that first, then {GIVE}")


class Hidden:
    """Nothing in its code tells which label it acts on."""

    def filter(self, pod: Any, nodes: Any) -> Any:
        if pod.labels.get("".join(("hea", "vy"))) == "!true!"[1:5]:
            1 / 0  # noqa: B018
            yield Reject(nodes.label("size") != "large", "node(s) are small")


def test_a_plugin_that_acts_on_no_drawn_pod() -> None:
    line = line_of(Hidden, "1 / 0")
    assert check_plugin(Hidden()) == [
        "Hidden: filter never rejected a node: none of the 80 drawn pods made it; "
        f"lines {line} to {line + 1} never ran; {GIVE}"
    ]
    problems = check_plugin(Hidden(), pods=[a_pod(labels={"heavy": "true"})])
    assert problems[0].startswith("Hidden: filter fails: ZeroDivisionError")
    assert check_plugin(Hidden(), idle={"filter": "another test has its pods"}) == []


class Sized:
    """A plugin as people write them: it passes without any help."""

    def __init__(self, label: str = "size-class", least: int = 500) -> None:
        self.label, self.least = label, least

    def filter(self, pod: Any, nodes: Any) -> Any:
        if pod.labels.get(self.label) == "large" and pod.priority >= self.least:
            yield Reject(nodes.label(self.label) != "large", "node(s) are small")


def test_words_of_arguments_and_numbers_are_used() -> None:
    assert check_plugin(Sized()) == []
    assert check_plugin(Sized("example.com/other", 70_000)) == []


class Idle:
    """Every method, and none does anything."""

    reads = ("Deployment",)

    def pre_enqueue(self, pod: Any, cluster: Any) -> Any: ...
    def sort_key(self, pod: Any, queued_at: float) -> Any:
        return 0

    def cluster_key(self, entry: QueueEntry, cluster: Any) -> Any:
        return 0

    def group_of(self, pod: Any, cluster: Any) -> Any: ...
    def pre_filter(self, pod: Any, cluster: Any) -> Any: ...
    def filter(self, pod: Any, nodes: Any) -> Any:
        return ()

    def avoid(self, pod: Any, cluster: Any) -> Any: ...
    def score(self, pod: Any, nodes: Any) -> Any:
        return 7

    def reserve(self, pod: Any, node_name: str, cluster: Any) -> Any: ...
    def unreserve(self, pod: Any, node_name: str, cluster: Any) -> Any: ...
    def permit(self, pod: Any, node_name: str, cluster: Any) -> Any: ...
    def pre_bind(self, pod: Any, node_name: str, cluster: Any) -> Any: ...
    def gauges(self, cluster: Any) -> Any:
        return ()

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Node", ("Add",), hint="node_helps")
        yield Wake("Deployment", ("Add",), hint="owner_helps")

    def node_helps(self, pod: Any, old: Any, new: Any) -> bool:
        return False

    def owner_helps(self, pod: Any, old: Any, new: Any) -> bool:
        return True


def test_every_method_that_has_no_say_is_named() -> None:
    said = [problem.partition(": ")[2] for problem in check_plugin(Idle)]
    assert [each.partition(":")[0] for each in said] == [
        "pre_enqueue never gated a pod",
        "sort_key gave all pods the same key",
        "cluster_key gave all pods the same key",
        "group_of never put a pod into a group",
        "pre_filter always answered None",
        "filter never rejected a node",
        "avoid never named nodes to avoid",
        "score never preferred one node to another",
        "permit never rejected a pod, nor made one wait",
        "pre_bind never gave an action",
        "gauges never gave a metric",
        "node_helps never said that an event helps a pod",
        "owner_helps was never called",
    ]
    assert said[-1].endswith("no Deployment was drawn; give some with --objects FILE (or objects= in check_plugin)")


class Busy(Idle):
    """Every method acts now and then."""

    def pre_enqueue(self, pod: Any, cluster: Any) -> Any:
        return RejectPod("not yet") if "app" in pod.labels else None

    def sort_key(self, pod: Any, queued_at: float) -> Any:
        return -pod.priority

    def cluster_key(self, entry: QueueEntry, cluster: Any) -> Any:
        return entry.queued_at

    def group_of(self, pod: Any, cluster: Any) -> Any:
        return Group(pod.labels["app"], 2) if "app" in pod.labels else None

    def pre_filter(self, pod: Any, cluster: Any) -> Any:
        return SKIP if pod.priority == 0 else None

    def filter(self, pod: Any, nodes: Any) -> Any:
        yield Reject(nodes.label("disk") == "a", "node(s) had that disk")

    def avoid(self, pod: Any, cluster: Any) -> Any:
        return Avoid(frozenset(cluster.nodes.names[:1]), "the first")

    def score(self, pod: Any, nodes: Any) -> Any:
        return np.where(nodes.label("zone") == "a", 100, 0)

    def permit(self, pod: Any, node_name: str, cluster: Any) -> Any:
        return 5.0 if "app" in pod.labels else None

    def pre_bind(self, pod: Any, node_name: str, cluster: Any) -> Any:
        yield Patch(kind="Pod", key=pod.key, body={"metadata": {"labels": {"seen": "yes"}}})

    def gauges(self, cluster: Any) -> Any:
        yield Gauge("nodes", "Nodes.", len(cluster.nodes))

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Node", ("Add", "Update"), hint="node_helps")
        yield Wake("AssignedPod", ("Delete",), hint="pod_helps")

    def node_helps(self, pod: Any, old: Any, new: Any) -> bool:
        return new.labels.get("disk") != "a" and (old is None or old.name == new.name)

    def pod_helps(self, pod: Any, old: Any, new: Any) -> bool:
        return new is None and "app" in old.labels


def test_a_plugin_whose_methods_all_act() -> None:
    found = examine(Busy)
    assert found.problems == []
    assert found.acted["filter"][1] > 0 and found.acted["pod_helps"][1] > 0
    assert found.not_called == []


# -- answers of the other methods that are wrong


class WrongGate(Busy):
    def pre_enqueue(self, pod: Any, cluster: Any) -> Any:
        return "not yet"


class WrongAvoid(Busy):
    def avoid(self, pod: Any, cluster: Any) -> Any:
        return {"n0"}


class WrongGroup(Busy):
    def group_of(self, pod: Any, cluster: Any) -> Any:
        return "group"


class GroupByNode(Busy):
    def group_of(self, pod: Any, cluster: Any) -> Any:
        return None if pod.node_name else Group("g", 2)


class MixedKeys(Busy):
    def sort_key(self, pod: Any, queued_at: float) -> Any:
        return 1 if queued_at > 1 else "one"


class WrongPermit(Busy):
    def permit(self, pod: Any, node_name: str, cluster: Any) -> Any:
        return True


class WrongActions(Busy):
    def pre_bind(self, pod: Any, node_name: str, cluster: Any) -> Any:
        return ["bind it"]


class WrongGauge(Busy):
    def gauges(self, cluster: Any) -> Any:
        return [("nodes", 5)]


class TextGauge(Busy):
    def gauges(self, cluster: Any) -> Any:
        return [Gauge("nodes", "Nodes.", "five")]  # type: ignore[arg-type]


class WrongHint(Busy):
    def node_helps(self, pod: Any, old: Any, new: Any) -> Any:
        return "yes"


class HintThatRaises(Busy):
    def pod_helps(self, pod: Any, old: Any, new: Any) -> bool:
        return bool(new.labels)


class WrongWake(Busy):
    def wakes_on(self) -> Any:
        return ["Node"]


class Keeps(Busy):
    """Its `unreserve` forgets to undo."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def pre_filter(self, pod: Any, cluster: Any) -> Any: ...
    def reserve(self, pod: Any, node_name: str, cluster: Any) -> None:
        self.taken.add(node_name)

    def filter(self, pod: Any, nodes: Any) -> Any:
        yield Reject(np.isin(nodes.names, list(self.taken)), "taken")


class KeepsQuietly(Keeps):
    pre_filter = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        pytest.param(WrongGate, "pre_enqueue gives a wrong answer: 'not yet'; RejectPod or None was due", id="gate"),
        pytest.param(WrongAvoid, "avoid gives a wrong answer: {'n0'}; Avoid or None was due", id="avoid"),
        pytest.param(WrongGroup, "group_of gives a wrong answer: 'group'; Group or None was due", id="group"),
        pytest.param(GroupByNode, "group_of depends on the pod's node: ", id="a group that changes"),
        pytest.param(MixedKeys, "sort_key gives keys that cannot be compared: TypeError", id="keys"),
        pytest.param(WrongPermit, "permit gives a wrong answer: True; None, RejectPod or seconds", id="permit"),
        pytest.param(WrongActions, "pre_bind gives a wrong answer: 'bind it'; only actions", id="actions"),
        pytest.param(WrongGauge, "gauges gives a wrong answer: ('nodes', 5); only Gauge is right", id="gauges"),
        pytest.param(TextGauge, "the gauge nodes is no number: 'five'", id="a gauge that is a text"),
        pytest.param(WrongHint, "node_helps gives a wrong answer: 'yes'; True or False was due", id="hint"),
        pytest.param(HintThatRaises, "pod_helps fails: AttributeError: ", id="a hint that raises"),
        pytest.param(WrongWake, "wakes_on gives 'Node', and only Wake is right", id="wakes"),
        pytest.param(KeepsQuietly, "unreserve does not undo reserve: filter gives another answer: ", id="unreserve"),
    ],
)
def test_wrong_answers_of_the_other_methods(plugin: Any, problem: str) -> None:
    found = check_plugin(plugin, clusters=8)
    assert any(each.startswith(f"{plugin.__name__}: {problem}") for each in found), found


def test_a_reason_for_a_method_that_is_not_there() -> None:
    assert "Hidden: idle names 'permit', and there is no such method" in check_plugin(Hidden(), idle={"permit": "?"})


@per_node
class OneByOne:
    def fits(self, pod: Any, node: Any) -> Any:
        if pod.name == "no pod has this name":
            return "no"
        return None


def test_the_lines_of_a_per_node_policy() -> None:
    (problem,) = check_plugin(OneByOne())
    line = line_of(OneByOne, 'return "no"')
    assert f"; line {line} never ran; give pods" in problem


class Branches:
    def filter(self, pod: Any, nodes: Any) -> Any:
        yield Reject(nodes.label("disk") == "a", "node(s) had that disk")
        if pod.name == "nobody":
            yield Reject(nodes.label("disk") == "b", "node(s) had the other disk")


def test_a_branch_that_never_ran_is_told_though_the_method_had_a_say() -> None:
    found = examine(Branches())
    assert found.problems == [] and found.never_ran == {"filter": [line_of(Branches, "other disk")]}


def test_whoever_debugs_keeps_the_tracer() -> None:
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        mine = sys.gettrace()
        found = examine(Branches(), clusters=2)
        assert sys.gettrace() is mine and found.never_ran == {}
    finally:
        sys.settrace(before)
