"""What a pod asks of GPUs: whole ones, a share of one, or an amount of its memory. Three ways to say so are read.

    nvidia.com/gpu                          a resource: so many whole GPUs
    alibabacloud.com/gpu-milli, gpu-count,  annotations of Alibaba's GPU sharing: thousandths of each GPU (1 to 1000),
      gpu-card-model                          how many GPUs, and which models, divided by |
    gpu-fraction, gpu-memory,               annotations of KAI: a part of each GPU (above 0, up to 1), or MiB of the
      gpu-fraction-num-devices                memory of each, and how many GPUs

Which GPUs a pod got is in the annotation alibabacloud.com/gpu-index: their numbers on the node, divided by dashes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache

import msgspec

from stowplan.objects.meta import ObjectMeta

WHOLE = 1000  # thousandths of a GPU
MOST_DEVICES = 64  # of one pod, or of one node
RESOURCE = "nvidia.com/gpu"
MILLI = "alibabacloud.com/gpu-milli"
COUNT = "alibabacloud.com/gpu-count"
MODELS = "alibabacloud.com/gpu-card-model"
INDEX = "alibabacloud.com/gpu-index"
FRACTION = "gpu-fraction"
MEMORY = "gpu-memory"
FRACTION_COUNT = "gpu-fraction-num-devices"
ASKING = (MILLI, COUNT, MODELS, FRACTION, MEMORY, FRACTION_COUNT)

_whole_number = re.compile(r"[0-9]{1,9}").fullmatch
_fraction = re.compile(r"0?\.[0-9]{1,9}|[01](\.[0-9]{0,9})?").fullmatch


class GpuRequest(msgspec.Struct, frozen=True):
    """What a pod asks for.

    count     GPUs, all on one node
    milli     thousandths of each
    memory    MiB of each; if it is not 0, it counts instead of `milli`
    models    the models that are allowed; empty: all
    problem   what is wrong with the annotations; then no node can be right
    """

    count: int
    milli: int = WHOLE
    memory: int = 0
    models: frozenset[str] = frozenset()
    problem: str = ""

    @property
    def whole(self) -> bool:
        return self.milli == WHOLE and not self.memory

    @property
    def kind(self) -> int:
        """The number of whole GPUs; 0 for shares."""
        return self.count if self.whole else 0


class _InvalidError(Exception):
    pass


def annotations_of(metadata: ObjectMeta) -> tuple[tuple[str, str], ...]:
    """Return the annotations that say what a pod asks of GPUs: they are a part of its shape."""
    annotations = metadata.annotations
    if not annotations:
        return ()
    return tuple([(name, annotations[name]) for name in ASKING if name in annotations])


def of(metadata: ObjectMeta, request: Mapping[str, int]) -> GpuRequest | None:
    """Return what a pod asks of GPUs; None if it asks for none."""
    given, resource = dict(annotations_of(metadata)), request.get(RESOURCE, 0)
    try:
        found = _of(given, resource)
    except _InvalidError as error:
        return GpuRequest(0, problem=str(error))
    if found is not None and MODELS in given:
        models = frozenset(filter(None, (each.strip() for each in given[MODELS].split("|"))))
        return msgspec.structs.replace(found, models=models)
    return found


def _of(given: Mapping[str, str], resource: int) -> GpuRequest | None:
    ways = [name for name in (MILLI, FRACTION, MEMORY) if name in given]
    if COUNT in given and MILLI not in given:
        ways.append(COUNT)
    if resource > 0:
        ways.append(RESOURCE)
    if len(ways) > 1:
        raise _InvalidError(f"{ways[0]} and {ways[1]} cannot be combined")
    match ways:
        case []:
            return None
        case [name] if name == RESOURCE:
            return GpuRequest(_number(RESOURCE, str(resource), 1, MOST_DEVICES))
        case [name] if name in (MILLI, COUNT):
            count = _number(COUNT, given.get(COUNT, "1"), 0, MOST_DEVICES)
            return GpuRequest(count, _number(MILLI, given.get(MILLI, "1000"), 1, WHOLE)) if count else None
        case _:
            return _of_kai(given)


def _of_kai(given: Mapping[str, str]) -> GpuRequest:
    count = _number(FRACTION_COUNT, given.get(FRACTION_COUNT, "1"), 1, MOST_DEVICES)
    if MEMORY in given:
        return GpuRequest(count, memory=_number(MEMORY, given[MEMORY], 1, 10**9))
    text = given[FRACTION]
    milli = math.ceil(Decimal(text) * WHOLE) if _fraction(text) else 0
    if not 0 < milli <= WHOLE:
        raise _InvalidError(f"annotation {FRACTION} is {text!r}, and not a number above 0 and up to 1")
    return GpuRequest(count, milli)


def _number(name: str, text: str, least: int, most: int) -> int:
    number = int(text) if _whole_number(text) else -1
    if not least <= number <= most:
        raise _InvalidError(f"{name} is {text!r}, and not a whole number from {least} to {most}")
    return number


@lru_cache(maxsize=4096)
def indexes(text: str) -> tuple[int, ...] | None:
    """Return the numbers of a pod's GPUs, as the annotation has them; None if it cannot be read."""
    parts = text.split("-")
    if not all(map(_whole_number, parts)):
        return None
    found = tuple(map(int, parts))
    return found if len(set(found)) == len(found) and max(found) < MOST_DEVICES else None


def index_text(devices: tuple[int, ...]) -> str:
    """Return the annotation's value for these GPUs."""
    return "-".join(map(str, devices))
