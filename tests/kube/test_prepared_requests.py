"""What is written from prepared text is what would be written otherwise."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from stowplan.kube import action_requests, prepared_requests
from stowplan.objects.actions import Bind, ObjectRef, PodRef, Record

AT = datetime(2026, 3, 4, 5, 6, 7, 890, UTC)
POD = PodRef("shop", "web-7c9d-x2", "0b6a3c52-93b7")


def record(pod: PodRef = POD, note: str = "assigned", related: PodRef | None = None) -> Record:
    return Record(
        pod=pod,
        type="Normal",
        reason="Scheduled",
        action="Binding",
        note=note,
        reporting_controller="a-scheduler",
        related=related,
    )


def test_a_binding_is_the_same() -> None:
    action = Bind(pod=POD, node_name="node-1.example")
    (plain,) = action_requests.for_pod(action, None, AT)
    prepared = prepared_requests.binding(action)
    assert prepared is not None
    assert (prepared[0], msgspec.json.decode(prepared[1])) == (plain.path, plain.body)


def test_a_binding_with_annotations_is_written_in_full() -> None:
    action = Bind(pod=POD, node_name="node-1.example", annotations={"gpu": "0"})
    (plain,) = action_requests.for_pod(action, None, AT)
    assert isinstance(plain.body, dict)
    assert plain.body["metadata"]["annotations"] == {"gpu": "0"}
    assert prepared_requests.binding(action) is None


@pytest.mark.parametrize("note", ["", 'a "quoted" text\n', "ä" * 2000, "\ud800"])
def test_an_event_is_the_same(note: str) -> None:
    plain = action_requests.event(record(note=note), name="web.17", at=AT, host="here")
    prepared = prepared_requests.event(record(note=note), name="web.17", at=AT, host="here")
    assert prepared is not None
    assert (prepared[0], msgspec.json.decode(prepared[1])) == (plain.path, plain.body)


@pytest.mark.parametrize("odd", ['a"b', "a\\b", "a b", "a/b", "ä", "", "a\n", "a%2f", "a?b"])
def test_odd_names_are_not_for_prepared_text(odd: str) -> None:
    for pod in (PodRef(odd, "p", "u"), PodRef("n", odd, "u"), PodRef("n", "p", odd)):
        assert prepared_requests.binding(Bind(pod=pod, node_name="n")) is None
        assert prepared_requests.event(record(pod), name="e", at=AT, host="h") is None
    if odd != "a/b":  # which is no escape in JSON, and the node is no part of the path
        assert prepared_requests.binding(Bind(pod=POD, node_name=odd)) is None


def test_events_of_another_form_are_not_for_prepared_text() -> None:
    assert (
        prepared_requests.event(record(ObjectRef("n", "g", "u", "PodGroup", "v1")), name="e", at=AT, host="h") is None
    )
    assert prepared_requests.event(record(related=POD), name="e", at=AT, host="h") is None
