"""An anonymised dump has no name of the original, and the engine decides the same with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from stowplan.framework.profile import Profile
from stowplan.framework.random_clusters import Dice
from stowplan.objects import kinds
from stowplan.objects.pods import Pod
from stowplan.simulation.dump.cluster_dump import ClusterDump
from stowplan.simulation.dump.contents import CONTENTS, PLAIN_ONLY
from stowplan.simulation.dump.treatments import is_amount
from stowplan.simulation.dump.words import OWN_WORDS
from stowplan.testing import World
from stowplan.testing.builders import a_profile
from tests.hypothesis_settings import at_most

KEY = b"a key of the test"
VOWELS = "aeiouAEIOUé"  # substitutes have none
WORDS = st.text(f"{VOWELS}39-._/:,@ ", min_size=5, max_size=90)
APIS = {"SigsPodGroup": ("PodGroup", "scheduling.x-k8s.io/v1alpha1"), "Lease": ("Lease", "coordination.k8s.io/v1")}


def filled(kind: inspect.Type, word: Callable[[], str]) -> Any:
    """Return a value of a type in which every text, and every key, is a word."""
    match kind:
        case inspect.StructType():
            return {field.encode_name: filled(field.type, word) for field in kind.fields}
        case inspect.VarTupleType() | inspect.ListType():
            return [filled(kind.item_type, word), filled(kind.item_type, word)]
        case inspect.DictType():
            return {word(): filled(kind.value_type, word)}
        case inspect.UnionType():
            return filled(next(each for each in kind.types if not isinstance(each, inspect.NoneType)), word)
        case inspect.IntType() | inspect.BoolType():
            return 1
    return word()


def an_object(kind: str, word: Callable[[], str]) -> dict[str, Any]:
    name, version = APIS.get(kind, (kind, "v1"))
    found = filled(inspect.type_info(CONTENTS[kind]), word)
    assert isinstance(found, dict)
    if kind == "Lease":
        found["metadata"]["namespace"] = "kube-system"
    return {"apiVersion": version, "kind": name, **found}


@pytest.mark.parametrize("kind", sorted(set(CONTENTS) - {*PLAIN_ONLY}))
def test_every_text_of_every_kind_is_replaced(kind: str) -> None:
    numbers = iter(range(10_000))
    document = an_object(kind, lambda: f"secret{next(numbers)}-of/shop")
    dump = ClusterDump([document], keep=[])
    (found,) = dump.anonymised(KEY)
    assert next(numbers) > 5 and set(found) >= {"metadata"}
    assert "secret" not in json.dumps(found) and "shop" not in json.dumps(found)


@at_most(40)
@given(st.data(), st.sampled_from(sorted(set(CONTENTS) - {*PLAIN_ONLY})))
def test_no_word_of_the_original_is_left(data: st.DataObject, kind: str) -> None:
    given_words = data.draw(st.lists(WORDS, min_size=1, max_size=12))
    words = [each for each in given_words if set(each) & set(VOWELS) and not is_amount(each)]
    if not words:
        return
    drawn = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    document = an_object(kind, lambda: words[int(drawn.integers(len(words)))])
    text = json.dumps(ClusterDump([document]).anonymised(KEY), ensure_ascii=False)
    assert [word for word in words if word in text and word not in OWN_WORDS] == []


# -- decisions

POLICIES = """
profiles:
  - plugins:
      queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
      multiPoint: {enabled: [{name: Coscheduling}, {name: ResourceReservation}, {name: WorkloadPolicy, weight: 10}]}
      score: {enabled: [{name: FlavourClusterWide, weight: 6}]}
