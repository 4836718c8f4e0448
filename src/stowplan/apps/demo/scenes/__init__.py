"""The scenes of the demo, in order. Each has a function `play` that takes a seed and returns what was seen."""

from __future__ import annotations

from collections.abc import Callable

from stowplan.apps.demo.scene import Scene
from stowplan.apps.demo.scenes import defaults, devices, flavours, gangs, placement, remedy, returning_pod, shares

SCENES: tuple[Callable[[int], Scene], ...] = (
    defaults.play,
    flavours.play,
    returning_pod.play,
    gangs.play,
    shares.play,
    devices.play,
    placement.play,
    remedy.play,
)
