"""Changes of a group's own pods and objects that may help it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from stowplan.diagnosis.case import IMPOSSIBLE, Case
from stowplan.diagnosis.edits import Edit, Scale
from stowplan.diagnosis.groups.trying import GroupTrying
from stowplan.diagnosis.patches import pointer
from stowplan.diagnosis.proposals import Proposal, proposal
from stowplan.diagnosis.rejections import rejections
from stowplan.diagnosis.remedies import node_labels, own_fields, terms
from stowplan.diagnosis.remedies.lower_request import amount_text, lowered, rank_of, step_of
from stowplan.diagnosis.remedies.toleration import document_of, says_how_a_node_is, shown
from stowplan.diagnosis.remedy import CreateObject, ObjectChange, Operation, PatchObject
from stowplan.diagnosis.trying import Trying
from stowplan.engine.rehearsal import Rehearsal
from stowplan.framework.group import UNKNOWN
from stowplan.objects import applications
from stowplan.objects.applications import BY_KUBERNETES, BY_LABELS, MINIMA
from stowplan.objects.errors import PluginError
from stowplan.objects.pod_groups import SigsPodGroup
from stowplan.objects.pods import Pod
from stowplan.objects.taints import HARD_EFFECTS, Taint, Toleration, tolerated
from stowplan.objects.workloads import PriorityClass
from stowplan.plugins.nodes.default.node_unschedulable import CORDONED

MOST_TAINTS = 10
MOST_SHAPES = 3  # of members that are diagnosed by themselves
MOST_NEW = 1000  # members that are created
HIGHEST_PRIORITY = 1_000_000_000  # that a user may set
MOST_LOOKS, MOST_EDITS = 50, 8  # nodes that are looked at, and changes of such members
OFFERING = (node_labels, terms, own_fields)  # what is proposed for one member, and not for the whole group above
KEPT = ("labels", "annotations", "ownerReferences", "namespace")


class MemberProposals:
    """`rehearsal` is how an attempt at the group goes now."""

    def __init__(self, trying: GroupTrying, rehearsal: Rehearsal) -> None:
        self._trying, self._now, self._name = trying, rehearsal, trying.unit.group
        self._first = trying.found.first
        self._source = applications.identity(self._first).source

    def all(self) -> Iterator[Proposal]:
        yield from self._gates()
        yield from self._tolerations()
        yield from self._missing_members()
        yield from self._requests()
        yield from self._min_resources()
        yield from self._minimum()
        yield from self._of_members()

    # -- the same change of several pods

    def _for_all(
        self, code: str, text: str, operations: Callable[[Pod], Sequence[Operation]], pods: Sequence[Pod] | None = None
    ) -> Edit:
        chosen = self._trying.waiting if pods is None else pods
        made = ((pod, tuple(operations(pod))) for pod in chosen)
        return Edit(code, text, tuple(PatchObject("Pod", pod.key, found) for pod, found in made if found))

    def _gates(self) -> Iterator[Proposal]:
        edits = [edit for pod in self._trying.waiting if (edit := own_fields.gates(pod)) is not None]

        def make(some: tuple[Any, ...]) -> Edit:
            changes = tuple(change for edit in some for change in edit.changes)
            return Edit(own_fields.GATE, f"remove the scheduling gates of {len(some)} members", changes, len(some))

        if edits:
            yield Proposal(make, tuple(edits))

    def _tolerations(self) -> Iterator[Proposal]:
        found: dict[tuple[str, str, str], Taint] = {}
        for node in self._trying.state.table.nodes:
            for taint in () if node is None else node.spec.taints:
                lacking = any(not tolerated(taint, pod.tolerations) for pod in self._trying.waiting)
                lasts = taint.key == CORDONED.key or says_how_a_node_is(taint)
                if taint.effect in HARD_EFFECTS and not lasts and lacking:
                    found.setdefault((taint.key, taint.value, taint.effect), taint)
        for taint in list(found.values())[:MOST_TAINTS]:
            operator = "Equal" if taint.value else "Exists"
            document = document_of(Toleration(taint.key, operator, taint.value, taint.effect))
            operation = Operation("add", "/spec/tolerations/-", document)
            text = f"let all members tolerate {shown(taint)}"
            yield proposal(self._for_all("tolerate", text, lambda _, operation=operation: [operation]))  # type: ignore[misc]

    # -- members that do not exist

    def _missing_members(self) -> Iterator[Proposal]:
        missing = self._now.unit.needed - len(self._now.unit.ready)
        if self._now.group.minimum < UNKNOWN and 0 < missing <= MOST_NEW:
            yield proposal(self._created(missing))

    def _created(self, number: int) -> Edit:
        like = self._now.unit.ready[0] if self._now.unit.ready else self._trying.waiting[0]
        changes = tuple(CreateObject(self._like(like, at)) for at in range(1, number + 1))
        text = f"create {number} more member{'s' if number > 1 else ''} like {like.name}"
        return Edit("create-members", text, changes, number, Scale(number, 0, -1, self._created))

    def _like(self, pod: Pod, number: int) -> dict[str, Any]:
        document = self._trying["Pod", pod.key]
        metadata = {key: value for key, value in document["metadata"].items() if key in KEPT}
        metadata["name"] = f"{pod.name}-new-{number}"
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": document["spec"]}

    # -- smaller members

    def _requests(self) -> Iterator[Proposal]:
        names = dict.fromkeys(name for pod in self._trying.waiting for name in pod.request if name != "pods")
        for name in names:
            most = max(pod.request.get(name, 0) for pod in self._trying.waiting)
            if most > 0:
                yield proposal(self._lowered(name, most))

    def _lowered(self, resource: str, by: int) -> Edit:
        """Every member requests less by so much, or nothing if it requests no more than that."""
        pods = [pod for pod in self._trying.waiting if pod.request.get(resource, 0) > 0]
        edits = [lowered(pod, resource, max(pod.request[resource] - by, 0)) for pod in pods]
        changes = tuple(change for edit in edits for change in edit.changes if _does_something(change))
        text = f"lower the {resource} request of every member by {amount_text(resource, by)}"
        scale = Scale(by, 0, -step_of(resource), lambda amount: self._lowered(resource, amount))
        most = max(pod.request[resource] for pod in pods)
        ranked_as = rank_of(resource, far=2 * by > most)
        return Edit("lower-request", text, changes, by / max(most, 1), scale, ranked_as=ranked_as)

    # -- what the group asks for

    def _minimum(self) -> Iterator[Proposal]:
        minimum = self._now.group.minimum
        if minimum >= UNKNOWN:
            yield proposal(self._group_object(len(self._trying.waiting)))
            return
        least = 2 if self._source == BY_LABELS else 1
        if minimum > least:
            yield proposal(self._with_minimum(least))

    def _with_minimum(self, number: int) -> Edit:
        minimum = self._now.group.minimum
        text = f"lower the minimum of the group from {minimum} to {number}"
        scale = Scale(number, minimum, 1, self._with_minimum)
        changes: tuple[ObjectChange, ...]
        if self._source == BY_LABELS:
            pods = list(self._trying.members.values())
            changes = self._for_all("", "", lambda pod: _minimum_labels(pod, number), pods).changes
        elif self._source == BY_KUBERNETES:
            path = "/spec/schedulingPolicy/gang/minCount"
            changes = (PatchObject("PodGroup", self._name, (Operation("replace", path, number),)),)
        else:
            changes = (PatchObject("SigsPodGroup", self._name, (Operation("add", "/spec/minMember", number),)),)
        return Edit("lower-minimum", text, changes, (minimum - number) / minimum, scale)

    def _group_object(self, minimum: int) -> Edit:
        namespace, _, name = self._name.partition("/")
        by_kubernetes = self._source == BY_KUBERNETES
        spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}} if by_kubernetes else {"minMember": minimum}
        group = "scheduling.k8s.io/v1alpha2" if by_kubernetes else "scheduling.x-k8s.io/v1alpha1"
        metadata = {"name": name, "namespace": namespace}
        document = {"apiVersion": group, "kind": "PodGroup", "metadata": metadata, "spec": spec}
        return Edit(
            "create-pod-group", f"create the PodGroup {self._name} for {minimum} pods", (CreateObject(document),)
        )

    def _min_resources(self) -> Iterator[Proposal]:
        found = self._trying.state.store.every(SigsPodGroup).get(self._name)
        for resource, amount in self._now.group.resources.items() if found is not None and self._now.lacking else ():
            yield proposal(self._with_resources(resource, 0, amount))

    def _with_resources(self, resource: str, amount: int, before: int) -> Edit:
        text = (
            f"lower minResources of {resource} from {amount_text(resource, before)} to {amount_text(resource, amount)}"
        )
        path = pointer("spec", "minResources", resource)
        patch = PatchObject("SigsPodGroup", self._name, (Operation("add", path, amount_text(resource, amount)),))
        scale = Scale(amount, before, step_of(resource), lambda other: self._with_resources(resource, other, before))
        return Edit("lower-min-resources", text, (patch,), (before - amount) / max(before, 1), scale)

    # -- conditions of members on nodes, changed for all members alike

    def _of_members(self) -> Iterator[Proposal]:
        shapes: dict[bytes, list[Pod]] = {}
        for pod in self._trying.waiting:
            shapes.setdefault(pod.shape.key, []).append(pod)
        for alike in list(shapes.values())[:MOST_SHAPES]:
            try:
                yield from self._offered(alike)
            except PluginError:
                continue

    def _offered(self, alike: list[Pod]) -> Iterator[Proposal]:
        state, profile, pod = self._trying.state, self._trying.profile, alike[0]
        trying = Trying(pod, state, self._trying.scheduler.profiles)
        case = Case(pod, profile, rejections(pod, state, profile), trying)
        own, of_nodes = list[Edit](), dict[str, list[Edit]]()
        for offer in (offer for kind in OFFERING for offer in kind.offers(case)):
            possible = (offer.steps > 0) & (offer.steps < IMPOSSIBLE)
            for at in np.flatnonzero(possible).tolist()[:MOST_LOOKS]:
                for edit in offer.edits(at):
                    known = own if offer.own else of_nodes.setdefault(edit.code, [])
                    if edit not in known:
                        known.append(edit)
        for edit in own[:MOST_EDITS]:
            yield proposal(self._generalised(edit, alike))
        for code, edits in of_nodes.items():
            yield Proposal(lambda some, code=code: _together(code, some), tuple(edits))  # type: ignore[misc]

    def _generalised(self, edit: Edit, alike: list[Pod]) -> Edit:
        operations = [each for change in edit.changes if isinstance(change, PatchObject) for each in change.operations]
        changes = tuple(PatchObject("Pod", pod.key, tuple(operations)) for pod in alike)
        whom = f" of {len(alike)} members alike" if len(alike) > 1 else f" of {alike[0].name}"
        return Edit(edit.code, f"{edit.text}{whom}", changes, edit.size)


def _together(code: str, edits: tuple[Any, ...]) -> Edit:
    changes = tuple(change for edit in edits for change in edit.changes)
    return Edit(code, "; ".join(edit.text for edit in edits), changes, len(edits))


def priorities(trying: GroupTrying, rehearsal: Rehearsal) -> Iterator[Edit]:
    """A higher priority for the group, the lowest first: of a class that exists, or of one that is created."""
    ready = rehearsal.unit.ready
    if not ready:
        return
    own = rehearsal.group.priority
    current = max(pod.priority for pod in ready) if own is None else own
    classes = sorted(trying.state.store.every(PriorityClass).values(), key=lambda each: (each.value, each.name))
    higher = [
        each for each in classes if current < each.value <= HIGHEST_PRIORITY and each.preemption_policy != "Never"
    ]
    for each in higher:
        yield _with_class(trying, own is not None, each.name, each.value, ())
    if not higher:
        for value in sorted({each + 1 for each in trying.state.priorities if current <= each < HIGHEST_PRIORITY}):
            name = f"priority-{value}"
            document = {
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": {"name": name}, "value": value,
            }  # fmt: skip
            yield _with_class(trying, own is not None, name, value, (CreateObject(document),))


def _with_class(trying: GroupTrying, of_object: bool, name: str, value: int, created: tuple[ObjectChange, ...]) -> Edit:
    operations = (
        Operation("add", "/spec/priorityClassName", name), Operation("add", "/spec/priority", value)
    )  # fmt: skip
    if of_object:
        changes: tuple[ObjectChange, ...] = (PatchObject("PodGroup", trying.unit.group, operations),)
    else:
        changes = tuple(PatchObject("Pod", pod.key, operations) for pod in trying.members.values())
    return Edit("raise-priority", f"give the group the priority class {name} ({value})", (*changes, *created), value)


def _minimum_labels(pod: Pod, number: int) -> list[Operation]:
    keys = [key for key in MINIMA if key in pod.labels]
    return [Operation("replace", pointer("metadata", "labels", key), str(number)) for key in keys]


def _does_something(change: ObjectChange) -> bool:
    return not isinstance(change, PatchObject) or bool(change.operations)
