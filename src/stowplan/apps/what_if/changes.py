"""The changes that the command line asks for, as events of a simulated cluster. Names are checked, and errors say which
name may be meant.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stowplan.apps.explain import checks
from stowplan.diagnosis import patches
from stowplan.diagnosis.node_templates import document_of, new_node
from stowplan.diagnosis.remedy import AddNodes
from stowplan.embedded.documents import Document
from stowplan.embedded.manifests import documents, documents_in
from stowplan.embedded.resources import ResourceCatalogue, ServedResource
from stowplan.objects.errors import ConfigError
from stowplan.objects.nodes import Node
from stowplan.simulation.administered_cluster import AdministeredCluster, AppliedManifest, Drain
from stowplan.simulation.stream_events import AppliedObject, DeletedObject, NodeCordon, StreamEvent

STDIN, LIKE = "-", "like="
MOST_NODES = 100_000


def check_nodes(flag: str, names: Iterable[str], known: Collection[str]) -> None:
    """Refuse names of nodes that do not exist."""
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            remedy = f"did you mean {near[0]}?" if near else f"the cluster has {_some(known)}"
            raise ConfigError(f"there is no node {name or 'without a name'}", path=flag, remedy=remedy)


def _some(names: Collection[str]) -> str:
    listed = sorted(names)
    if not listed:
        return "no nodes"
    return ", ".join(listed[:3]) + (f" and {len(listed) - 3:,} more" if len(listed) > 3 else "")


def check_contradictions(uncordoned: Collection[str], others: Mapping[str, Collection[str]]) -> None:
    """Refuse a node that is to take pods and to take none. `others`: the nodes that take none, by flag."""
    for flag, names in others.items():
        for name in names:
            if name in uncordoned:
                raise ConfigError(f"{name} is named by {flag}, too", path="--uncordon", remedy="choose one of the two")


def cordons(flag: str, names: Sequence[str], cluster: AdministeredCluster, *, cordoned: bool) -> Iterator[StreamEvent]:
    check_nodes(flag, names, nodes_of(cluster))
    for name in names:
        yield NodeCordon(at=0, file=flag, place=name, node=name, cordoned=cordoned)


def drains(names: Sequence[str], cluster: AdministeredCluster) -> Iterator[StreamEvent]:
    check_nodes("--drain", names, nodes_of(cluster))
    if names:
        yield Drain(at=0, file="--drain", nodes=tuple(dict.fromkeys(names)))


def nodes_of(cluster: AdministeredCluster) -> Mapping[str, Document]:
    """Return the nodes of the cluster by name."""
    return {key: stored.document for key, stored in cluster.api.store.collection("nodes").items.items()}


# -- nodes that are added


def added_nodes(
    given: Sequence[tuple[int, str]], cluster: AdministeredCluster, pool_label: str
) -> Iterator[StreamEvent]:
    """Yield the nodes of `--add-nodes`."""
    existing, taken = nodes_of(cluster), set(nodes_of(cluster))
    for number, like in given:
        if not 1 <= number <= MOST_NODES:
            raise ConfigError(f"found {number}", path="--add-nodes", remedy=f"choose a number from 1 to {MOST_NODES:,}")
        if not like.startswith(LIKE) or like == LIKE:
            remedy = "write like=NODE, like=POOL or like=FILE after the number"
            raise ConfigError(f"found {like!r}", path="--add-nodes", remedy=remedy)
        for name, document in _templates(like.removeprefix(LIKE), existing, pool_label):
            for each in patches.added_nodes(AddNodes(number, name, new_node(document)), taken):
                taken.add(each["metadata"]["name"])
                yield AppliedObject(at=0, file="--add-nodes", place=each["metadata"]["name"], document=each)


def _templates(name: str, existing: Mapping[str, Document], pool_label: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what nodes are to be like, with a name: a node, the first one of a pool, or the Nodes of a file."""
    if name in existing:
        yield name, existing[name]
        return
    pool = [each for each in existing.values() if each["metadata"].get("labels", {}).get(pool_label) == name]
    if pool:
        yield name, pool[0]
        return
    if Path(name).is_file():
        found: Mapping[str, Node] = checks.templates([Path(name)], "--add-nodes")
        yield from ((each, document_of(node)) for each, node in found.items())
        return
    pools = {each["metadata"].get("labels", {}).get(pool_label, "") for each in existing.values()} - {""}
    near = difflib.get_close_matches(name, {*existing, *pools}, 1)
    remedy = f"did you mean {near[0]}?" if near else f"name a node, a value of the label {pool_label}, or a file"
    raise ConfigError(f"there is no node, pool or file {name}", path="--add-nodes", remedy=remedy)


