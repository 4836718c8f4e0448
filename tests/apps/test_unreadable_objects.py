"""The gauges of what is followed: objects that cannot be read, and silent watches."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from prometheus_client import CollectorRegistry

from stowplan.apps.reflector_gauges import ReflectorGauges
from stowplan.apps.unreadable_objects import event
from stowplan.kube.reflector import Reflector
from stowplan.kube.unreadable import UnreadableObject

FOUND = UnreadableObject("Pod", "Pod: shop/x cannot be read", "shop", "x", "u", "7", "stowplan")


def test_the_metric_counts_what_cannot_be_read_now() -> None:
    registry = CollectorRegistry()
    gauge, unreadable = ReflectorGauges(registry), {"shop/x": FOUND}
    reflectors = {"Pod": a_reflector(unreadable)}
    for number in (1, 0):
        gauge.read(reflectors)
        assert registry.get_sample_value("stowplan_unreadable_objects", {"kind": "Pod"}) == number
        unreadable.clear()


def test_for_how_long_nothing_was_heard() -> None:
    registry, times = CollectorRegistry(), [100.0, 160.0, 161.0]
    gauge, reflector = ReflectorGauges(registry, lambda: times.pop(0)), a_reflector({}, heard=100.0)
    for seconds, heard in ((0.0, 100.0), (60.0, 161.0), (0.0, 170.0)):
        gauge.read({"Pod": reflector})
        assert registry.get_sample_value("stowplan_watch_silence_seconds", {"kind": "Pod"}) == seconds
        reflector.heard = heard


def a_reflector(unreadable: dict[str, UnreadableObject], heard: float = 0.0) -> Reflector:
    return cast(Reflector, SimpleNamespace(cache=SimpleNamespace(unreadable=unreadable), heard=heard))


def test_the_event_says_what_is_wrong() -> None:
    found = event(FOUND)
    assert (found.pod.namespace, found.pod.name, found.pod.uid) == ("shop", "x", "u")
    assert (found.reporting_controller, found.note) == ("stowplan", "Pod: shop/x cannot be read")
