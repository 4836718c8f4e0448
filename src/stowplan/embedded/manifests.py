"""Loads manifests and dumps: files or folders of YAML or JSON. Kinds that are not served are counted and skipped.

Fields that the API server sets (uids, versions) are dropped. The state that a cluster needs to continue is kept: the
node and phase of a pod, the status of a node, when a CronJob ran last and which of its jobs are active, owner
references by name. Owners get new uids, so they are loaded before their dependents. Roles and bindings replace those
that a cluster starts with.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from stowplan.embedded.api.request_options import RequestOptions
from stowplan.embedded.api.verbs import Api
from stowplan.embedded.authorization.role_kinds import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
)
from stowplan.embedded.controllers.revisions import REVISION_LABEL, revision
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError
from stowplan.embedded.loaded_pods import LoadedPods
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.schema import typed
from stowplan.objects import bounded_yaml, garbage_collection, kinds
from stowplan.objects.bounded_yaml import YamlLimits
from stowplan.objects.errors import ConfigError

ALIASED = 100_000  # values that aliases may add to a file
DEPTH = 200
_SUFFIXES = (".yaml", ".yml", ".json")
_LOAD_ORDER = (
    "CustomResourceDefinition", "Namespace", "PriorityClass", "StorageClass", "Node", "PersistentVolume",
    "ServiceAccount", "PersistentVolumeClaim", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet",
    "CronJob", "Job", "ReplicationController",
)  # fmt: skip
_RANKS = {kind: rank for rank, kind in enumerate(_LOAD_ORDER)}
_LAST = ("LimitRange", "ResourceQuota")  # they are asked about what is new, not about what a dump has already
_EXPORTED = {  # the lists of an export of kube-scheduler-simulator
    "namespaces": ("v1", "Namespace"), "priorityClasses": ("scheduling.k8s.io/v1", "PriorityClass"),
    "storageClasses": ("storage.k8s.io/v1", "StorageClass"), "nodes": ("v1", "Node"), "pvs": ("v1", "PersistentVolume"),
    "pvcs": ("v1", "PersistentVolumeClaim"), "pods": ("v1", "Pod"),
}  # fmt: skip
_ROLES_AND_BINDINGS = (ROLES, ROLE_BINDINGS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
_DEFAULT = "kubernetes.io/bootstrapping"  # the label of default roles and bindings
_REVISED = {"StatefulSet": "statefulsets.apps", "DaemonSet": "daemonsets.apps"}
_SET_BY_SERVER = (
    "uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink", "deletionTimestamp",
    "deletionGracePeriodSeconds",
)  # fmt: skip

Uids: TypeAlias = dict[tuple[str, str, str], str]
"""The uids in this cluster of what was loaded, by kind, namespace and name."""


class LoadedManifests(msgspec.Struct):
    """The number of objects of each kind that were loaded, are not served, or existed already."""

    loaded: Counter[str] = msgspec.field(default_factory=Counter)
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    present: Counter[str] = msgspec.field(default_factory=Counter)


def documents(paths: Iterable[str | Path]) -> Iterator[tuple[str, Document]]:
    """Each document with the name of its file."""
    for path in map(Path, paths):
        if path.is_dir():
            yield from documents(sorted(each for each in path.iterdir() if each.suffix in _SUFFIXES))
            continue
        try:
            text = path.read_bytes()
        except OSError as error:
            raise ConfigError(f"cannot be read: {str(error).splitlines()[0]}", file=str(path)) from None
        yield from documents_in(text, str(path), json=path.suffix == ".json")


def documents_in(text: bytes, file: str, *, json: bool = False) -> Iterator[tuple[str, Document]]:
    """Each document of a text, with the name of its file."""
    try:
        found = [kinds.decode_plain(text)] if json else _yaml_documents(text)
    except RecursionError:
        raise ConfigError("cannot be read: it is nested too deep", file=file) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot be read: {str(error).splitlines()[0]}", file=file) from None
    except ConfigError as error:
        problem = f"cannot be read: {_with_line(error.problem, text)}"
        raise ConfigError(problem, file=file, remedy=error.remedy) from None
    for number, document in enumerate(found, 1):
        path = f"document {number}" if len(found) > 1 else ""
        yield from ((file, each) for each in _items(document, file, path))


def _with_line(problem: str, text: bytes) -> str:
    """Return what is wrong with the line that it is in; of JSON only the byte is known."""
    byte = re.search(r" \(byte (\d+)\)$", problem)
    if byte is None:
        return problem
    line = text.count(b"\n", 0, int(byte[1])) + 1
    return f"line {line}: {problem[: byte.start()]}"


def _yaml_documents(text: bytes) -> list[Any]:
    """The values of a text of any size. Each takes a character at least, so only aliases can be too many."""
    limits = YamlLimits(characters=len(text), nodes=len(text) + ALIASED, depth=DEPTH)
    return bounded_yaml.load_all(text, limits, unique_keys=False, letters=True)


def _items(document: Any, file: str, path: str) -> Iterator[Document]:
    if document is None:
        return
    if _is_simulator_export(document):
        for key, items in document.items():
            version, kind = _EXPORTED.get(key, ("", ""))
            if items and not kind:
                yield {"kind": key}  # such as schedulerConfig: no objects, so it counts as a kind that is not served
            for item in items or () if kind else ():
                yield from _items({"apiVersion": version, "kind": kind, **item}, file, f"{key} {path}".strip())
        return
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        raise ConfigError("not a Kubernetes object", file=file, path=path, remedy=_what_is_wrong(document))
    if document["kind"].endswith("List") and isinstance(document.get("items"), list):
        version, kind = document.get("apiVersion", "v1"), document["kind"].removesuffix("List")
        for item in document["items"]:
            named = {"apiVersion": version, "kind": kind} if kind else {}
            yield from _items({**named, **item} if isinstance(item, dict) else item, file, path)
    else:
        yield document


def _is_simulator_export(document: Any) -> bool:
    """True for an export of kube-scheduler-simulator: lists of objects by plural, which may leave out their kind."""
    if not isinstance(document, dict) or "kind" in document or not document.keys() & {"nodes", "pods"}:
        return False
    lists = (document[key] for key in document.keys() & _EXPORTED.keys())
    return all(found is None or _is_list_of_mappings(found) for found in lists)


def _is_list_of_mappings(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(each, dict) for each in found)


def _what_is_wrong(document: Any) -> str:
    """Return the remedy. kubectl writes the items of a List before its kind, so a file that ends early has no kind."""
    if isinstance(document, dict) and isinstance(document.get("items"), list) and "kind" not in document:
        return "it seems cut off: it has items, but does not end with kind: List; write it again"
    return "every document needs apiVersion and kind"


def load(api: Api, paths: Iterable[str | Path], now: float) -> LoadedManifests:
    """Create all objects of the files. Raises `ConfigError` for a file or object that cannot be used."""
    return load_documents(api, documents(paths), now)


def _raise(error: ConfigError) -> None:
    raise error


def load_documents(
    api: Api,
    pairs: Iterable[tuple[str, Document]],
    now: float,
    on_refused: Callable[[ConfigError], None] = _raise,
    on_repeated: Callable[[ConfigError], None] = lambda _: None,
) -> LoadedManifests:
    """Create objects, each with the name of its file. `on_refused` gets the error of each that cannot be used, and
    `on_repeated` that of each which these files have already.
    """
    with garbage_collection.paused():
        return _load_all(api, pairs, RequestOptions(now, "Ignore"), on_refused, on_repeated)


def _load_all(
    api: Api,
    pairs: Iterable[tuple[str, Document]],
    options: RequestOptions,
    on_refused: Callable[[ConfigError], None],
    on_repeated: Callable[[ConfigError], None],
) -> LoadedManifests:
    found = sorted(pairs, key=lambda pair: _rank(pair[1]))
    result = LoadedManifests()
    pods = LoadedPods(api, options)
    uids: Uids = {}
    newest: dict[str, str] = {}
    cron_jobs: list[tuple[str, ServedResource, Document, Document]] = []
    for file, document in found:
        kind = document["kind"]
        resource = api.catalogue.of_kind(str(document.get("apiVersion", "")), kind)
        if resource is None or "list" not in resource.verbs:
            result.skipped[kind] += 1
            continue
        try:
            created = _create(api, resource, _of_this_revision(api, document, uids, newest), uids, pods, options)
        except ApiError as error:
            if error.reason == "AlreadyExists":
                result.present[kind] += 1
                if _place(resource, document) in uids:
                    on_repeated(ConfigError(error.message, file=file, path=_path(document)))
                continue
            on_refused(_refused(error, file, document))
            continue
        result.loaded[kind] += 1
        uids[_place(resource, created)] = created["metadata"]["uid"]
        if kind == "StatefulSet" and isinstance(document.get("status"), dict):
            newest[created["metadata"]["uid"]] = str(document["status"].get("updateRevision") or "")
        if resource.collection == "cronjobs.batch":
            cron_jobs.append((file, resource, created, document))
    for file, resource, created, document in cron_jobs:  # their jobs are there now
        try:
            _resume(api, resource, created, document, uids, options)
        except ApiError as error:
            on_refused(_refused(error, file, document))
    return result


def _refused(error: ApiError, file: str, document: Document) -> ConfigError:
    return ConfigError(error.message, file=file, path=_path(document))


def _path(document: Document) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    return f"{document['kind']} {name}".strip()


def _place(resource: ServedResource, document: Document) -> tuple[str, str, str]:
    """The kind, the namespace and the name of an object that the server took, or would take."""
    metadata = document["metadata"]
    namespace = str(metadata.get("namespace") or "default") if resource.namespaced else ""
    return document["kind"], namespace, str(metadata["name"])


def _rank(document: Document) -> int:
    kind = document["kind"]
    found = _RANKS.get(kind)
    return len(_RANKS) + (kind in _LAST) if found is None else found


def _create(
    api: Api, resource: ServedResource, document: Document, uids: Uids, pods: LoadedPods, options: RequestOptions
) -> Document:
    metadata = document.get("metadata") if isinstance(document.get("metadata"), dict) else {}
    assert metadata is not None
    namespace = str(metadata.get("namespace") or "default") if resource.namespaced else ""
    kept = {key: value for key, value in metadata.items() if key not in _SET_BY_SERVER}
    owners = _owners(kept.pop("ownerReferences", None) or (), namespace, uids)
    if owners:
        kept["ownerReferences"] = owners
    if resource.namespaced and api.store.get("namespaces", namespace) is None:
        namespaces = api.catalogue.find("", "v1", "namespaces")
        assert namespaces is not None
        api.create(namespaces, "", {"metadata": {"name": namespace}}, options)
    _make_way(api, resource, resource.key(namespace, str(metadata.get("name"))))
    new = {**document, "metadata": kept}
    if resource.collection == "pods" and (loaded := pods.create(namespace, new)) is not None:
        return loaded
    plain = typed.without_nulls(new) if resource.custom else _without_nulls(new)
    created = api.create(resource, namespace, plain, options)
    return _with_status(api, resource, created, document, options)


def _of_this_revision(api: Api, document: Document, uids: Uids, newest: Mapping[str, str]) -> Document:
    """Return a pod of a StatefulSet or a DaemonSet with the name that its revision has here: another program made up
    the one that it has. Otherwise its controller would replace it. `newest`: what the owners said, by their uids.
    """
    metadata = document.get("metadata")
    labels = metadata.get("labels") if document["kind"] == "Pod" and isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(labels, dict) or REVISION_LABEL not in labels:
        return document
    namespace = str(metadata.get("namespace") or "default")
    for reference in _owners(metadata.get("ownerReferences") or (), namespace, uids):
        kind, last = str(reference.get("kind")), newest.get(reference["uid"], "")
        owner = api.store.get(_REVISED[kind], f"{namespace}/{reference['name']}") if kind in _REVISED else None
        if owner is not None and last in ("", labels[REVISION_LABEL]):
            name = revision(owner)
            own = name if kind == "StatefulSet" else name.rpartition("-")[2]
            return {**document, "metadata": {**metadata, "labels": {**labels, REVISION_LABEL: own}}}
    return document


def _without_nulls(document: Document) -> Document:
    """Do what `typed.without_nulls` does, but walk only through documents that may have nulls."""
    try:
        text = msgspec.json.encode(document)
    except (TypeError, ValueError, OverflowError, RecursionError):
        text = b"null"
    found: Document = document if b"null" not in text else typed.without_nulls(document)
    return found


def _make_way(api: Api, resource: ServedResource, key: str) -> None:
    """Remove the default role or binding that a loaded one replaces. (What a binding refers to cannot be changed.)"""
    if resource.collection in _ROLES_AND_BINDINGS:
        found = api.store.get(resource.collection, key)
        if found is not None and _DEFAULT in found["metadata"].get("labels", {}):
            api.store.remove(resource.collection, key)


def _owners(owners: Iterable[Any], namespace: str, uids: Uids) -> list[Document]:
    """Owner references with the uids of this cluster; references to owners that do not exist here are dropped."""
    found = []
    for owner in owners:
        if not isinstance(owner, dict):
            continue
        for within in (namespace, ""):
            uid = uids.get((str(owner.get("kind")), within, str(owner.get("name"))))
            if uid is not None:
                found.append({**owner, "uid": uid})
                break
    return found


def _with_status(
    api: Api, resource: ServedResource, created: Document, document: Document, options: RequestOptions
) -> Document:
    """Keep the status of pods and volumes; controllers compute the status of all other kinds."""
    if resource.collection not in ("pods", "persistentvolumes", "persistentvolumeclaims"):
        return created
    status = typed.without_nulls(document.get("status"))
    if not status:
        return created
    return api.update(resource, created["metadata"].get("namespace", ""), created["metadata"]["name"],
                      {**created, "status": status}, options, "status")  # fmt: skip


def _resume(
    api: Api, resource: ServedResource, created: Document, document: Document, uids: Uids, options: RequestOptions
) -> None:
    """Keep when a CronJob ran last, and which of its jobs are active: it must not start one that runs already."""
    found = typed.without_nulls(document.get("status"))
    if not isinstance(found, dict) or not found:
        return
    namespace, name = created["metadata"]["namespace"], created["metadata"]["name"]
    active = [
        {**reference, "namespace": namespace, "uid": uid, "resourceVersion": None}
        for reference in found.get("active") or ()
        if isinstance(reference, dict) and (uid := uids.get(("Job", namespace, str(reference.get("name")))))
    ]
    status = typed.without_nulls({**found, "active": active or None})
    api.update(resource, namespace, name, {**created, "status": status}, options, "status")
