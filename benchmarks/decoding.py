"""Decoding a pod as a real API server sends it, against reading the same text into plain dictionaries."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import msgspec

from benchmarks.figures import Comparison
from stowplan.objects import kinds
from stowplan.objects.pods import Pod

FILE = Path(__file__).parent / "data" / "pod.json"
EACH = 50


def run(rounds: int) -> list[Comparison]:
    text = msgspec.json.encode(json.loads(FILE.read_bytes()))  # on the wire there is no white space
    ours, plain = [], []
    for _ in range(rounds):
        ours.append(_microseconds(lambda: kinds.decode(Pod, text)))
        plain.append(_microseconds(lambda: json.loads(text)))
    value, against = median(ours), median(plain)
    return [
        Comparison(
            workload="decode-pod",
            case=f"{len(text):,} bytes of JSON",
            nodes=0,
            pods=rounds * EACH,
            unit="µs",
            value=value,
            against=against,
            ratio=value / against,
            pods_per_s=1e6 / value,
            note="against json.loads",
        )
    ]


def _microseconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    for _ in range(EACH):
        work()
    return 1e6 * (perf_counter() - start) / EACH
