"""The index of distribution policies gives the same answer as a look at each policy, whatever changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.columns.nodes.views import Cluster
from stowplan.objects import kinds
from stowplan.objects.changes import Gone, Put
from stowplan.objects.distribution_policies import ClusterDistributionPolicy, DistributionPolicy, PodSelector
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.leaf_nodes.distribution import LeafNodeDistribution
from stowplan.plugins.nodes.leaf_nodes.policy_index import AnyPolicy, NamespaceIndex, Place, PolicyIndex, Selected
from stowplan.testing.builders import a_node, a_pod, a_state

APPS = st.sampled_from(["x", "y"])
SELECTORS = st.one_of(
    st.builds(lambda name: {"name": name}, st.sampled_from(["web-1", "web-2"])),
    st.builds(lambda prefix: {"namePrefix": prefix}, st.sampled_from(["w", "web-", "db"])),
    st.builds(lambda app: {"labelSelector": {"matchLabels": {"app": app}}}, APPS),
    st.builds(lambda app: {"name": "web-1", "namePrefix": "d", "labelSelector": {"matchLabels": {"app": app}}}, APPS),
    st.just({"labelSelector": {}}),
    st.just({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}),
)
TERMS = st.sampled_from(["one", "two", "none"])


def a_policy(namespace: str, name: str, chosen: Iterable[tuple[dict[str, Any], str]]) -> AnyPolicy:
    spec = {
        "resourceSelectors": [{"policyName": term, **selector} for selector, term in chosen],
        "policyTerms": [{"name": "one", "nodeType": "host"}, {"name": "two", "nodeType": "leaf"}],
    }
    kind: type[AnyPolicy] = DistributionPolicy if namespace else ClusterDistributionPolicy
    return kinds.convert(kind, {"metadata": {"name": name, "namespace": namespace}, "spec": spec})


POLICIES = st.builds(
    a_policy,
    st.sampled_from(["default", "other", ""]),
    st.sampled_from("pqr"),
    st.lists(st.tuples(SELECTORS, TERMS), max_size=4),
)
PODS = [
    a_pod(name, namespace=namespace, labels=labels)
    for name in ("web-1", "web-3", "db")
    for namespace in ("default", "other", "third")
    for labels in ({}, {"app": "x"}, {"app": "y"})
]


def by_a_look_at_each(pod: Pod, cluster: Cluster) -> Selected | None:
    own = [each for each in cluster.every(DistributionPolicy).values() if each.namespace == pod.namespace]
    return _best(pod, own) or _best(pod, cluster.every(ClusterDistributionPolicy).values())


def _best(pod: Pod, policies: Iterable[AnyPolicy]) -> Selected | None:
    best, found = 0, None
    for policy in sorted(policies, key=lambda each: each.name):
        rank, name = max(
            ((each.rank(pod), number, each.policy_name) for number, each in enumerate(policy.spec.resource_selectors)),
            default=(0, 0, ""),
        )[::2]
        if rank > best:
            best = rank
            found = next((Selected(policy, term) for term in policy.spec.policy_terms if term.name == name), None)
    return found


@given(st.lists(st.tuples(st.booleans(), POLICIES), min_size=1, max_size=8))
def test_the_same_as_a_look_at_each_policy(history: list[tuple[bool, AnyPolicy]]) -> None:
    state, index = a_state(nodes=[a_node("a")]), PolicyIndex()
    for stays, policy in history:
        state.apply(Put(policy) if stays else Gone(policy))
        cluster = Cluster(state)
        for pod in PODS:
            assert index.find(pod, cluster) == by_a_look_at_each(pod, cluster)


def test_a_decision_looks_at_few_selectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many policies there are; and after a change, at those of its namespace alone."""
    added: list[str] = []
    add = NamespaceIndex._add

    def noted(index: NamespaceIndex, selector: PodSelector, place: Place) -> None:
        added.append(selector.name)
        add(index, selector, place)

    monkeypatch.setattr(NamespaceIndex, "_add", noted)
    monkeypatch.setattr(PodSelector, "rank", lambda *_: pytest.fail("each selector was looked at"))
    policies = [
        a_policy(namespace, f"p{number}", [({"name": f"{namespace}-{number}"}, "one")])
        for namespace in ("default", "other")
        for number in range(20)
    ]
    state, plugin = a_state(nodes=[a_node("a")], others=policies), LeafNodeDistribution()
    for _ in range(3):
        cluster = Cluster(state)
        plugin.pre_filter(a_pod("p"), cluster)
        list(plugin.filter(a_pod("p"), cluster.nodes))
    assert len(added) == 40
    state.apply(Put(a_policy("other", "p3", [({"name": "changed"}, "one")])))
    plugin.pre_filter(a_pod("p"), Cluster(state))
    assert len(added) == 60 and "changed" in added
