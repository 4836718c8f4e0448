"""Workloads, each at all sizes at once: the sizes take turns, so that growth is not an accident of the moment."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from benchmarks.arena import Arena
from benchmarks.figures import Figure
from benchmarks.race import Lane, race
from benchmarks.workload import Workload
from benchmarks.yardstick import Yardstick
from stowplan.framework.profile import Profile


def run(
    workload: Workload, sizes: Sequence[int], profile: Profile, rounds: int, basic: Sequence[Figure]
) -> list[Figure]:
    """A figure for each size; `basic` has those to compare with, none while this is basic itself."""
    cases = [case for size in sorted(sizes) if (case := workload.at(size)) is not None]
    arenas = [Arena(workload, case, profile, rounds) for case in cases]
    there = [len(arena.state.pods) for arena in arenas]
    lanes = [Lane(arena.batch, Yardstick(arena.state)) for arena in arenas]
    race(lanes, rounds)
    growths = [None, *(larger.ratio_to(smaller) for smaller, larger in pairwise(lanes))]
    return [
        _figure(workload, arena, lane, growth, before, basic)
        for arena, lane, growth, before in zip(arenas, lanes, growths, there, strict=True)
    ]


def _figure(
    workload: Workload, arena: Arena, lane: Lane, growth: float | None, before: int, basic: Sequence[Figure]
) -> Figure:
    like = next((figure for figure in basic if figure.nodes == arena.nodes), None)
    itself = 1.0 if workload.name == "basic" else None
    return Figure(
        workload=workload.name,
        nodes=arena.nodes,
        pods=lane.decisions,
        pods_per_s=lane.decisions / lane.seconds,
        microseconds=lane.microseconds,
        yardsticks=lane.yardsticks,
        yardstick_microseconds=lane.pass_microseconds,
        growth=growth,
        times_basic=itself if like is None else lane.yardsticks / like.yardsticks,
        bytes_per_node=arena.bytes_per_node,
        bytes_per_pod=arena.bytes_per_pod,
        bound_before=before,
        placed=arena.placed,
        preempted=arena.preempted,
        without_node=arena.without_node,
    )
