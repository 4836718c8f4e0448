"""Where the cluster of a run comes from: a dump, kube-scheduler-simulator's export, OpenB's nodes, or a template.

    apiVersion: simulation.stowplan.io/v1alpha1
    kind: ClusterTemplate
    nodes:
    - name: worker                        # worker-0 … worker-99
      count: 100
      capacity: {cpu: 16, memory: 64Gi, pods: 110, nvidia.com/gpu: 4}
      labels: {pool: general}
      zones: [a, b, c]                    # in turns, as topology.kubernetes.io/zone
      taints: [{key: gpu, effect: NoSchedule}]
      price: 0.8                          # for an hour
    objects: []                           # any other objects, as in a manifest

A text may have several documents, so a template can stand beside the objects of a dump.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stowplan.embedded import manifests
from stowplan.framework.config.document import ConfigValue, decode
from stowplan.objects import quantity
from stowplan.objects.errors import ConfigError
from stowplan.simulation import openb
from stowplan.simulation.capacity_use import PRICE
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.templates import PODS, check_scheduler

GROUP = "simulation.stowplan.io/v1alpha1"
TEMPLATE = "ClusterTemplate"
MOST_NODES = 1_000_000
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"

Document = dict[str, Any]


class NodePool(ConfigValue, frozen=True):
    """Nodes that are alike but for their names and zones."""

    name: str = "node"
    count: int = 1
    capacity: dict[str, str | int | float] = {}  # noqa: RUF012  # msgspec copies it
    labels: dict[str, str] = {}  # noqa: RUF012
    annotations: dict[str, str] = {}  # noqa: RUF012
    zones: tuple[str, ...] = ()
    taints: tuple[dict[str, str], ...] = ()
    price: float | None = None


class ClusterTemplate(ConfigValue, frozen=True):
    """The document above."""

    api_version: str
    kind: str
    nodes: tuple[NodePool, ...] = ()
    objects: tuple[dict[str, Any], ...] = ()


def documents(text: bytes, file: str, problems: InputProblems) -> Iterator[tuple[str, Document]]:
    """Yield each object of a cluster with the name of its file. What cannot be used goes to `problems`.

    `file`: its name, which says the format. The bytes are no longer compressed, if it ends with .gz.

    cluster.load(cluster_from(text, "dump.yaml", problems), problems)
    """
    plain = file.removesuffix(".gz")
    if plain.endswith(".csv"):
        yield from ((file, node.as_document()) for node in openb.read_nodes(text, file, problems))
        return
    as_json = plain.endswith(".json") or text.lstrip()[:1] in (b"{", b"[")
    for name, document in manifests.documents_in(text, file, json=as_json):
        if document["kind"] != TEMPLATE:
            yield name, document
            continue
        try:
            found = list(expanded(document))
        except ConfigError as error:
            problems.add(error.located(file))
        else:
            yield from ((name, each) for each in found)


def expanded(document: Mapping[str, Any]) -> Iterator[Document]:
    """Yield the objects of a template."""
    found = decode(document, ClusterTemplate)
    if found.api_version != GROUP:
        raise ConfigError(f"apiVersion is {found.api_version}, expected {GROUP}", path=TEMPLATE)
    for number, pool in enumerate(found.nodes):
        yield from nodes_of(pool, f"nodes[{number}]")
    for number, each in enumerate(found.objects):
        if not isinstance(each.get("kind"), str):
            remedy = "every object needs apiVersion and kind"
            raise ConfigError("not a Kubernetes object", path=f"objects[{number}]", remedy=remedy)
        yield each


def nodes_of(pool: NodePool, path: str) -> Iterator[Document]:
    """Yield the nodes of a pool. Raises ConfigError for a count or an amount that cannot be."""
    if not 0 <= pool.count <= MOST_NODES:
        raise ConfigError(f"found {pool.count}, expected 0 to {MOST_NODES:,}", path=f"{path}.count")
    if pool.price is not None and not 0 <= pool.price < math.inf:
        raise ConfigError(f"found {pool.price:g}, expected a price of 0 or more", path=f"{path}.price")
    capacity = {name: _amount(str(amount), f"{path}.capacity.{name}") for name, amount in pool.capacity.items()}
    capacity = {"pods": "110", **capacity}
    annotations = pool.annotations | ({PRICE: str(pool.price)} if pool.price is not None else {})
    for number in range(pool.count):
        name = f"{pool.name}-{number}"
        zone = {ZONE: pool.zones[number % len(pool.zones)]} if pool.zones else {}
        metadata: Document = {"name": name, "labels": {HOSTNAME: name, **zone, **pool.labels}}
        if annotations:
            metadata["annotations"] = annotations
        yield {
            "apiVersion": "v1", "kind": "Node", "metadata": metadata,
            "spec": {"taints": list(pool.taints)} if pool.taints else {},
            "status": {"capacity": capacity, "allocatable": capacity},
        }  # fmt: skip


def _amount(text: str, path: str) -> str:
    try:
        fits = quantity.nanos(quantity.quantity(text)) >= 0
    except ValueError:
        fits = False
    if not fits:
        raise ConfigError(f"found {text!r}, expected an amount such as 500m, 4 or 16Gi", path=path)
    return text


def served(
    pairs: Iterable[tuple[str, Document]], scheduler_names: tuple[str, ...], problems: InputProblems
) -> Iterator[tuple[str, Document]]:
    """Yield all but the pending pods that no profile of the run serves, which go to `problems`."""
    for file, document in pairs:
        spec = document.get("spec")
        if document["kind"] in PODS and isinstance(spec, dict) and not spec.get("nodeName"):
            metadata = document.get("metadata")
            name = metadata.get("name", "") if isinstance(metadata, dict) else ""
            try:
                check_scheduler(spec, scheduler_names, file, f"Pod {name}")
            except ConfigError as error:
                problems.add(error)
                continue
        yield file, document
