"""A team's pods rotate over the nodes: with both modes, after a failed binding, and after a restart."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from stowplan.objects.changes import Result
from stowplan.objects.errors import ConfigError
from stowplan.testing import EmbeddedCluster, World, a_pod, a_profile, a_profile_of, check_plugin
from tests.examples.loading import EXAMPLES, loaded

FOLDER = EXAMPLES / "03-arguments-and-state"
Rotation = loaded(FOLDER / "rotation.py").Rotation


def a_member(name: str) -> Any:
    return a_pod(name, labels={"team": "web"})


@pytest.mark.parametrize(("mode", "quiet"), [("prefer", "filter"), ("require", "score")])
def test_it_keeps_the_contract(mode: str, quiet: str) -> None:
    idle = {quiet: "it has nothing to do in this mode"}
    assert check_plugin(Rotation(mode=mode), pods=[a_member("next")], idle=idle) == []


@pytest.mark.parametrize("mode", ["prefer", "require"])
def test_the_pods_of_a_team_rotate(mode: str) -> None:
    world = World(nodes=["a", "b"], profiles={"default-scheduler": a_profile_of(Rotation(mode=mode))})
    for number in range(6):
        world.submit(a_member(f"p{number}"))
        world.run()
    assert all(world.bindings[f"p{one}"] != world.bindings[f"p{another}"] for one, another in pairwise(range(6)))


def test_a_binding_that_fails_is_undone() -> None:
    plugin = Rotation(mode="require")
    world = World(nodes=["a"], profiles={"default-scheduler": a_profile_of(plugin)})
    world.answers = lambda action: Result(action.id, 409 if type(action).__name__ == "Bind" else 200)
    world.submit(a_member("p"))
    world.run()
    assert world.bindings == {}
    world.answers = world.succeed
    world.advance(60)
    assert world.bindings == {"p": "a"}, "the only node is not its own last one"


def test_a_pod_without_another_node_waits_for_one() -> None:
    world = World(nodes=["a"], profiles={"rotating": a_profile(FOLDER / "config.yaml")})
    for name in ("first", "second"):
        world.submit(a_pod(name, labels={"team": "web"}, schedulerName="rotating"))
    world.run()
    assert list(world.bindings) == ["first"] and "the team's last pod" in world.explain("second").message


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ConfigError, match="label is empty"):
        Rotation(label="")
    text = (FOLDER / "config.yaml").read_text().replace("mode: require", "mode: sometimes")
    with EmbeddedCluster(nodes=0) as cluster, pytest.raises(ConfigError, match="sometimes"):
        (cluster.kubeconfig.parent / "rotation.py").write_text((FOLDER / "rotation.py").read_text())
        cluster.start_scheduler(config=text)


def test_a_restart_finds_the_last_node_in_the_cluster() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"schedulerName": "rotating"}}
    pod["spec"] |= {"containers": [{"name": "main", "image": "nginx"}]}  # type: ignore[operator]
    with EmbeddedCluster(nodes=2) as cluster:
        nodes = []
        for name in ("first", "second", "third"):
            cluster.start_scheduler(config=FOLDER / "config.yaml")
            cluster.apply(pod | {"metadata": {"name": name, "labels": {"team": "web"}}})
            nodes.append(cluster.wait_until(lambda name=name: cluster.node_of(f"default/{name}")))  # type: ignore[misc]
            cluster.stop_scheduler()
        assert nodes[0] != nodes[1] != nodes[2]
