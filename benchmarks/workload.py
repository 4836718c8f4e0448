"""Workloads in the shape of kube's scheduler_perf: operations that make a cluster, and cases that say how large.

Its field names are ours, too, but for templates, which stand in the file itself (`nodeTemplate`, `podTemplates`, or
`defaultPodTemplates` for all operations that name none). Of several pod templates each pod takes the next. `{index}` in
a template stands for the number of the object.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import yaml

FOLDER = Path(__file__).parent / "workloads"
Template: TypeAlias = dict[str, Any]


class _Operation(msgspec.Struct, rename="camel", tag_field="opcode", forbid_unknown_fields=True):
    """One step of making a cluster."""


class LabelStrategy(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A label for every node: one of the values in turn; without values, the node's own name."""

    label_key: str
    label_values: list[str] = []


class CreateNodes(_Operation, tag="createNodes"):
    count_param: str
    node_template: Template
    label_node_prepare_strategy: LabelStrategy | None = None
    unique_node_label_strategy: LabelStrategy | None = None


class CreateNamespaces(_Operation, tag="createNamespaces"):
    prefix: str
    count: int


class CreatePods(_Operation, tag="createPods"):
    """Pods that are there from the start, one node after the other; or (`collectMetrics`) pods to be decided on."""

    count_param: str
    pod_templates: list[Template] = []
    namespace: str = "default"
    collect_metrics: bool = False


class Churn(_Operation, tag="churn"):
    """Before each decision a pod comes to some node and the one before it goes."""

    pod_templates: list[Template]
    namespace: str = "default"


Operation: TypeAlias = CreateNodes | CreateNamespaces | CreatePods | Churn


class Case(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    params: dict[str, int]

    def count(self, param: str) -> int:
        return self.params[param.removeprefix("$")]

    @property
    def nodes(self) -> int:
        return self.params["initNodes"]


class Workload(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    name: str
    workload_template: list[Operation]
    workloads: list[Case]
    default_pod_templates: list[Template] = []

    def __post_init__(self) -> None:
        for operation in self.workload_template:
            if isinstance(operation, CreatePods) and not operation.pod_templates:
                operation.pod_templates = self.default_pod_templates

    def at(self, nodes: int) -> Case | None:
        return next((case for case in self.workloads if case.nodes == nodes), None)


def read(file: Path) -> list[Workload]:
    return msgspec.convert(yaml.safe_load(file.read_text(encoding="utf-8")), list[Workload])


def every() -> dict[str, Workload]:
    """All workloads by name, basic first: the others are compared with it. Plain preemption is before its variants."""
    found = [workload for file in sorted(FOLDER.glob("*.yaml")) for workload in read(file)]
    return {workload.name: workload for workload in sorted(found, key=lambda each: (each.name != "basic", each.name))}
