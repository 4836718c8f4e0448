"""What changes do to a cluster: settled before, compared after."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.apps import profile_loader
from stowplan.objects.errors import StowplanError
from stowplan.simulation.administered_cluster import AGAIN, AppliedManifest, Drain
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.pod_effects import GoneBy
from stowplan.simulation.settings import QUIET
from stowplan.simulation.stream_events import NodeCordon, StreamEvent
from stowplan.simulation.what_if import WhatIfRun, loaded, settings_for
from tests.apps.what_if.shop import CLUSTER, Document, node, pod

DRAIN = Drain(at=0, nodes=("n1",))


def a_what_if(changes: list[StreamEvent], *documents: Document, seed: int = 0) -> WhatIfRun:
    problems = InputProblems()
    settings = settings_for(changes, 10, seed)
    cluster = loaded([("cluster", each) for each in documents], settings, problems)
    problems.check()
    found = WhatIfRun(cluster, changes, profile_loader.defaults()[1], settings)
    found.run()
    return found


def told(found: WhatIfRun) -> Any:
    effects = found.effects
    return (
        [(each.before.name, each.to) for each in effects.moved],
        [effects.replaced[each.uid].before.name for each in effects.waiting],
        [(each.pod.name, each.gone_by) for each in effects.gone],
    )


def test_a_drain_moves_evicts_and_loses() -> None:
    found = a_what_if([DRAIN], *CLUSTER)
    assert told(found) == ([("web-7f9c-a", "n2")], ["web-7f9c-b"], [("bare", GoneBy.EVICTED)])
    assert [each.pod.name for each in found.effects.lost] == ["bare"]
    before, after = found.fills
    assert before["n1"].part("cpu") == 0.625 and after["n1"].requested["pods"] == 1


def test_the_same_seed_gives_the_same_answer_and_another_may_not() -> None:
    nodes = [node(f"n{number}") for number in range(2, 9)]
    answers = [str(told(a_what_if([DRAIN], *CLUSTER, *nodes[1:], seed=seed))) for seed in (1, 1, 2, 3, 4)]
    assert answers[0] == answers[1] and len(set(answers)) > 1


def test_a_change_of_nothing_has_no_effect() -> None:
    found = a_what_if([NodeCordon(at=0, node="n2")], *CLUSTER, pod("new", "250m"))
    effects = found.effects
    assert (effects.moved, effects.waiting, effects.started, effects.gone, effects.pending) == ((), (), (), (), 0)


def test_a_blocked_drain_ends() -> None:
    budget: Document = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
    }  # fmt: skip
    found = a_what_if([DRAIN], *CLUSTER, budget)
    assert sorted(found.cluster.blocked) == ["shop/web-7f9c-a", "shop/web-7f9c-b"]
    assert {each.node for each in found.cluster.blocked.values()} == {"n1"}
    assert found.simulation.steps < 2 * QUIET / AGAIN


def test_a_change_that_the_server_refuses_ends_it() -> None:
    wrong = AppliedManifest(at=0, file="x.yaml", place="Pod X", document={**pod("X"), "apiVersion": "v1"})
    with pytest.raises(StowplanError, match=r"^x\.yaml: Pod X: .*Invalid value"):
        a_what_if([wrong], *CLUSTER)


def test_pods_of_jobs_run_on_and_cron_jobs_are_left_out() -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "shop"},
           "spec": {"template": template}}  # fmt: skip
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c", "namespace": "shop"},
            "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job["spec"]}}}  # fmt: skip
    found = a_what_if([NodeCordon(at=0, node="n2")], *CLUSTER, job, cron)
    pods = found.cluster.api.store.all("pods", "shop")
    of_jobs = [each.document for each in pods if each.document["metadata"]["name"].startswith("j-")]
    assert [each["status"]["phase"] for each in of_jobs] == ["Running"]
    assert found.cluster.api.store.all("cronjobs.batch") == []


def test_what_is_being_deleted_is_gone() -> None:
    """Also what is in a namespace that is being deleted: its controllers make no more pods there."""
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "old", **going}}
    old = pod("other", "3", node="n2")
    old["metadata"] |= going
    there = [{**each, "metadata": {**each["metadata"], "namespace": "old"}} for each in CLUSTER if "namespace" in
             each["metadata"]]  # fmt: skip
    kept = [each for each in CLUSTER if each["metadata"]["name"] != "other"]
    found = a_what_if([DRAIN], *kept, namespace, old, *there)
    assert told(found)[:2] == ([("web-7f9c-a", "n2"), ("web-7f9c-b", "n2")], [])