# -- objects


def applied(files: Sequence[str], cluster: AdministeredCluster, namespace: str) -> Iterator[StreamEvent]:
    """Yield the objects of manifests."""
    for file in files:
        if not file.strip():
            raise ConfigError("found an empty name", path="-f", remedy="name a file, a folder, or - for standard input")
        pairs = list(documents_in(sys.stdin.buffer.read(), STDIN) if file == STDIN else documents([file]))
        if not pairs:
            raise ConfigError("found no object", file=file, remedy="name a file with manifests")
        for name, document in pairs:
            kind, metadata = document["kind"], document.get("metadata")
            if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
                raise ConfigError("found no metadata.name", file=name, path=kind, remedy="every object needs a name")
            resource = cluster.api.catalogue.of_kind(str(document.get("apiVersion", "")), kind)
            if resource is None:
                version = document.get("apiVersion") or "no apiVersion"
                raise ConfigError(f"{kind} of {version} is not served here", file=name, path=kind)
            if resource.namespaced and not metadata.get("namespace"):
                document = {**document, "metadata": {**metadata, "namespace": namespace}}
            where = f"{kind} {metadata.get('name', '')}"
            yield AppliedManifest(at=0, file=name, place=where, document=document)


def deleted(given: Sequence[str], cluster: AdministeredCluster, namespace: str) -> Iterator[StreamEvent]:
    """Yield the deletions of `--delete KIND/NAME`, or KIND/NAMESPACE/NAME."""
    for text in given:
        word, _, rest = text.partition("/")
        within, _, name = rest.rpartition("/")
        if not word or not name:
            raise ConfigError(f"found {text!r}", path="--delete", remedy="write KIND/NAME, such as deploy/web")
        resource = _resource(word, cluster.api.catalogue)
        space = (within or namespace) if resource.namespaced else ""
        key = resource.key(space, name)
        items = cluster.api.store.collection(resource.collection).items
        if key not in items:
            near = difflib.get_close_matches(key, items, 1)
            remedy = f"did you mean {resource.singular_name}/{near[0].rpartition('/')[2]}?" if near else ""
            elsewhere = next((each for each in items if each.endswith(f"/{name}")), "")
            if elsewhere:
                remedy = f"there is one in namespace {elsewhere.partition('/')[0]}: name it with -n"
            place = f" in namespace {space}" if space else ""
            raise ConfigError(
                f"there is no {resource.singular_name} {name}{place}", path="--delete",
                remedy=remedy or "check its name and its namespace",
            )  # fmt: skip
        yield DeletedObject(
            at=0, file="--delete", place=text, api_version=resource.api_version, kind=resource.kind, name=name,
            namespace=space,
        )  # fmt: skip


def _resource(word: str, catalogue: ResourceCatalogue) -> ServedResource:
    """Return the kind that kubectl would take for a word: deploy, deployment, deployments, deployments.apps."""
    words: dict[str, ServedResource] = {}
    for each in catalogue:
        if "delete" not in each.verbs:
            continue
        names = (each.plural, each.singular_name, each.kind.lower(), *each.short_names)
        for name in names:
            words.setdefault(name, each)
            words.setdefault(f"{name}.{each.group}", each)
    found = words.get(word.lower())
    if found is None:
        near = difflib.get_close_matches(word.lower(), words, 1)
        remedy = f"did you mean {near[0]}?" if near else "write a kind as kubectl has it, such as deploy or node"
        raise ConfigError(f"there is no kind {word}", path="--delete", remedy=remedy)
    return found
