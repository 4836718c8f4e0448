"""Changes of the hub that may help a placement: bindings, sets, labels and taints of clusters, scores, clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

from stowplan.diagnosis.edits import Edit, Scale
from stowplan.diagnosis.patches import pointer
from stowplan.diagnosis.placements.hub import TriedHub
from stowplan.diagnosis.placements.parts import LABEL, PredicatePart, parts
from stowplan.diagnosis.placements.proposals import not_tolerated
from stowplan.diagnosis.proposals import Proposal, proposal
from stowplan.diagnosis.remedy import CreateObject, DeleteObject, ObjectChange, Operation, PatchObject
from stowplan.framework.placement.choice import PlacementChoice
from stowplan.objects.clusters import SET_LABEL
from stowplan.objects.placements import ADD_ON
from stowplan.placement.availability import UNAVAILABLE, UNREACHABLE

API = "cluster.open-cluster-management.io"
MOST_SETS = 20
MOST_NEW_CLUSTERS = 100
RENEWED_FOR = 3600.0  # seconds
_KEPT_BY_CONTROLLERS = (UNREACHABLE, UNAVAILABLE)


class HubProposals:
    """`choice` is what the placement gets now."""

    def __init__(self, hub: TriedHub, choice: PlacementChoice) -> None:
        self._hub, self._choice, self._placement = hub, choice, hub.placement
        self._clusters = {each.name: each for each in hub.clusters()}

    def all(self) -> Iterator[Proposal]:
        yield from self._bindings()
        yield from self._members()
        yield from self._labels()
        yield from self._taints()
        yield from self._scores()
        yield from self._more_clusters()

    # -- sets and bindings

    def _bindings(self) -> Iterator[Proposal]:
        namespace, bound = self._placement.namespace, self._hub.engine.sets.bound(self._placement.namespace)
        unbound = [each.name for each in self._hub.sets() if each.name not in bound]
        wanted = self._placement.spec.cluster_sets
        for name in sorted(unbound, key=lambda each: each not in wanted)[:MOST_SETS]:
            changes: list[ObjectChange] = []
            if ("ManagedClusterSetBinding", f"{namespace}/{name}") in self._hub.objects:  # of another set: immutable
                changes.append(DeleteObject("ManagedClusterSetBinding", f"{namespace}/{name}"))
            changes.append(CreateObject(_binding(name, namespace)))
            yield proposal(
                Edit("bind-cluster-set", f"bind the set {name} to the namespace {namespace}", tuple(changes))
            )
        if not self._hub.sets() and self._clusters:
            selector = {"selectorType": "LabelSelector", "labelSelector": {}}
            document = {
                "apiVersion": f"{API}/v1beta2", "kind": "ManagedClusterSet",
                "metadata": {"name": "global"}, "spec": {"clusterSelector": selector},
            }  # fmt: skip
            text = f"create the set global of all clusters, and bind it to the namespace {namespace}"
            created = (CreateObject(document), CreateObject(_binding("global", namespace)))
            yield proposal(Edit("create-cluster-set", text, created))

    def _members(self) -> Iterator[Proposal]:
        """Clusters that join a set which the placement may use."""
        sets = self._hub.engine.sets
        for name in sets.eligible(self._placement):
            found = sets.sets[name]
            if found.problem and found.spec.cluster_selector.selector_type != "LabelSelector":
                operation = Operation("replace", "/spec/clusterSelector/selectorType", "ExclusiveClusterSetLabel")
                patch = PatchObject("ManagedClusterSet", name, (operation,))
                yield proposal(Edit("mend-cluster-set", f"mend the selectorType of the set {name}", (patch,)))
            elif found.spec.cluster_selector.selector_type != "LabelSelector":
                others = [each for each in self._clusters.values() if name not in sets.of(each)]
                others.sort(key=lambda each: SET_LABEL in each.labels)  # those that no other set loses go first
                yield self._for_each("join-cluster-set", f"let {{}} join the set {name}", {
                    each.name: (Operation("add", pointer("metadata", "labels", SET_LABEL), name),) for each in others
                })  # fmt: skip

    # -- clusters

    def _for_each(self, code: str, text: str, operations: Mapping[str, tuple[Operation, ...]]) -> Proposal:
        """The same change of several clusters. `text` has {} where their names go."""

        def make(names: tuple[Any, ...]) -> Edit:
            changes = tuple(PatchObject("ManagedCluster", name, operations[name]) for name in names)
            return Edit(code, text.format(_listed(names)), changes, size=len(names))

        return Proposal(make, tuple(operations))

    def _labels(self) -> Iterator[Proposal]:
        """Labels that make clusters match a predicate, whose claims and expressions they match already."""
        every = list(parts(self._placement))
        for index in range(len(self._placement.spec.predicates)):
            own = [part for part in every if part.predicate == index]
            labels, others = [part for part in own if part.sort == LABEL], [part for part in own if part.sort != LABEL]
            if any(part.requirement is None for part in labels):
                continue
            operations: dict[str, tuple[Operation, ...]] = {}
            for name, cluster in self._clusters.items():
                lacking = [part for part in labels if not part.matches(cluster, self._choice.question)]
                if lacking and all(part.matches(cluster, self._choice.question) for part in others):
                    operations[name] = tuple(_label(part) for part in lacking)
            if operations:
                text = " and ".join(part.text for part in labels)
                yield self._for_each("label-cluster", f"label {{}} so that {text}", operations)

    def _taints(self) -> Iterator[Proposal]:
        operations: dict[str, tuple[Operation, ...]] = {}
        for name, cluster in self._clusters.items():
            taints = not_tolerated(self._hub, cluster)
            if taints and all(taint.key not in _KEPT_BY_CONTROLLERS for taint in taints):
                places = [at for at, taint in enumerate(cluster.spec.taints) if taint in taints]
                operations[name] = tuple(Operation("remove", pointer("spec", "taints", at)) for at in reversed(places))
        if operations:
            yield self._for_each("remove-cluster-taint", "remove the taints that are not tolerated from {}", operations)

    # -- scores

    def _scores(self) -> Iterator[Proposal]:
        wanted: dict[str, dict[str, None]] = {}
        for each in self._placement.spec.prioritizer_policy.configurations:
            found = each.coordinate
            if found is not None and found.type == ADD_ON and found.add_on and found.when_missing == "exclude":
                wanted.setdefault(found.add_on.resource_name, {})[found.add_on.score_name] = None
        for part in parts(self._placement):
            for resource in part.resources:
                wanted.setdefault(resource, {})
        for resource, scores in wanted.items():
            yield from self._renewed(resource)
            if scores:
                yield from self._published(resource, tuple(scores))

    def _renewed(self, resource: str) -> Iterator[Proposal]:
        until = datetime.fromtimestamp(int(self._hub.now + RENEWED_FOR), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        known = {name: self._hub.score(name, resource) for name in self._clusters}
        expired = tuple(
            name for name, found in known.items() if found is not None and found.valid_until < self._hub.now
        )

        def make(names: tuple[Any, ...]) -> Edit:
            operation = Operation("replace", "/status/validUntil", until)
            changes = tuple(PatchObject("AddOnPlacementScore", f"{name}/{resource}", (operation,)) for name in names)
            return Edit("renew-score", f"renew the score {resource} of {_listed(names)}", changes, size=len(names))

        if expired:
            yield Proposal(make, expired)

    def _published(self, resource: str, scores: tuple[str, ...]) -> Iterator[Proposal]:
        def change(name: str) -> ObjectChange:
            found = self._hub.score(name, resource)
            values = [{"name": score, "value": 0} for score in scores if found is None or score not in found.values]
            if found is None:
                metadata = {"name": resource, "namespace": name}
                status: dict[str, Any] = {"scores": values}
                kind = {"apiVersion": f"{API}/v1alpha1", "kind": "AddOnPlacementScore"}
                return CreateObject({**kind, "metadata": metadata, "status": status})
            operations = tuple(Operation("add", "/status/scores/-", value) for value in values)
            return PatchObject("AddOnPlacementScore", found.key, operations)

        def make(names: tuple[Any, ...]) -> Edit:
            text = f"publish the score {resource}/{', '.join(scores)} of {_listed(names)}"
            return Edit("publish-score", text, tuple(change(name) for name in names), size=len(names))

        lacking = tuple(name for name in self._clusters if not self._has(name, resource, scores))
        if lacking:
            yield Proposal(make, lacking)

    def _has(self, cluster: str, resource: str, scores: tuple[str, ...]) -> bool:
        found = self._hub.score(cluster, resource)
        return found is not None and all(score in found.values for score in scores)

    # -- more clusters

    def _more_clusters(self) -> Iterator[Proposal]:
        """Clusters like one that is chosen."""
        if self._choice.names and 0 < self._choice.unscheduled <= MOST_NEW_CLUSTERS:
            like = self._choice.names[0]
            yield proposal(self._like(like, min(2 * self._choice.unscheduled, MOST_NEW_CLUSTERS)))

    def _like(self, like: str, number: int) -> Edit:
        document = deepcopy(self._hub["ManagedCluster", like])
        names = [f"{like}-new-{at}" for at in range(1, number + 1)]
        kind = {"apiVersion": f"{API}/v1", "kind": "ManagedCluster"}
        metadata = {key: value for key, value in document["metadata"].items() if key in ("labels", "annotations")}
        created = tuple(CreateObject({**kind, **document, "metadata": {**metadata, "name": name}}) for name in names)
        text = f"add {number} more cluster{'s' if number > 1 else ''} like {like}"
        scale = Scale(number, 0, -1, lambda other: self._like(like, other))
        return Edit("add-clusters", text, created, size=number, scale=scale)


def _binding(name: str, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{API}/v1beta2", "kind": "ManagedClusterSetBinding",
        "metadata": {"name": name, "namespace": namespace}, "spec": {"clusterSet": name},
    }  # fmt: skip


def _label(part: PredicatePart) -> Operation:
    """The smallest change of a cluster's labels with which it meets a requirement."""
    assert part.requirement is not None
    path = pointer("metadata", "labels", part.key)
    match part.requirement.operator:
        case "In":
            return Operation("add", path, part.requirement.values[0])
        case "Exists":
            return Operation("add", path, "true")
        case _:
            return Operation("remove", path)


def _listed(names: tuple[Any, ...], most: int = 3) -> str:
    shown = ", ".join(map(str, names[:most]))
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"cluster{'s' if len(names) > 1 else ''} {shown}{more}"
