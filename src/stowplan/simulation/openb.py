"""Reads the node and pod lists of OpenB, Alibaba's public trace of a GPU cluster (cluster-trace-gpu-v2023).

    nodes   sn, cpu_milli, memory_mib, gpu, model
    pods    name, cpu_milli, memory_mib, num_gpu, gpu_milli, and perhaps gpu_spec, qos, pod_phase, creation_time,
            deletion_time, scheduled_time

Readers take the bytes of a file. A row that makes no sense is an error that names the file and the line; `problems`
takes such errors instead, and the reader goes on.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NoReturn, TypeVar

import msgspec

from stowplan.objects.errors import ConfigError
from stowplan.objects.gpu_requests import COUNT, MILLI, MODELS, MOST_DEVICES, WHOLE
from stowplan.objects.meta import ObjectMeta
from stowplan.objects.nodes import Node, NodeStatus
from stowplan.objects.pod_parts import Container, PodSpec, ResourceRequirements
from stowplan.objects.pods import Pod
from stowplan.objects.quantity import quantity
from stowplan.simulation.input_problems import InputProblems

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
MORE_POD_COLUMNS = ("gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time")
MOST = 10**12  # of any amount
MOST_PODS = 1001  # on a node: the study's; the lists say nothing of it
NAMESPACE = "openb"
HOSTNAME = "kubernetes.io/hostname"
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
Row = TypeVar("Row")


class OpenBNode(msgspec.Struct, frozen=True):
    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str

    def as_node(self) -> Node:
        """Return the node as Kubernetes would have it."""
        allocatable = {
            "cpu": quantity(f"{self.cpu_milli}m"),
            "memory": quantity(f"{self.memory_mib}Mi"),
            "pods": quantity(MOST_PODS),
            COUNT: quantity(self.gpus),
            MILLI: quantity(WHOLE),
        }
        labels = {MODELS: self.model} if self.model else {}
        metadata = ObjectMeta(name=self.name, uid=self.name, labels=labels)
        return Node(metadata, status=NodeStatus(allocatable=allocatable))

    def as_document(self) -> dict[str, Any]:
        """Return the node as an API server has it. Its GPUs are a resource: so many, and the model is a label."""
        amounts = {"cpu": f"{self.cpu_milli}m", "memory": f"{self.memory_mib}Mi", "pods": str(MOST_PODS)}
        amounts |= {COUNT: str(self.gpus)} if self.gpus else {}
        labels = {HOSTNAME: self.name} | ({MODELS: self.model} if self.model else {})
        metadata = {"name": self.name, "labels": labels}
        status = {"capacity": amounts, "allocatable": amounts}
        return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


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
        requests = {name: quantity(text) for name, text in self._requests().items()}
        metadata = ObjectMeta(name=self.name, namespace=NAMESPACE, uid=self.name, annotations=self._annotations())
        container = Container(name="main", resources=ResourceRequirements(requests=requests))
        return Pod(metadata, PodSpec(containers=(container,)))

    def as_document(self, scheduler_name: str) -> dict[str, Any]:
        """Return the pod as it is given to an API server."""
        metadata = {"name": self.name, "namespace": NAMESPACE, "annotations": self._annotations()}
        container = {"name": "main", "image": "simulated", "resources": {"requests": self._requests()}}
        spec = {"schedulerName": scheduler_name, "containers": [container]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _requests(self) -> dict[str, str]:
        return {"cpu": f"{self.cpu_milli}m", "memory": f"{self.memory_mib}Mi"}

    def _annotations(self) -> dict[str, str]:
        annotations = {MILLI: str(self.gpu_milli), COUNT: str(self.gpus)} if self.gpus else {}
        return annotations | ({MODELS: self.gpu_spec} if self.gpus and self.gpu_spec else {})


def read_nodes(data: bytes, file: str, problems: InputProblems | None = None) -> list[OpenBNode]:
    """Read a node list; `file` is its name, for errors."""
    return [row for _, row in _rows(data, file, NODE_COLUMNS, (), _node, problems)]


def read_pods(data: bytes, file: str, problems: InputProblems | None = None) -> list[OpenBPod]:
    """Read a pod list; `file` is its name, for errors. Times are not looked at."""
    return [row for _, row in pod_rows(data, file, problems)]


def pod_rows(data: bytes, file: str, problems: InputProblems | None = None) -> Iterator[tuple[Line, OpenBPod]]:
    """Yield each pod of a list with its line, which has the other columns."""
    return _rows(data, file, POD_COLUMNS, MORE_POD_COLUMNS, _pod, problems)


def is_list(data: bytes) -> bool:
    """True if the columns are those of a list of OpenB, of nodes or of pods, or meant to be."""
    columns = {each.strip() for each in data[:10_000].decode("utf-8-sig", "replace").partition("\n")[0].split(",")}
    return "cpu_milli" in columns or {"sn", "memory_mib"} <= columns


class Line:
    """A row of a file, and where it is."""

    def __init__(self, fields: Mapping[str, str], file: str, number: int) -> None:
        self.fields, self._file, self._number = fields, file, number

    @property
    def place(self) -> str:
        return f"line {self._number}"

    def text(self, column: str) -> str:
        return self.fields.get(column, "").strip()

    def number(self, column: str, most: int = MOST) -> int:
        text = self.text(column)
        if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= most):
            self.refuse(f"{column} is {text[:80]!r}", f"write a whole number from 0 to {most}")
        return int(text)

    def refuse(self, problem: str, remedy: str) -> NoReturn:
        raise ConfigError(problem, file=self._file, path=self.place, remedy=remedy)


def _node(line: Line) -> OpenBNode:
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


def _pod(line: Line) -> OpenBPod:
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


def _rows(
    data: bytes,
    file: str,
    needed: Collection[str],
    more: Collection[str],
    row_of: Callable[[Line], Row],
    problems: InputProblems | None,
) -> Iterator[tuple[Line, Row]]:
    names, number = dict[str, str](), 0
    for header, fields, number in _lines(data, file, needed, more):
        try:
            line = Line(_fields(header, fields, file, number), file, number)
            row = row_of(line)
            _check_name(line, line.text(next(iter(needed))), names)
        except ConfigError as error:
            if problems is None:
                raise
            problems.add(error)
        else:
            yield line, row
    if not number:
        raise ConfigError("has no rows", file=file, remedy=f"write a line of columns ({','.join(needed)}), then rows")


def _check_name(line: Line, name: str, names: dict[str, str]) -> None:
    if not name:
        line.refuse("the row has no name", "each row needs one of its own")
    if name in names:
        line.refuse(f"the name {name[:80]!r} is that of {names[name]}, too", "each row needs one of its own")
    names[name] = line.place


def _lines(
    data: bytes, file: str, needed: Collection[str], more: Collection[str]
) -> Iterator[tuple[list[str], list[str], int]]:
    """Yield each row with the columns and the number of its line."""
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
                yield header, fields, reader.line_num
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
