"""Typical pods: the shapes that most pods of a workload have, and how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from stowplan.objects.errors import ConfigError
from stowplan.objects.gpu_requests import MOST_DEVICES, WHOLE

KEPT = Fraction(95, 100)  # of all pods


@dataclass(frozen=True)
class TypicalPod:
    """A shape of pods, and how many pods have it: of a list, or as a weight. `models`: those allowed; empty: all."""

    cpu_milli: int
    gpus: int = 0
    gpu_milli: int = WHOLE
    models: tuple[str, ...] = ()
    count: int = 1


# If nothing is known of the workload: as many shares of three sizes, single GPUs, and pairs, fours and eights of them.
ANY_WORKLOAD = (
    *(TypicalPod(0, 1, milli) for milli in (250, 500, 750)),
    *(TypicalPod(0, gpus) for gpus in (1, 2, 4, 8)),
)


def most_frequent(shapes: Iterable[tuple[int, int, int, str]], kept: Fraction = KEPT) -> tuple[TypicalPod, ...]:
    """Return the most frequent of these shapes, (cpu, thousandths of each GPU, GPUs, models divided by |).

    So many that they are the shapes of this part of all pods. Among equally frequent ones the larger go first.
    """
    counted = Counter(shapes)
    order = sorted(counted, key=lambda shape: (counted[shape], shape), reverse=True)
    missing = kept * counted.total()
    typical = []
    for shape in order:
        if missing <= 0:
            break
        cpu, milli, gpus, models = shape
        allowed = tuple(filter(None, models.split("|"))) if gpus else ()
        typical.append(TypicalPod(cpu, gpus, milli if gpus else 0, allowed, counted[shape]))
        missing -= counted[shape]
    return tuple(typical)


def checked(typical: Iterable[TypicalPod]) -> tuple[TypicalPod, ...]:
    """Return the typical pods of a configuration, if they make sense."""
    found = tuple(typical)
    if not found:
        raise ConfigError("typicalPods is empty", remedy="list the shapes that most of your pods have, with counts")
    for at, each in enumerate(found):
        limits = (
            ("cpuMilli", each.cpu_milli, 0, 10**9),
            ("gpus", each.gpus, 0, MOST_DEVICES),
            ("gpuMilli", each.gpu_milli, 0 if not each.gpus else 1, WHOLE),
            ("count", each.count, 1, 10**9),
        )
        for name, number, least, most in limits:
            if not least <= number <= most:
                remedy = f"choose {least} to {most}"
                raise ConfigError(f"typicalPods[{at}].{name} is {number}", remedy=remedy)
    return found
