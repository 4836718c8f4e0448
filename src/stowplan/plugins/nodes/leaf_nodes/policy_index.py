"""Finds the distribution policy of a pod without a look at each policy: by the pod's name, and by its labels.

A DistributionPolicy of the pod's namespace comes before a ClusterDistributionPolicy. In each of the two, the name of a
pod comes before the beginning of a name, and that before labels. Of equals, the policy whose name comes first wins, and
in a policy the selector that is listed last. After a change, only the namespaces with other policies are indexed anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.object_store import ObjectStore
from stowplan.columns.pods.selector_index import SelectorIndex
from stowplan.objects import selectors
from stowplan.objects.distribution_policies import (
    ClusterDistributionPolicy,
    DistributionPolicy,
    PodSelector,
    PolicyTerm,
)
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import Selector

AnyPolicy: TypeAlias = DistributionPolicy | ClusterDistributionPolicy
EVERYWHERE = ""  # in place of a namespace: the policies of the whole cluster


class Selected(NamedTuple):
    """The policy that selects a pod, and the term that it names."""

    policy: AnyPolicy
    term: PolicyTerm

    def __str__(self) -> str:
        return f"{type(self.policy).__name__} {self.policy.name}"


class Place(NamedTuple):
    """A selector's place among those that select a pod equally well; the lowest one wins."""

    policy: int
    before_the_end: int  # selectors that follow it in the policy


class NamespaceIndex:
    """The policies of a namespace, or those of the whole cluster."""

    def __init__(self, policies: Iterable[AnyPolicy]) -> None:
        self.policies = sorted(policies, key=lambda each: each.name)
        self._by_name: dict[str, Place] = {}
        self._by_prefix: dict[str, Place] = {}
        self._by_labels: SelectorIndex[Place] = SelectorIndex()
        self._compiled: dict[Place, Selector] = {}
        for position, policy in enumerate(self.policies):
            for left, each in enumerate(reversed(policy.spec.resource_selectors)):
                self._add(each, Place(position, left))
        self._lengths = sorted({len(prefix) for prefix in self._by_prefix})

    def _add(self, selector: PodSelector, place: Place) -> None:
        """Add a selector. Those with a lower place were added before."""
        if selector.name:
            self._by_name.setdefault(selector.name, place)
        if selector.name_prefix:
            self._by_prefix.setdefault(selector.name_prefix, place)
        compiled = selectors.compile_selector(selector.label_selector)
        if compiled:
            self._by_labels.add(compiled, place)
            self._compiled[place] = compiled

    def find(self, pod: Pod) -> Selected | None:
        place = self._place(pod)
        if place is None:
            return None
        policy = self.policies[place.policy]
        wanted = policy.spec.resource_selectors[-1 - place.before_the_end].policy_name
        return next((Selected(policy, term) for term in policy.spec.policy_terms if term.name == wanted), None)

    def _place(self, pod: Pod) -> Place | None:
        name = pod.name
        if (found := self._by_name.get(name)) is not None:
            return found
        prefixes = (self._by_prefix.get(name[:length]) for length in self._lengths if length <= len(name))
        if (found := min((place for place in prefixes if place is not None), default=None)) is not None:
            return found
        places = self._by_labels.candidates(pod.labels)
        return min((each for each in places if selectors.matches(self._compiled[each], pod.labels)), default=None)


class PolicyIndex:
    def __init__(self) -> None:
        self._seen: tuple[ObjectStore, int, int] | None = None
        self._namespaces: dict[str, NamespaceIndex] = {}

    def find(self, pod: Pod, cluster: Cluster) -> Selected | None:
        """Return the policy of a pod; None if there is none, or the policy has no term of the name that it says."""
        self._refresh(cluster)
        for namespace in (pod.namespace, EVERYWHERE):
            index = self._namespaces.get(namespace)
            found = None if index is None else index.find(pod)
            if found is not None:
                return found
        return None

    def _refresh(self, cluster: Cluster) -> None:
        store = cluster.state.store
        now = store, store.version_of(DistributionPolicy), store.version_of(ClusterDistributionPolicy)
        if self._seen is not None and self._seen[0] is store and self._seen[1:] == now[1:]:
            return
        found: defaultdict[str, list[AnyPolicy]] = defaultdict(list)
        for each in cluster.every(DistributionPolicy).values():
            found[each.namespace].append(each)
        found[EVERYWHERE].extend(cluster.every(ClusterDistributionPolicy).values())
        self._namespaces = {name: self._indexed(name, policies) for name, policies in found.items()}
        self._seen = now

    def _indexed(self, namespace: str, policies: list[AnyPolicy]) -> NamespaceIndex:
        known = self._namespaces.get(namespace)
        same = known is not None and set(map(id, known.policies)) == set(map(id, policies))
        return known if known is not None and same else NamespaceIndex(policies)
