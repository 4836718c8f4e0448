"""Reads the node and pod lists of OpenB, Alibaba's public trace of a GPU cluster (cluster-trace-gpu-v2023).

    nodes   sn, cpu_milli, memory_mib, gpu, model
    pods    name, cpu_milli, memory_mib, num_gpu, gpu_milli, and perhaps gpu_spec, qos, pod_phase, creation_time,
            deletion_time, scheduled_time

Readers take the bytes of a file. A row that makes no sense is an error that names the file and the line.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NoReturn, TypeVar

import msgspec

from stowplan.objects.errors import ConfigError
from stowplan.objects.gpu_requests import COUNT, MILLI, MODELS, MOST_DEVICES, WHOLE
from stowplan.objects.meta import ObjectMeta
from stowplan.objects.nodes import Node, NodeStatus
from stowplan.objects.pod_parts import Container, PodSpec, ResourceRequirements
from stowplan.objects.pods import Pod
from stowplan.objects.quantity import quantity

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
MORE_POD_COLUMNS = ("gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time")
MOST = 10**12  # of any amount
NAMESPACE = "openb"
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
Row = TypeVar("Row")


class OpenBNode(msgspec.Struct, frozen=True):
    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str

    def as_node(self, most_pods: int) -> Node:
        """Return the node as Kubernetes would have it."""
        allocatable = {
            "cpu": quantity(f"{self.cpu_milli}m"),
            "memory": quantity(f"{self.memory_mib}Mi"),
            "pods": quantity(most_pods),
            COUNT: quantity(self.gpus),
            MILLI: quantity(WHOLE),
        }
        labels = {MODELS: self.model} if self.model else {}
        metadata = ObjectMeta(name=self.name, uid=self.name, labels=labels)
        return Node(metadata, status=NodeStatus(allocatable=allocatable))


class OpenBPod(msgspec.Struct, frozen=True):
    """A pod of a list. `gpu_milli`: of each of its GPUs; `gpu_spec`: the models that are allowed, divided by |."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    gpu_spec: str = ""

    @property
    def demand(self) -> int:
        """The thousandths of GPUs that it asks for."""
        return self.gpus * self.gpu_milli

    @property
    def shape(self) -> tuple[int, int, int, str]:
        return self.cpu_milli, self.gpu_milli, self.gpus, self.gpu_spec

    def as_pod(self) -> Pod:
        """Return the pod as Kubernetes would have it."""
        requests = {"cpu": quantity(f"{self.cpu_milli}m"), "memory": quantity(f"{self.memory_mib}Mi")}
        annotations = {MILLI: str(self.gpu_milli), COUNT: str(self.gpus)} if self.gpus else {}
        if self.gpus and self.gpu_spec:
            annotations[MODELS] = self.gpu_spec
        metadata = ObjectMeta(name=self.name, namespace=NAMESPACE, uid=self.name, annotations=annotations)
        container = Container(name="main", resources=ResourceRequirements(requests=requests))
        return Pod(metadata, PodSpec(containers=(container,)))


def read_nodes(data: bytes, file: str) -> list[OpenBNode]:
    """Read a node list; `file` is its name, for errors."""
    return _read(data, file, NODE_COLUMNS, (), _node)


def read_pods(data: bytes, file: str) -> list[OpenBPod]:
    """Read a pod list; `file` is its name, for errors."""
    return _read(data, file, POD_COLUMNS, MORE_POD_COLUMNS, _pod)


class _Line:
    """A row of a file, and where it is."""

    def __init__(self, fields: Mapping[str, str], file: str, number: int) -> None:
        self.fields, self._file, self._number = fields, file, number

    def text(self, column: str) -> str:
        return self.fields.get(column, "").strip()

    def number(self, column: str, most: int = MOST) -> int:
        text = self.text(column)
        if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= most):
            self.refuse(f"{column} is {text[:80]!r}", f"write a whole number from 0 to {most}")
        return int(text)

    def refuse(self, problem: str, remedy: str) -> NoReturn:
        raise ConfigError(problem, file=self._file, path=f"line {self._number}", remedy=remedy)


def _node(line: _Line) -> OpenBNode:
    found = OpenBNode(
        line.text("sn"),
        line.number("cpu_milli"),
        line.number("memory_mib"),
        line.number("gpu", MOST_DEVICES),
        line.text("model"),
    )
    if found.gpus and not found.model:
        line.refuse(f"a node with {found.gpus} GPUs has no model", "name the model of its GPUs")
    return found


def _pod(line: _Line) -> OpenBPod:
    gpus, milli = line.number("num_gpu", MOST_DEVICES), line.number("gpu_milli", WHOLE)
    if gpus and not milli:
        line.refuse(f"num_gpu is {gpus}, but gpu_milli is 0", "write 1 to 1000")
    if gpus > 1 and milli < WHOLE:
        line.refuse(
            f"num_gpu is {gpus}, but gpu_milli is {milli}", "a pod with several GPUs has whole ones: write 1000"
        )
    if milli and not gpus:
        line.refuse(f"gpu_milli is {milli}, but num_gpu is 0", "write 0, or the number of GPUs")
    name, cpu, memory = line.text("name"), line.number("cpu_milli"), line.number("memory_mib")
    return OpenBPod(name, cpu, memory, gpus, milli, line.text("gpu_spec"))


def _read(
    data: bytes, file: str, needed: Collection[str], more: Collection[str], row_of: Callable[[_Line], Row]
) -> list[Row]:
    rows, names = list[Row](), dict[str, int]()
    for line, number in _lines(data, file, needed, more):
        row = row_of(line)
        name = line.text(next(iter(needed)))
        if not name:
            line.refuse("the row has no name", "each row needs one of its own")
        if name in names:
            line.refuse(f"the name {name[:80]!r} is that of line {names[name]}, too", "each row needs one of its own")
        names[name] = number
        rows.append(row)
    if not rows:
        raise ConfigError("has no rows", file=file, remedy=f"write a line of columns ({','.join(needed)}), then rows")
    return rows


def _lines(data: bytes, file: str, needed: Collection[str], more: Collection[str]) -> Iterator[tuple[_Line, int]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError("not UTF-8", file=file, path=f"line {line}", remedy="save it as UTF-8") from None
    reader = csv.reader(_LINE.findall(text), strict=True)
    header: list[str] = []
    try:
        for fields in reader:
            if not header:
                header = _header(fields, file, needed, more)
            elif fields:
                yield _Line(_fields(header, fields, file, reader.line_num), file, reader.line_num), reader.line_num
    except csv.Error as error:
        raise ConfigError(f"not CSV: {error}", file=file, path=f"line {reader.line_num}") from None


def _header(fields: list[str], file: str, needed: Collection[str], more: Collection[str]) -> list[str]:
    header, right = [each.strip() for each in fields], f"the columns are {', '.join((*needed, *more))}"
    for column in needed:
        if column not in header:
            raise ConfigError(f"the column {column} is missing", file=file, path="line 1", remedy=right)
    for at, column in enumerate(header):
        if column not in needed and column not in more:
            raise ConfigError(f"the column {column[:80]!r} is unknown", file=file, path="line 1", remedy=right)
        if column in header[:at]:
            raise ConfigError(f"the column {column} is there twice", file=file, path="line 1", remedy=right)
    return header


def _fields(header: list[str], fields: list[str], file: str, number: int) -> dict[str, str]:
    if len(fields) != len(header):
        problem = f"has {len(fields)} fields, and there are {len(header)} columns"
        raise ConfigError(problem, file=file, path=f"line {number}")
    return dict(zip(header, fields, strict=True))
