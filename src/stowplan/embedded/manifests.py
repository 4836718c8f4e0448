"""Manifests and dumps: files or folders of YAML or JSON; kinds that are not served are counted and skipped.

What a dump says of the past (uids, versions) is the server's to give and is left out; what is needed to go on is
kept: a pod's node and phase, a node's state, owners by name. Owners get new uids, so they are loaded before what
they own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import yaml

from stowplan.embedded.api.request_options import RequestOptions
from stowplan.embedded.api.verbs import Api
from stowplan.embedded.errors import ApiError
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.schema import typed
from stowplan.objects.errors import ConfigError

Document: TypeAlias = dict[str, Any]

_SUFFIXES = (".yaml", ".yml", ".json")
_FIRST = (
    "CustomResourceDefinition", "Namespace", "PriorityClass", "StorageClass", "Node", "PersistentVolume",
    "ServiceAccount", "PersistentVolumeClaim", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job",
    "ReplicationController",
)  # fmt: skip
_GIVEN = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink", "deletionTimestamp",
          "deletionGracePeriodSeconds")  # fmt: skip


class LoadedManifests(msgspec.Struct):
    """How many objects of each kind were loaded, were not served, or were there already."""

    loaded: Counter[str] = msgspec.field(default_factory=Counter)
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    present: Counter[str] = msgspec.field(default_factory=Counter)


def documents(paths: Iterable[str | Path]) -> Iterator[tuple[str, Document]]:
    """Each document with the file it came from."""
    for path in map(Path, paths):
        if path.is_dir():
            yield from documents(sorted(each for each in path.iterdir() if each.suffix in _SUFFIXES))
            continue
        try:
            text = path.read_bytes()
            found = (
                [msgspec.json.decode(text)] if path.suffix == ".json" else list(yaml.load_all(text, _ManifestLoader))
            )
        except (OSError, yaml.YAMLError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot be read: {str(error).splitlines()[0]}", file=str(path)) from None
        for document in found:
            yield from ((str(path), each) for each in _unfolded(document, str(path)))


class _ManifestLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Times stay text, as in JSON."""


_ManifestLoader.yaml_implicit_resolvers = {
    letter: [(tag, form) for tag, form in found if tag != "tag:yaml.org,2002:timestamp"]
    for letter, found in _ManifestLoader.yaml_implicit_resolvers.items()
}


def _unfolded(document: Any, file: str) -> Iterator[Document]:
    if document is None:
        return
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        raise ConfigError("no Kubernetes object", file=file, remedy="every document needs apiVersion and kind")
    if document["kind"].endswith("List") and isinstance(document.get("items"), list):
        version, kind = document.get("apiVersion", "v1"), document["kind"].removesuffix("List")
        for item in document["items"]:
            named = {"apiVersion": version, "kind": kind} if kind else {}
            yield from _unfolded({**named, **item} if isinstance(item, dict) else item, file)
    else:
        yield document


def load(api: Api, paths: Iterable[str | Path], now: float) -> LoadedManifests:
    """Puts all of it into the cluster; ConfigError for a file or object that cannot be used."""
    found = sorted(documents(paths), key=lambda pair: _rank(pair[1]))
    result = LoadedManifests()
    uids: dict[tuple[str, str, str], str] = {}
    for file, document in found:
        kind = document["kind"]
        resource = api.catalogue.of_kind(str(document.get("apiVersion", "")), kind)
        if resource is None or "list" not in resource.verbs:
            result.skipped[kind] += 1
            continue
        try:
            made = _put(api, resource, document, uids, now)
        except ApiError as error:
            if error.reason == "AlreadyExists":
                result.present[kind] += 1
                continue
            name = document.get("metadata", {}).get("name", "")
            raise ConfigError(error.message, file=file, path=f"{kind} {name}".strip()) from None
        result.loaded[kind] += 1
        uids[kind, made["metadata"].get("namespace", ""), made["metadata"]["name"]] = made["metadata"]["uid"]
    return result


def _rank(document: Document) -> int:
    return _FIRST.index(document["kind"]) if document["kind"] in _FIRST else len(_FIRST)


def _put(
    api: Api, resource: ServedResource, document: Document, uids: dict[tuple[str, str, str], str], now: float
) -> Document:
    metadata = document.get("metadata") if isinstance(document.get("metadata"), dict) else {}
    assert metadata is not None
    namespace = str(metadata.get("namespace") or "default") if resource.namespaced else ""
    kept = {key: value for key, value in metadata.items() if key not in _GIVEN}
    owners = _owners(kept.pop("ownerReferences", None) or (), namespace, uids)
    if owners:
        kept["ownerReferences"] = owners
    asked = RequestOptions(now, "Ignore")
    if resource.namespaced and api.store.get("namespaces", namespace) is None:
        namespaces = api.catalogue.find("", "v1", "namespaces")
        assert namespaces is not None
        api.create(namespaces, "", {"metadata": {"name": namespace}}, asked)
    made = api.create(resource, namespace, typed.tidy({**document, "metadata": kept}), asked)
    return _with_status(api, resource, made, document, asked)


def _owners(owners: Iterable[Any], namespace: str, uids: dict[tuple[str, str, str], str]) -> list[Document]:
    """With the uids that owners have here; those that are not here are forgotten."""
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
    api: Api, resource: ServedResource, made: Document, document: Document, asked: RequestOptions
) -> Document:
    """Pods and volumes go on as they were; the status of the rest is worked out again."""
    status = typed.tidy(document.get("status"))
    if resource.collection not in ("pods", "persistentvolumes", "persistentvolumeclaims") or not status:
        return made
    return api.update(resource, made["metadata"].get("namespace", ""), made["metadata"]["name"],
                      {**made, "status": status}, asked, "status")  # fmt: skip
