"""FlavourClusterWide at work: bursts, pods that come and go, and configurations as the seed has them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.apps import profile_loader
from stowplan.framework.profile import Profile
from stowplan.objects.actions import Bind
from stowplan.objects.changes import Result
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.flavour_cluster_wide import FlavourClusterWide
from stowplan.testing.builders import a_node, a_pod, a_profile_of
from stowplan.testing.world import World

SEEDS = Path(__file__).parents[2] / "seeds" / "flavour_cluster_wide"
NAME = "secondary-scheduler"
WORKER = {"node-role.kubernetes.io/worker": ""}
BOTH = """
profiles:
  - schedulerName: secondary-scheduler
    plugins:
      score: {enabled: [{name: FlavourClusterWide}]}
      postBind: {enabled: [{name: FlavourClusterWide}]}
"""
MULTI = """
profiles:
  - schedulerName: secondary-scheduler
    plugins: {multiPoint: {enabled: [{name: FlavourClusterWide}]}}
"""
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def of_seed(file: str) -> str:
    text: str = yaml.safe_load((SEEDS / file).read_text(encoding="utf-8"))["data"]["config.yaml"]
    return text


def profiles(text: str) -> dict[str, Profile]:
    return profile_loader.configured(text)[1]


def workers(number: int) -> list[Node]:
    return [a_node(f"n{each}", cpu=64, memory="64Gi", labels=WORKER) for each in range(number)]


def flavoured(name: str, flavour: str = "gold", key: str = "flavour", **more: Any) -> Pod:
    return a_pod(name, labels={key: flavour}, cpu="250m", memory="64Mi", schedulerName=NAME, **more)


def burst(number: int, flavour: str = "gold") -> list[Pod]:
    """Of ten namespaces in turn."""
    return [flavoured(f"{flavour}-{each}", flavour, namespace=f"team-{each % 10}") for each in range(number)]


def per_node(world: World, flavour: str = "gold", key: str = "flavour") -> dict[str, int]:
    return dict(Counter(pod.node_name for pod in world.pods() if pod.labels.get(key) == flavour and pod.node_name))


CONFIGURATIONS = [
    pytest.param(of_seed("config.yaml"), id="the seed's own, at score"),
    pytest.param(HEAD + BOTH, id="at score and postBind"),
    pytest.param(HEAD + MULTI, id="at multiPoint"),
]


@pytest.mark.parametrize("text", CONFIGURATIONS)
def test_three_flavours_end_at_one_of_each_per_worker(text: str) -> None:
    world = World(nodes=workers(3), profiles=profiles(text))
    for number in range(3):
        world.submit(*(flavoured(f"{each}-{number}", each, namespace=each) for each in ("gold", "silver", "bronze")))
    world.run()
    for flavour in ("gold", "silver", "bronze"):
        assert per_node(world, flavour) == {"n0": 1, "n1": 1, "n2": 1}


@pytest.mark.parametrize("text", CONFIGURATIONS)
def test_a_burst_of_300_over_30_nodes_ends_at_10_per_node(text: str) -> None:
    world = World(nodes=workers(30), profiles=profiles(text), checks=False)
    world.submit(*burst(300))
    world.run()
    assert per_node(world) == {f"n{each}": 10 for each in range(30)}
    assert world.now == 0.0, "no time went by"


def test_the_same_while_the_watch_tells_nothing() -> None:
    """All are decided before the API server's watch shows a single one bound."""
    world = World(nodes=workers(30), profiles=profiles(of_seed("config.yaml")), checks=False)
    world.submit(*burst(300))
    world.pause_watch()
    world.run()
    world.resume_watch()
    assert per_node(world) == {f"n{each}": 10 for each in range(30)}


def test_the_same_while_no_binding_is_answered() -> None:
    world = World(nodes=workers(6), profiles=profiles(of_seed("config.yaml")))
    world.answers = lambda action: None if isinstance(action, Bind) else Result(action.id)
    world.submit(*burst(60))
    world.run()
    asked = Counter(action.node_name for action in world.actions if isinstance(action, Bind))
    assert asked == {f"n{each}": 10 for each in range(6)}


def test_a_binding_that_failed_is_not_counted() -> None:
    world = World(nodes=workers(2), profiles=alone())
    refused: list[str] = []

    def first_fails(action: Any) -> Result:
        if isinstance(action, Bind) and not refused:
            refused.append(action.node_name)
            return Result(action.id, 500, "not now")
        return Result(action.id)

    world.answers = first_fails
    world.submit(flavoured("p"))
    world.advance(60)
    world.submit(flavoured("q"))
    world.advance(1)
    assert refused and per_node(world) == {"n0": 1, "n1": 1}


