"""`an_object` makes objects of any kind, in both spellings, and knows what a kind does not have."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import ApiValue, Object
from stowplan.objects.workloads import PriorityClass
from stowplan.testing import an_object


class Seat(ApiValue, frozen=True):
    on_floor: int = 0


class DeskSpec(ApiValue, frozen=True):
    max_seats: int = 0
    seats: tuple[Seat, ...] = ()
    by_name: dict[str, Seat] = msgspec.field(default_factory=dict)
    best: Seat | None = None


class Desk(Object, frozen=True):
    spec: DeskSpec = DeskSpec()
    open_now: bool = False


WHOLE = Desk(
    metadata=an_object(Desk, "d", namespace="n", labels={"a": "b"}).metadata,
    spec=DeskSpec(3, (Seat(1),), {"its_name": Seat(2)}, Seat(4)),
    open_now=True,
)


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        pytest.param(
            {"max_seats": 3, "seats": [{"on_floor": 1}], "by_name": {"its_name": {"on_floor": 2}}, "best": Seat(4)},
            {"open_now": True},
            id="as in Python",
        ),
        pytest.param(
            {"maxSeats": 3, "seats": [{"onFloor": 1}], "byName": {"its_name": {"onFloor": 2}}, "best": {"onFloor": 4}},
            {"openNow": True},
            id="as in a manifest",
        ),
        pytest.param(WHOLE.spec, {"open_now": True}, id="a value of its class"),
    ],
)
def test_both_spellings(spec: Any, fields: dict[str, Any]) -> None:
    assert an_object(Desk, "d", namespace="n", labels={"a": "b"}, spec=spec, **fields) == WHOLE
    assert WHOLE.key == "n/d" and WHOLE.uid == "uid-of-n/d" and WHOLE.labels == {"a": "b"}


def test_without_a_namespace() -> None:
    assert an_object(PriorityClass, "high", value=7).key == "high"
    assert an_object(PriorityClass, "high", value=7).value == 7


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        pytest.param(
            {"spec": {"maxseat": 1}}, "DeskSpec has no field 'maxseat' .at spec.maxseat.; did you mean", id="spec"
        ),
        pytest.param({"spec": {"seats": [{"floor": 1}]}}, r"at spec.seats\[0\].floor\); did you mean", id="deeper"),
        pytest.param({"status": {"x": 1}}, "Desk has no field 'status'", id="no status"),
        pytest.param({"opened": 1}, "Desk has no field 'opened'", id="beside the spec"),
        pytest.param({"spec": {"max_seats": 1, "maxSeats": 1}}, "spec.maxSeats is given twice", id="twice"),
    ],
)
def test_a_field_that_does_not_exist(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        an_object(Desk, "d", **fields)


def test_a_value_of_a_wrong_type() -> None:
    with pytest.raises(ConfigError, match=r"Desk d: spec\.maxSeats"):
        an_object(Desk, "d", spec={"max_seats": "many"})