"""


@cache
def profile(name: str) -> Profile:
    return a_profile(POLICIES if name == "policies" else None)


def a_drawn_cluster(seed: int) -> list[dict[str, Any]]:
    """Return a cluster as documents, with pending pods that have labels and annotations of all policies."""
    dice = Dice(np.random.default_rng(seed))
    nodes = [{"kind": "Node", **dice.node(f"worker-{number}")} for number in range(6)]
    for number, node in enumerate(nodes):
        node["metadata"]["labels"] |= {"node-role.kubernetes.io/worker": "", "generation": str(5 * number)}
    pods = [{"kind": "Pod", **dice.pod(f"p{at}", node_name=dice.one_of("worker-0", "worker-3"))} for at in range(4)]
    for at in range(24):
        pod = {"kind": "Pod", **dice.pod(f"wait-{at}")}
        pod["metadata"]["labels"] |= dice.one_of(*MARKS)
        pod["metadata"]["creationTimestamp"] = f"2026-01-01T00:{at:02}:00Z"  # what is of one age is ordered by name
        pod["metadata"]["annotations"] = dice.one_of({}, {"spark-executor-cpu": "500m", "spark-executor-count": "2"})
        if dice.number(0, 3) == 0:
            term = {"matchExpressions": [{"key": "generation", "operator": "Gt", "values": ["12"]}]}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
            pod["spec"]["affinity"]["nodeAffinity"] = required
        pods.append(pod)
    rule: dict[str, Any] = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "x"}},
        "allocationType": "Required",
    }
    rule["allocationPolicy"] = [{"name": "a", "replicas": 2}, {"name": "b", "replicas": "30%"}][: dice.number(1, 2)]
    policy = {"kind": "WorkloadPolicy", "metadata": {"name": "mostly", "namespace": "default"}, "spec": rule}
    group = {"kind": "PodGroup", "metadata": {"name": "train", "namespace": "default"}, "spec": {"minMember": 3}}
    versions = {"WorkloadPolicy": "kosmos.io/v1alpha1", "PodGroup": "scheduling.x-k8s.io/v1alpha1"}
    return [{"apiVersion": versions.get(each["kind"], "v1"), **each} for each in (policy, group, *nodes, *pods)]


MARKS: tuple[dict[str, str], ...] = (
    {},
    {"flavour": "gold"},
    {"workload-policy/kosmos.io": "mostly", "app": "x"},
    {"scheduling.x-k8s.io/pod-group": "train"},
    {f"pod-group.scheduling.sigs.k8s.io/{name}": value for name, value in (("name", "mpi"), ("min-available", "2"))},
    {"spark-role": "driver", "spark-app-id": "count"},
    {"spark-role": "executor", "spark-app-id": "count"},
)


def decided(documents: list[dict[str, Any]], name: str) -> tuple[list[int | None], list[str]]:
    """Return for each pod the number of its node, and for each action its type."""
    objects = [kinds.convert(kinds.KINDS[kinds.name_of(each)], each) for each in documents]
    world = World(profiles={"default-scheduler": profile(name)}, checks=False)
    world.submit(*(each for each in objects if not isinstance(each, Pod)))
    for each in objects:
        if isinstance(each, Pod):
            world.submit(each)
            world.advance(0.5)  # groups of the same age are ordered by their names
    world.advance(30)
    numbers = {each.name: at for at, each in enumerate(objects)}
    nodes = {each.key: numbers.get(each.node_name) for each in world.pods()}
    pods = [each for each in objects if isinstance(each, Pod)]
    return [nodes.get(each.key) for each in pods], [type(each).__name__ for each in world.actions]


@pytest.mark.parametrize("name", ["default", "policies"])
@pytest.mark.parametrize("seed", range(4))
def test_the_engine_decides_the_same(seed: int, name: str) -> None:
    dump = ClusterDump(a_drawn_cluster(seed))
    assert decided(dump.plain(), name) == decided(dump.anonymised(KEY), name)


def test_the_drawn_clusters_have_pods_with_and_without_a_node() -> None:
    found = [node for seed in range(3) for node in decided(a_drawn_cluster(seed), "policies")[0]]
    assert 10 < sum(node is None for node in found) < len(found) - 10
