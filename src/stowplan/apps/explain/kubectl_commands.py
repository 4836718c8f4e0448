"""Remedies as commands of kubectl that can be typed as they are.

A change of a pod is a patch of its owner's template. A pod without an owner, and the template of a Job, cannot be
changed: these are read, patched and created anew (`kubectl replace --force`). Tolerations can be added to a pod that
exists, and scheduling gates removed from it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from stowplan.apps.explain import template_patch
from stowplan.apps.explain.template_patch import completed
from stowplan.apps.explain.texts import counted
from stowplan.diagnosis.patches import found_at, pointer
from stowplan.diagnosis.patches import segments as segments_of
from stowplan.diagnosis.remedies.scale_down import DELETION_COST, NUMBER_OF
from stowplan.diagnosis.remedy import (
    AddNodes,
    CreateObject,
    DeleteObject,
    ObjectChange,
    Operation,
    PatchObject,
    Remedy,
)
from stowplan.kube.resources import RESOURCES
from stowplan.objects import yaml_text

Documents: TypeAlias = Callable[[str, str], Mapping[str, Any] | None]  # by kind and key

# How kubectl calls them. Other kinds: plural.group
NAMES = {
    "Pod": "pod",
    "Node": "node",
    "Deployment": "deployment",
    "StatefulSet": "statefulset",
    "ReplicaSet": "replicaset",
    "DaemonSet": "daemonset",
    "ReplicationController": "replicationcontroller",
    "Job": "job",
    "PodDisruptionBudget": "pdb",
    "PersistentVolumeClaim": "pvc",
}
SCALED = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")
PATCHED = ("Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "ReplicationController")  # templates can be changed
ROLLING = ("Deployment", "StatefulSet", "DaemonSet")  # running pods, too, are replaced when the template changes
STDIN = "-"
ROLLED_OUT = ("Deployment", "DaemonSet")  # their pods are replaced when the template changes
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
JOB_UIDS = ("batch.kubernetes.io/controller-uid", "controller-uid")


@dataclass(frozen=True)
class Owner:
    """What a pod is made by: the object whose template it has."""

    kind: str
    key: str


@dataclass(frozen=True)
class PodCount:
    """The pods of a workload: all, and those that have a node."""

    all: int = 0
    running: int = 0


@dataclass(frozen=True)
class Manifest:
    """The file that a pod or its owner comes from.

    alone     it has no other document
    replicas  how many pods are asked about, if that is not what the file says
    """

    file: str
    kind: str
    key: str
    document: Mapping[str, Any]
    alone: bool = True
    replicas: int | None = None

    @property
    def scaled(self) -> tuple[Operation, ...]:
        """What gives the workload as many pods as are asked about."""
        if self.replicas is None or self.kind not in NUMBER_OF:
            return ()
        return (Operation("add", pointer("spec", NUMBER_OF[self.kind]), self.replicas),)


@dataclass(frozen=True)
class PodOrigin:
    """Where a pod comes from: its owner, and the manifest if it does not exist yet."""

    owner: Owner | None = None
    manifest: Manifest | None = None


class RemedyCommands:
    """The commands for remedies of some pods. `flags` of kubectl: the context, say.

    A manifest is changed as a file, and what comes out is applied.
    """

    def __init__(
        self,
        documents: Documents,
        origins: Callable[[str], PodOrigin | None],
        flags: Sequence[str] = (),
        pods_of: Callable[[Owner], PodCount] = lambda _: PodCount(),
    ) -> None:
        """`origins`: by the key of a pod; None for a pod that remedies do not replace. `pods_of`: those of an owner."""
        self._documents, self._origins, self._pods_of = documents, origins, pods_of
        self._kubectl = shlex.join(("kubectl", *flags))

    def of(self, changes: Iterable[ObjectChange]) -> tuple[str, ...]:
        """Return the commands for these changes: first what is created, last the pods. Some changes have no command.

        Pods of one owner have one command.
        """
        ordered = sorted(changes, key=_order)
        return tuple(dict.fromkeys(command for change in ordered for command in self._of_one(change)))

    def noted(self, remedy: Remedy) -> Remedy:
        """Return the remedy with what is to be said of its commands."""
        return replace(remedy, also=tuple(dict.fromkeys((*remedy.also, *self.notes(remedy.changes)))))

    def notes(self, changes: Iterable[ObjectChange]) -> tuple[str, ...]:
        """Return what is to be said of the commands: what they do besides, and what they cannot do."""
        found = (
            note
            for each in changes
            if isinstance(each, PatchObject) and each.kind == "Pod" and _deletion_cost(each.operations) is None
            for note in self._notes_of_pod(each)
        )
        return tuple(dict.fromkeys(found))

    def _notes_of_pod(self, change: PatchObject) -> Iterable[str]:
        origin = self._origins(change.key)
        operations = tuple(each for each in change.operations if not _removes_gate(each))
        if origin is None or not operations:
            return
        pod = self._documents("Pod", change.key) or {}
        if origin.manifest is not None:
            yield from self._notes_of_file(operations, pod, origin.manifest)
            running = self._pods_of(Owner(origin.manifest.kind, origin.manifest.key)).running
            if origin.manifest.kind in ROLLING and running:
                yield f"rolls out the {counted(running, 'pod')} that it has already"
        elif origin.owner is not None:
            yield from self._notes_of_owner(operations, pod, origin.owner)

    def _notes_of_owner(self, operations: tuple[Operation, ...], pod: Mapping[str, Any], owner: Owner) -> Iterable[str]:
        if owner.kind not in (*PATCHED, "Job"):
            yield f"its owner is {'an' if owner.kind[:1] in 'AEIOU' else 'a'} {owner.kind}: change its template"
            return
        if template_patch.for_template(operations, pod, self._documents(owner.kind, owner.key)) is None:
            yield f"the template of its {owner.kind} has no such part: whatever adds it to pods must change"
            return
        if owner.kind in ROLLING and (found := self._pods_of(owner)).running:
            yield f"rolls out all {counted(found.all, 'pod')}, {found.running} of them running"

    def _notes_of_file(
        self, operations: tuple[Operation, ...], pod: Mapping[str, Any], manifest: Manifest
    ) -> Iterable[str]:
        found = _in_file(operations, pod, manifest)
        if found is None or (manifest.alone and manifest.file != STDIN):
            return
        about = f"{NAMES.get(manifest.kind, manifest.kind)} {manifest.key.rpartition('/')[2]}"
        if manifest.kind not in PATCHED:
            patch = json.dumps(as_json(found), default=str)
            yield f"change {about} in {_file_name(manifest)} by this JSON patch: {patch}"
        elif manifest.file == STDIN:
            yield f"apply {_file_name(manifest)} before {about} is patched"

    def _of_one(self, change: ObjectChange) -> Iterable[str]:
        match change:
            case PatchObject("Pod", key, operations) if (cost := _deletion_cost(operations)) is not None:
                return (f"{self._about(key)} annotate --overwrite pod {_name(key)} {DELETION_COST}={cost}",)
            case PatchObject("Pod", key, operations) if (origin := self._origins(key)) is not None:
                return self._of_pod(key, operations, origin)
            case PatchObject("Node", key, operations):
                return self._of_node(key, operations)
            case PatchObject(kind, key, (Operation(_, "/spec/replicas", number),)) if kind in SCALED:
                return (f"{self._about(key)} scale {NAMES[kind]} {_name(key)} --replicas={number}",)
            case PatchObject(kind, key, operations):
                return (self._patch(kind, key, completed(operations, self._documents(kind, key))),)
            case CreateObject(document):
                return (self._create(document),)
            case DeleteObject(kind, key):
                return (f"{self._about(key)} delete {kubectl_name(kind)} {_name(key)}",)
            case AddNodes():
                return ()

    # -- the pod itself

    def _of_pod(self, key: str, operations: tuple[Operation, ...], origin: PodOrigin) -> Iterable[str]:
        pod = self._documents("Pod", key) or {}
        value = next((each.value for each in operations if each.path == "/spec/priority"), None)
        if value is not None and all(each.path != "/spec/priorityClassName" for each in operations):
            name = f"priority-{value}"  # a pod cannot name a number
            yield f"{self._kubectl} create priorityclass {name} --value={value}"
            operations = (*operations, Operation("add", "/spec/priorityClassName", name))
        operations = template_patch.without_computed(operations)
        if origin.manifest is not None:
            yield from self._of_file(key, operations, pod, origin.manifest)
            return
        gates = tuple(each for each in operations if _removes_gate(each))
        others = tuple(each for each in operations if not _removes_gate(each))
        if gates:
            yield self._patch("Pod", key, gates)
        if others and origin.owner is None:
            yield self._of_bare_pod(key, others, pod)
        elif others and origin.owner is not None:
            yield from self._of_owner(key, others, pod, origin.owner)

    def _of_owner(
        self, key: str, operations: tuple[Operation, ...], pod: Mapping[str, Any], owner: Owner
    ) -> Iterable[str]:
        document = self._documents(owner.kind, owner.key)
        found = template_patch.for_template(operations, pod, document)
        if found is None or owner.kind not in (*PATCHED, "Job"):
            return
        if owner.kind == "Job":
            yield self._replace(owner.kind, owner.key, (*_freed_from_uid(document), *found))
            return
        yield self._patch(owner.kind, owner.key, found)
        if owner.kind not in ROLLED_OUT:
            yield f"{self._about(key)} delete pod {_name(key)}"

    def _of_file(
        self, key: str, operations: tuple[Operation, ...], pod: Mapping[str, Any], manifest: Manifest
    ) -> Iterable[str]:
        found = _in_file(operations, pod, manifest)
        if found is None:
            return
        if manifest.file == STDIN or not manifest.alone:
            if manifest.kind in PATCHED:  # others cannot be changed when they exist
                if manifest.file != STDIN:
                    yield f"{self._applying(manifest)} apply -f {shlex.quote(manifest.file)}"
                yield self._patch(manifest.kind, manifest.key, found)
            return
        patch = f"{self._kubectl} patch --local -f {shlex.quote(manifest.file)} --type=json -p={_quoted(found)} -o yaml"
        yield f"{patch} | {self._about(key)} apply -f -"

    def _applying(self, manifest: Manifest) -> str:
        """Return kubectl with the namespace, if the document does not name it."""
        named = found_at(manifest.document, ("metadata", "namespace"))
        return self._kubectl if named else self._about(manifest.key)

    def _of_bare_pod(self, key: str, operations: tuple[Operation, ...], pod: Mapping[str, Any]) -> str:
        none_yet = found_at(pod, ("spec", "tolerations")) is None
        additions = ("/spec/tolerations/-", "/spec/tolerations") if none_yet else ("/spec/tolerations/-",)
        if all(each.op == "add" and each.path in additions for each in operations):
            return self._patch("Pod", key, completed(operations, pod or None))
        computed = [
            Operation("remove", path)
            for path in template_patch.COMPUTED
            if found_at(pod, segments_of(path)) is not None
        ]
        return self._replace("Pod", key, (*computed, *completed(operations, pod or None)))

    def _replace(self, kind: str, key: str, operations: Iterable[Operation]) -> str:
        about = self._about(key)
        patch = f"{self._kubectl} patch --local -f - --type=json -p={_quoted(operations)} -o json"
        return f"{about} get {kubectl_name(kind)} {_name(key)} -o json | {patch} | {self._kubectl} replace --force -f -"

    def _patch(self, kind: str, key: str, operations: Iterable[Operation]) -> str:
        return f"{self._about(key)} patch {kubectl_name(kind)} {_name(key)} --type=json -p={_quoted(operations)}"

    # -- other objects

    def _of_node(self, name: str, operations: tuple[Operation, ...]) -> Iterable[str]:
        node = self._documents("Node", name) or {}
        uncordons = any(each.path == "/spec/unschedulable" for each in operations)
        left = []
        for each in operations:
            segments = segments_of(each.path)
            if each.path == "/spec/unschedulable" and not each.value:
                yield f"{self._kubectl} uncordon {shlex.quote(name)}"
            elif segments[:2] == ["spec", "taints"] and (taints := _taints_removed(each, node)) is not None:
                for key, effect in taints:
                    if not (uncordons and key == UNSCHEDULABLE):  # a controller removes that one
                        yield f"{self._kubectl} taint nodes {shlex.quote(name)} {shlex.quote(f'{key}:{effect}-')}"
            elif segments[:2] == ["metadata", "labels"] and len(segments) == 3:
                yield self._label(name, segments[2], each, node)
            elif segments == ["metadata", "labels"] and each.op != "remove":
                # A dump without the node's labels: a patch of all of them would remove those of the real node.
                for key, value in each.value.items():
                    yield self._label(name, key, Operation("add", each.path, value), node)
            else:
                left.append(each)
        if left:
            yield self._patch("Node", name, completed(left, node or None))

    def _label(self, node: str, key: str, operation: Operation, document: Mapping[str, Any]) -> str:
        if operation.op == "remove":
            return f"{self._kubectl} label node {shlex.quote(node)} {shlex.quote(f'{key}-')}"
        overwrite = " --overwrite" if found_at(document, ("metadata", "labels", key)) is not None else ""
        return f"{self._kubectl} label node {shlex.quote(node)} {shlex.quote(f'{key}={operation.value}')}{overwrite}"

    def _create(self, document: Mapping[str, Any]) -> str:
        text = yaml_text.dump(document).rstrip()
        return f"{self._kubectl} create -f - <<'EOF'\n{text}\nEOF"

    def _about(self, key: str) -> str:
        """Return kubectl with the namespace of an object."""
        namespace, slash, _ = key.partition("/")
        return f"{self._kubectl} -n {shlex.quote(namespace)}" if slash else self._kubectl


def _in_file(
    operations: tuple[Operation, ...], pod: Mapping[str, Any], manifest: Manifest
) -> tuple[Operation, ...] | None:
    """Return the operations on a pod as operations on the document of a manifest; None if it lacks the part."""
    operations = template_patch.without_computed(operations)
    if manifest.kind == "Pod":
        return completed(operations, manifest.document)
    found = template_patch.for_template(operations, pod, manifest.document)
    return None if found is None else (*found, *manifest.scaled)


def _file_name(manifest: Manifest) -> str:
    return "the manifest" if manifest.file == STDIN else manifest.file


def kubectl_name(kind: str) -> str:
    """Return the name of a kind for kubectl."""
    if kind in NAMES:
        return NAMES[kind]
    resource = RESOURCES.get(kind)
    if resource is None:
        return kind.lower()
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def as_json(operations: Iterable[Operation]) -> list[dict[str, Any]]:
    """Return a JSON patch."""
    return [
        {"op": each.op, "path": each.path} | ({} if each.op == "remove" else {"value": each.value})
        for each in operations
    ]


def _quoted(operations: Iterable[Operation]) -> str:
    return shlex.quote(json.dumps(as_json(operations), separators=(",", ":"), ensure_ascii=False, default=str))


def _name(key: str) -> str:
    return shlex.quote(key.rpartition("/")[2])


def _order(change: ObjectChange) -> int:
    if isinstance(change, CreateObject):
        return 0
    if isinstance(change, PatchObject) and _deletion_cost(change.operations) is not None:
        return 0  # before the workload is scaled down
    return 2 if isinstance(change, PatchObject) and change.kind == "Pod" else 1


def _deletion_cost(operations: Sequence[Operation]) -> str | None:
    """Return the deletion cost that a patch gives a pod; None if it does something else."""
    if len(operations) != 1 or segments_of(operations[0].path)[:2] != ["metadata", "annotations"]:
        return None
    value = operations[0].value
    found = value.get(DELETION_COST) if isinstance(value, Mapping) else value
    is_cost = segments_of(operations[0].path)[2:] in ([], [DELETION_COST])
    return str(found) if is_cost and found is not None else None


def _removes_gate(operation: Operation) -> bool:
    return operation.op == "remove" and operation.path.startswith("/spec/schedulingGates")


def _taints_removed(operation: Operation, node: Mapping[str, Any]) -> list[tuple[str, str]] | None:
    """Return the key and effect of each taint that an operation removes; None if it does something else."""
    before = found_at(node, ("spec", "taints")) or ()
    segments = segments_of(operation.path)[2:]
    if operation.op == "remove":
        gone = list(before) if not segments else [found_at(before, segments)]
    elif operation.op == "replace" and not segments and all(each in before for each in operation.value):
        gone = [each for each in before if each not in operation.value]
    else:
        return None
    found = [(each["key"], each["effect"]) for each in gone if isinstance(each, Mapping)]
    return found if len(found) == len(gone) and found else None


def _freed_from_uid(job: Mapping[str, Any] | None) -> list[Operation]:
    """Remove what the API server derived from the uid of a Job: the new one gets another."""
    labels = ("spec", "template", "metadata", "labels")
    paths = [("spec", "selector"), *((*labels, each) for each in JOB_UIDS)]
    if job is not None and found_at(job, ("spec", "manualSelector")):
        return []
    return [Operation("remove", pointer(*path)) for path in paths if job is None or found_at(job, path) is not None]
