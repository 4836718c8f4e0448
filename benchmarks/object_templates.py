"""Any number of objects from templates: as JSON for an API server, or decoded, as if read from one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from benchmarks.workload import CreateNodes, LabelStrategy, Template
from stowplan.objects import kinds
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod

AnyObject = TypeVar("AnyObject", bound=Object)


def nodes(operation: CreateNodes, count: int) -> Iterator[Node]:
    return each(Node, node_templates(operation), count)


def node_templates(operation: CreateNodes) -> list[Template]:
    """The nodes' template with its labels, once for each value that is given in turn."""
    prepared = operation.label_node_prepare_strategy or LabelStrategy("", [])
    unique = operation.unique_node_label_strategy
    values = prepared.label_values or [""]
    templates = [_labelled(operation.node_template, {prepared.label_key: value} if value else {}) for value in values]
    if unique is not None:
        name = f"{operation.node_template['metadata']['generateName']}{{index}}"
        templates = [_labelled(template, {unique.label_key: name}) for template in templates]
    return templates


def pods(templates: Sequence[Template], count: int, namespace: str, batch: str) -> Iterator[Pod]:
    """Pods that take the templates in turn; `batch` keeps their names apart from those of other calls."""
    placed = [_with_metadata(template, namespace=namespace, uid=f"{batch}-{{index}}") for template in templates]
    return each(Pod, placed, count)


def each(kind: type[AnyObject], templates: Sequence[Template], count: int) -> Iterator[AnyObject]:
    for document in documents(templates, range(count)):
        yield kinds.decode(kind, document)


def documents(templates: Sequence[Template], numbers: range) -> Iterator[bytes]:
    """The objects with these numbers as JSON; they take the templates in turn."""
    texts = [msgspec.json.encode(_named(template)) for template in templates]
    for index in numbers:
        yield texts[index % len(texts)].replace(b"{index}", b"%d" % index)


def _named(template: Template) -> Template:
    prefix = template["metadata"].get("generateName")
    return _with_metadata(template, name=f"{prefix}{{index}}") if prefix else template


def _labelled(template: Template, labels: dict[str, str]) -> Template:
    return _with_metadata(template, labels={**template["metadata"].get("labels", {}), **labels})


def _with_metadata(template: Template, **fields: Any) -> Template:
    return {**template, "metadata": {**template["metadata"], **fields}}
