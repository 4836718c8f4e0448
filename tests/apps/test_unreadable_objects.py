"""The metric of objects that cannot be read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from prometheus_client import CollectorRegistry

from stowplan.apps.unreadable_objects import UnreadableGauge, event
from stowplan.kube.reflector import Reflector
from stowplan.kube.unreadable import UnreadableObject

FOUND = UnreadableObject("Pod", "Pod: shop/x cannot be read", "shop", "x", "u", "7", "stowplan")


def test_the_metric_counts_what_cannot_be_read_now() -> None:
    registry = CollectorRegistry()
    gauge, unreadable = UnreadableGauge(registry), {"shop/x": FOUND}
    reflectors = {"Pod": cast(Reflector, SimpleNamespace(cache=SimpleNamespace(unreadable=unreadable)))}
    for number in (1, 0):
        gauge.read(reflectors)
        assert registry.get_sample_value("stowplan_unreadable_objects", {"kind": "Pod"}) == number
        unreadable.clear()


def test_the_event_says_what_is_wrong() -> None:
    found = event(FOUND)
    assert (found.pod.namespace, found.pod.name, found.pod.uid) == ("shop", "x", "u")
    assert (found.reporting_controller, found.note) == ("stowplan", "Pod: shop/x cannot be read")