def alone(**args: Any) -> dict[str, Profile]:
    """The policy without any other score."""
    others = [
        bound.plugin for bound in profile_loader.defaults()[1]["default-scheduler"].all if not scores(bound.plugin)
    ]
    made = a_profile_of(*others, FlavourClusterWide(**args))
    return {NAME: Profile(NAME, made.points)}


def scores(plugin: Any) -> bool:
    return hasattr(plugin, "score")


def test_a_pod_takes_the_place_of_one_that_leaves_or_ends() -> None:
    world = World(nodes=workers(3), profiles=alone())
    world.submit(*burst(3))
    world.run()
    left = world.pod("gold-1", "team-1")
    world.submit(a_pod("gold-1", namespace="team-1", labels=left.labels, node=left.node_name, terminating=True))
    world.submit(flavoured("instead"))
    world.run()
    assert world.bindings["instead"] == left.node_name, "though it has not gone yet"
    ended = world.pod("gold-2", "team-2")
    world.submit(a_pod("gold-2", namespace="team-2", labels=ended.labels, node=ended.node_name, phase="Succeeded"))
    world.submit(flavoured("next"))
    world.run()
    assert world.bindings["next"] == ended.node_name


def test_a_new_worker_is_filled_up_first() -> None:
    world = World(nodes=workers(2), profiles=alone())
    world.submit(*burst(6))
    world.run()
    world.submit(a_node("new", cpu=64, labels=WORKER))
    world.submit(*(flavoured(f"later-{each}") for each in range(3)))
    world.run()
    assert per_node(world) == {"n0": 3, "n1": 3, "new": 3}


def test_pods_of_other_schedulers_count_and_a_restart_forgets_nothing() -> None:
    world = World(nodes=workers(2), profiles=alone())
    world.submit(a_pod("foreign", labels={"flavour": "gold"}, node="n0", schedulerName="default-scheduler"))
    world.submit(flavoured("p"))
    world.run()
    assert world.bindings["p"] == "n1"
    world.submit(a_pod("foreign-too", labels={"flavour": "gold"}, node="n1"))
    world.submit(a_pod("foreign-three", labels={"flavour": "gold"}, node="n1"))
    world.restart()
    world.submit(flavoured("q"))
    world.run()
    assert world.bindings["q"] == "n0"


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        pytest.param("min", None, id="min: the cordoned one has the fewest, so the others are all the same"),
        pytest.param("feasibleMin", {"n0": 4, "n1": 4}, id="feasibleMin: in balance"),
        pytest.param("proportional", {"n0": 4, "n1": 4}, id="proportional: in balance"),
    ],
)
def test_a_worker_that_takes_no_pods(strategy: str, expected: dict[str, int] | None) -> None:
    cordoned = a_node("n2", labels=WORKER, unschedulable=True)
    world = World(nodes=[*workers(2), cordoned], profiles=alone(strategy=strategy))
    world.submit(*(flavoured(f"p{each}") for each in range(8)))
    world.run()
    if expected is None:
        assert {total for _, _, total in world.explain("p7").trail.scored()} == {0}
    else:
        assert per_node(world) == expected


# -- the seed's configurations


def test_the_seeds_configurations_are_read_as_they_stand() -> None:
    for file, label in (("config.yaml", "flavour"), ("config-custom-label.yaml", "tier")):
        configuration, found = profile_loader.configured(of_seed(file))
        assert configuration.notes == ()
        assert configuration.percentage_of_nodes_to_score == 100
        assert not configuration.enable_profiling and not configuration.enable_contention_profiling
        election = configuration.leader_election
        assert (election.leader_elect, election.resource_lock) == (True, "leases")
        assert election.resource_namespace == "openshift-secondary-scheduler-operator"
        times = election.lease_duration, election.renew_deadline, election.retry_period
        assert tuple(map(int, times)) == (137, 107, 26)
        assert list(found) == [NAME]
        plugin = found[NAME].plugin("FlavourClusterWide")
        assert plugin is not None and plugin._label == label


def test_defaults_that_the_seed_lists_again_run_once_and_first_with_weight_1() -> None:
    scores = [(each.name, each.weight) for each in profiles(of_seed("config.yaml"))[NAME].scorers]
    assert scores[:2] == [("NodeResourcesFit", 1), ("NodeResourcesBalancedAllocation", 1)]
    assert scores[-1] == ("FlavourClusterWide", 1)
    assert ("TaintToleration", 3) in scores and ("PodTopologySpread", 2) in scores
    assert len(scores) == len(dict(scores))


def test_another_label_as_in_the_seed() -> None:
    world = World(nodes=workers(3), profiles=profiles(of_seed("config-custom-label.yaml")))
    world.submit(*(flavoured(f"p{each}", "front", key="tier") for each in range(6)))
    world.run()
    assert per_node(world, "front", key="tier") == {"n0": 2, "n1": 2, "n2": 2}
