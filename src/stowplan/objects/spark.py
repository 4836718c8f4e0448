"""The executors that a Spark driver announces in its annotations, in the spelling of Palantir or of KubeNexus.

    spark-executor-cpu, -mem, -nvidia.com/gpu, -count           kubenexus.io/executor-cpu, -memory, -gpu, -count
    spark-dynamic-allocation-enabled                            kubenexus.io/dynamic-allocation-enabled
    spark-dynamic-allocation-min-executor-count, -max-…         kubenexus.io/min-executors, max-executors

If both are given, the first one counts. The driver's own requests are those of its containers; `spark-driver-*` is
ignored. A driver without these annotations is an ordinary pod; unless the labels of its group say how many pods must
run together (`of_group`): the others of that number are executors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from stowplan.objects import quantity
from stowplan.objects.applications import BY_LABELS, identity, is_driver
from stowplan.objects.pods import Pod, once_per_pod
from stowplan.objects.reservations import GPU, amounts

CPU = ("spark-executor-cpu", "kubenexus.io/executor-cpu")
MEMORY = ("spark-executor-mem", "kubenexus.io/executor-memory")
GPUS = (f"spark-executor-{GPU}", "kubenexus.io/executor-gpu")
COUNT = ("spark-executor-count", "kubenexus.io/executor-count")
DYNAMIC = ("spark-dynamic-allocation-enabled", "kubenexus.io/dynamic-allocation-enabled")
LEAST = ("spark-dynamic-allocation-min-executor-count", "kubenexus.io/min-executors")
MOST = ("spark-dynamic-allocation-max-executor-count", "kubenexus.io/max-executors")
EVERY = (*CPU, *MEMORY, *GPUS, *COUNT, *DYNAMIC, *LEAST, *MOST)
TRUE, FALSE = ("1", "t", "true"), ("0", "f", "false", "")
MOST_EXECUTORS = 100_000
Value = TypeVar("Value")


class Executors(msgspec.Struct, frozen=True):
    """The requests of each executor, and the minimum and maximum number of executors; or the problem."""

    resources: dict[str, str] = {}
    least: int = 0
    most: int = 0
    problem: str = ""

    @property
    def amounts(self) -> dict[str, int]:
        return amounts(self.resources)


def executors(pod: Pod) -> Executors | None:
    """Return the executors that a driver announces; None for other pods, and for drivers that announce none."""
    if not pod.metadata.annotations or not is_driver(pod):
        return None
    return _executors(pod)


@once_per_pod
def _executors(pod: Pod) -> Executors | None:
    return _read(pod.annotations) if any(key in pod.annotations for key in EVERY) else None


def of_group(pod: Pod, resources: Mapping[str, str]) -> Executors | None:
    """Return the executors of a driver that only the labels of its group announce; None for other pods.

    `resources`: what each of them requests; if empty, as much as the driver. There may be more of them than the number
    says, which is a minimum.
    """
    if not is_driver(pod) or executors(pod) is not None:
        return None
    found = identity(pod)
    if found.source != BY_LABELS or found.problem or found.minimum < 2:
        return None
    asked = dict(resources) or {name: quantity_text(name, amount) for name, amount in pod.request.items() if amount}
    return Executors(asked, min(found.minimum - 1, MOST_EXECUTORS), MOST_EXECUTORS)


def quantity_text(resource: str, amount: int) -> str:
    """Return an amount of the columns as a quantity."""
    return f"{amount}m" if resource == "cpu" else str(amount)


def hint_for_driver(pod: Pod) -> str:
    """Return a hint for a driver that announces no executors, and so waits for pods that only itself creates."""
    if not is_driver(pod) or executors(pod) is not None:
        return ""
    needed = f"{CPU[0]}, {MEMORY[0]} and {COUNT[0]}"
    return (
        "a driver creates its executors when it runs: the plugin ResourceReservation reserves room for them instead, "
        f"if the driver has the annotations {needed}, or with executorsFromGroup"
    )


class _ProblemError(Exception):
    """A problem with an annotation."""


def _read(annotations: Mapping[str, str]) -> Executors:
    try:
        resources = {"cpu": _given(annotations, CPU, _amount), "memory": _given(annotations, MEMORY, _amount)}
        if any(key in annotations for key in GPUS):
            resources[GPU] = _given(annotations, GPUS, _amount)
        least, most = _counts(annotations)
    except _ProblemError as problem:
        return Executors(problem=str(problem))
    return Executors(resources, least, most)


def _counts(annotations: Mapping[str, str]) -> tuple[int, int]:
    if not any(key in annotations for key in DYNAMIC) or not _given(annotations, DYNAMIC, _flag):
        count = _given(annotations, COUNT, _number)
        return count, count
    least, most = _given(annotations, LEAST, _number), _given(annotations, MOST, _number)
    if most < least:
        raise _ProblemError(f"the maximum of {most} executors is less than the minimum of {least}")
    return least, most


def _given(annotations: Mapping[str, str], keys: tuple[str, ...], read: Callable[[str], Value]) -> Value:
    for key in keys:
        if key in annotations:
            try:
                return read(annotations[key])
            except ValueError as error:
                raise _ProblemError(f"annotation {key}: {error}") from None
    raise _ProblemError(f"annotation {keys[0]} is missing")


def _amount(text: str) -> str:
    if quantity.nanos(text) < 0:
        raise ValueError(f"expected a quantity such as 500m or 1Gi, found {text!r}")
    return text


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= MOST_EXECUTORS):
        raise ValueError(f"expected a number of executors up to {MOST_EXECUTORS}, found {text!r}")
    return int(text)


def _flag(text: str) -> bool:
    if text.lower() not in (*TRUE, *FALSE):
        raise ValueError(f"expected true or false, found {text!r}")
    return text.lower() in TRUE
