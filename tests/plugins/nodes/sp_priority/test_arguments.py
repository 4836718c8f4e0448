"""SPPriority's arguments: from the configuration, from a file of their own, and the seed's own files as they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stowplan.apps import profile_loader
from stowplan.objects.errors import ConfigError
from stowplan.plugins.nodes.sp_priority.plugin import SPPriority
from stowplan.testing.builders import a_state
from stowplan.testing.plugin_questions import scored
from tests.plugins.nodes.sp_priority.replicas import a_replica, an_owner, with_priority

SEED = Path(__file__).parents[3] / "seeds" / "sp_priority"
DESIRED = "deployment.kubernetes.io/desired-replicas"


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"skip_multi_replica": "yes"}, 'skipMultiReplica: found "yes", expected true or false'),
        ({"namespace_white_list": "kube-system"}, 'namespaceWhiteList: found "kube-system", expected a list'),
        ({"excluded_namespaces": [1]}, "excludedNamespaces: found a list, expected a list of namespaces"),
        ({"disable_ann_key": ""}, 'disableAnnKey: found "", expected the key of an annotation'),
        ({"state_ann_key": 5}, "stateAnnKey: found 5, expected the key of an annotation"),
        ({"state_owner": "Pod"}, 'stateOwner: found "Pod", expected ReplicaSet or Deployment'),
        ({"stateful_sets": 1}, "statefulSets: found 1, expected true or false"),
        ({"strict": None}, "strict: found null, expected true or false"),
        ({"half_life": -1}, "halfLife: found -1, expected a number of pods, 0 (never) or more"),
        ({"half_life": True}, "halfLife: found true, expected a number of pods"),
        ({"max_nodes": 0}, "maxNodes: found 0, expected a number of nodes, 1 or more"),
        ({"max_nodes": "many"}, 'maxNodes: found "many", expected a number of nodes, 1 or more'),
    ],
)
def test_wrong_arguments(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        SPPriority(**args)
    assert problem in str(caught.value)


@pytest.mark.parametrize("spelling", ["namespaceWhiteList", "namespace_white_list", "excludedNamespaces"])
def test_every_spelling_of_the_namespaces_that_are_left_alone(spelling: str) -> None:
    args: dict[str, Any] = {spelling: ["kube-system"]}
    profile = with_priority(**args)
    pod, owner = a_replica(namespace="kube-system"), an_owner({"latest": "A"}, namespace="kube-system")
    assert scored(profile.plugin("SPPriority"), pod, a_state(nodes="AB", others=[owner])) is None


def test_the_lists_are_joined_and_nothing_is_no_namespace() -> None:
    plugin = SPPriority(namespace_white_list=["one"], excluded_namespaces=["two"])
    for namespace, scores_it in (("one", False), ("two", False), ("three", True)):
        pod, owner = a_replica(namespace=namespace), an_owner(namespace=namespace)
        assert (scored(plugin, pod, a_state(nodes="AB", others=[owner])) is not None) is scores_it
    assert (
        scored(SPPriority(namespace_white_list=None), a_replica(), a_state(nodes="A", others=[an_owner()])) is not None
    )


@pytest.mark.parametrize(
    ("args", "reads"),
    [
        ({}, {"ReplicaSet"}),
        ({"stateOwner": "Deployment"}, {"ReplicaSet", "Deployment"}),
        ({"statefulSets": True}, {"ReplicaSet", "StatefulSet"}),
    ],
)
def test_it_reads_what_it_needs(args: dict[str, Any], reads: set[str]) -> None:
    plugin = with_priority(**args).plugin("SPPriority")
    assert plugin is not None
    assert set(plugin.reads) == reads and set(plugin.reconciles) == reads | {"Pod"}


# -- the seed's own files


def test_the_seeds_configuration_is_read_as_it_stands() -> None:
    configuration, profiles = profile_loader.read_configuration(SEED / "config.yaml")
    assert configuration.client_connection.kubeconfig == "/etc/kubernetes/kube-scheduler.conf"
    profile = profiles["default-scheduler"]
    assert {enabled.name: enabled.weight for enabled in profile.scorers}["SPPriority"] == 5
    for point in ("preFilter", "preScore", "score", "reserve", "preBind", "postBind"):
        assert "SPPriority" in [enabled.name for enabled in profile.points[point]], point
    assert {enabled.name: enabled.weight for enabled in profile.scorers}["TaintToleration"] == 3


def with_file(file: Path | str, **args: Any) -> SPPriority:
    plugin = with_priority(configFile=str(file), **args).plugin("SPPriority")
    assert isinstance(plugin, SPPriority)
    return plugin


def is_for(plugin: SPPriority, namespace: str = "default", replicas: int = 1) -> bool:
    pod, owner = a_replica(namespace=namespace), an_owner(namespace=namespace, replicas=replicas)
    return scored(plugin, pod, a_state(nodes="AB", others=[owner])) is not None


def test_the_seeds_own_file_is_read_as_it_stands() -> None:
    plugin = with_file(SEED / "sppriority.yaml")
    assert is_for(plugin) and not is_for(plugin, "kube-system") and not is_for(plugin, replicas=2)
    assert SPPriority.args_file == ("configFile", "/etc/kubernetes/sppriority.yaml")


def test_arguments_win_over_the_file(tmp_path: Path) -> None:
    plugin = with_file(SEED / "sppriority.yaml", skipMultiReplica=False, namespace_white_list=["other"])
    assert is_for(plugin, replicas=2) and is_for(plugin, "kube-system") and not is_for(plugin, "other")
    file = tmp_path / "mine.yaml"
    file.write_text("namespace_white_list: [default]\nstrict: true\nstateOwner: Deployment\n", encoding="utf-8")
    assert not is_for(with_file(file)) and set(with_file(file).reads) == {"ReplicaSet", "Deployment"}


def test_an_unknown_setting_in_the_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("skipMultiReplicas: true\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        with_file(file)
    assert str(file) in str(caught.value) and "did you mean 'skipMultiReplica'?" in str(caught.value)
