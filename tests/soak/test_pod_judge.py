"""The judge of the storm must be able to find fault: else its silence says nothing."""

from __future__ import annotations

from tests.soak.pod_judge import Metadata, PodJudge, SeenPod, Spec
from tests.soak.workload import GROUP_LABEL, Workload

OFFERED = {"a": (1000, 2), "b": (1000, 110)}


def pod(name: str, node: str = "", *, cpu: str = "100m", group: str = "") -> SeenPod:
    labels = {GROUP_LABEL: group} if group else {}
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    return SeenPod(Metadata(name, f"uid-{name}", "1", labels), Spec(node, containers))


def test_pods_that_come_are_bound_and_go() -> None:
    judge = PodJudge(OFFERED)
    for number in range(10):
        judge.seen(pod(f"p{number}"), 1.0)
        assert judge.unbound() == [f"p{number}"]
        judge.seen(pod(f"p{number}", "a"), 3.0)
        assert judge.is_bound(f"p{number}") and judge.counts() == (1, 1)
        judge.gone(f"uid-p{number}")
    assert (judge.problems, judge.bound, judge.waits) == ([], 10, [2.0] * 10)


def test_a_node_with_too_much() -> None:
    judge = PodJudge(OFFERED)
    judge.listed([pod("p", "b", cpu="600m"), pod("q", "b", cpu="600m")], 1.0)
    assert judge.problems == ["node b has 2 pods with 1200m cpu"]
    judge.listed([pod(f"r{number}", "a") for number in range(3)], 1.0)
    assert judge.problems[1:] == ["node a has 3 pods with 300m cpu"]


def test_a_pod_that_changes_its_node() -> None:
    judge = PodJudge(OFFERED)
    judge.seen(pod("p", "a"), 1.0)
    judge.seen(pod("p", "b"), 2.0)
    assert judge.problems == ["pod p went from a to b"]


def test_a_group_that_is_bound_in_part() -> None:
    judge = PodJudge(OFFERED)
    judge.listed([pod("p", "a", group="g"), pod("q", group="g"), pod("r", group="h")], 1.0)
    assert judge.partial_groups() == ["g"]
    judge.seen(pod("q", "a", group="g"), 1.0)
    assert judge.partial_groups() == [] and judge.unbound() == ["r"]


def test_the_same_seed_gives_the_same_pods() -> None:
    first, second, other = Workload(1), Workload(1), Workload(2)
    drawn = [first.batch() for _ in range(200)]
    assert drawn == [second.batch() for _ in range(200)] != [other.batch() for _ in range(200)]
    names = [each["metadata"]["name"] for batch in drawn for each in batch.pods]
    assert len(names) == len({*names}) and {len(batch.pods) for batch in drawn} > {1, 2}
