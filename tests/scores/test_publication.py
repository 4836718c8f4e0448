"""What is written and when: what changed, what would soon expire, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stowplan.objects.clusters import AddOnPlacementScoreStatus as Status
from stowplan.objects.clusters import ClusterCondition, ScoreItem
from stowplan.objects.errors import ConfigError
from stowplan.scores import Validity, status_due, status_failed
from stowplan.scores.writer import as_document

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
EARLIER = NOW - timedelta(hours=1)
FOR_TEN_MINUTES = Validity(600, 180, 0.1)
FINE = ClusterCondition(
    "AddOnPlacementScoreUpdated", "True", "AddOnPlacementScoreUpdated", "AddOnPlacementScore updated successfully",
    last_transition_time=EARLIER,
)  # fmt: skip
OTHER = ClusterCondition("Strange", "True", "Whatever", last_transition_time=EARLIER)


def written(left: float | None = 500, condition: ClusterCondition | None = FINE, **scores: int) -> Status:
    """A status that another writer left."""
    until = None if left is None else NOW + timedelta(seconds=left)
    conditions = () if condition is None else (condition,)
    return Status(conditions, tuple(ScoreItem(name, value) for name, value in scores.items()), until)


@pytest.mark.parametrize(
    ("known", "validity", "due"),
    [
        pytest.param(Status(), FOR_TEN_MINUTES, True, id="nothing was ever written"),
        pytest.param(written(cpu=5), FOR_TEN_MINUTES, False, id="the same, valid for long"),
        pytest.param(written(181, cpu=5), FOR_TEN_MINUTES, False, id="a little more than the margin is left"),
        pytest.param(written(180, cpu=5), FOR_TEN_MINUTES, True, id="the margin is reached"),
        pytest.param(written(-1, cpu=5), FOR_TEN_MINUTES, True, id="expired"),
        pytest.param(written(cpu=6), FOR_TEN_MINUTES, True, id="another value"),
        pytest.param(written(cpu=5, mem=1), FOR_TEN_MINUTES, True, id="a score too many"),
        pytest.param(written(None, cpu=5), FOR_TEN_MINUTES, True, id="valid for ever, which it should not be"),
        pytest.param(written(601, cpu=5), FOR_TEN_MINUTES, True, id="valid for longer than it should be"),
        pytest.param(written(condition=None, cpu=5), FOR_TEN_MINUTES, True, id="without a condition"),
        pytest.param(written(None, cpu=5), Validity(None), False, id="valid for ever, as it should be"),
        pytest.param(written(500, cpu=5), Validity(None), True, id="valid for a while, should be for ever"),
    ],
)
def test_when_scores_are_written(known: Status, validity: Validity, due: bool) -> None:
    found = status_due(known, {"cpu": 5}, NOW, validity=validity, draw=0.5)
    assert (found is not None) is due
    if found is not None:
        assert found.scores == (ScoreItem("cpu", 5),)


def test_a_condition_turns_when_it_turns() -> None:
    again = status_due(written(0, cpu=5), {"cpu": 5}, NOW, validity=FOR_TEN_MINUTES, draw=0)
    assert again is not None and again.conditions == (FINE,), "the same, since then"
    failed = status_failed(written(400, cpu=5), "NoValue", "the query gives no value", NOW)
    assert failed is not None
    assert (failed.scores, failed.valid_until) == (written(400, cpu=5).scores, written(400).valid_until)
    (message,) = failed.conditions
    assert (message.status, message.reason, message.last_transition_time) == ("False", "NoValue", NOW)
    assert status_failed(failed, "NoValue", "the query gives no value", NOW + timedelta(minutes=1)) is None
    later = NOW + timedelta(minutes=2)
    well = status_due(failed, {"cpu": 5}, later, validity=FOR_TEN_MINUTES, draw=0)
    assert well is not None and well.conditions[0].last_transition_time == later


def test_conditions_of_others_stay() -> None:
    found = status_due(Status((OTHER,)), {"cpu": 5}, NOW, validity=FOR_TEN_MINUTES, draw=0)
    assert found is not None and [each.type for each in found.conditions] == ["Strange", "AddOnPlacementScoreUpdated"]


@pytest.mark.parametrize(
    ("draw", "seconds"), [pytest.param(0.0, 600, id="all of it"), pytest.param(1.0, 540, id="a tenth less")]
)
def test_how_long_scores_count(draw: float, seconds: float) -> None:
    assert FOR_TEN_MINUTES.until(NOW, draw) == NOW + timedelta(seconds=seconds)
    assert Validity(None).until(NOW, draw) is None


@example(draw=0.0, seconds=1.9999999998835847, jitter=0.0, part=0.0)
@given(st.floats(0, 1), st.floats(1, 1e6), st.floats(0, 0.9), st.floats(0, 0.99))
def test_what_was_just_written_is_not_due(draw: float, seconds: float, jitter: float, part: float) -> None:
    """And it never counts for longer than it should."""
    margin = seconds * (1 - jitter) * part - 1  # the API has whole seconds only
    validity = Validity(seconds, margin, jitter)
    until = validity.until(NOW, draw)
    assert until is not None and NOW + timedelta(seconds=margin) < until <= NOW + timedelta(seconds=seconds)
    assert not validity.is_due(until, NOW)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"seconds": 100, "margin": 100}, "due again at once", id="no longer than the margin"),
        pytest.param({"seconds": 190, "margin": 180, "jitter": 0.1}, "expected more than 200 s", id="but for chance"),
        pytest.param({"jitter": 1.0}, "jitter: found 1", id="nothing but chance"),
    ],
)
def test_unusable_validity(options: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Validity(**options)


def test_the_document_is_as_in_the_seed() -> None:
    """A value of 0 and an empty message are written; a missing value is null, so that a patch removes it."""
    status = Status((FINE, ClusterCondition("Strange", "True", "Whatever")), (ScoreItem("workload", 0),))
    assert as_document(status) == {
        "scores": [{"name": "workload", "value": 0}],
        "validUntil": None,
        "conditions": [
            {
                "type": "AddOnPlacementScoreUpdated", "status": "True", "reason": "AddOnPlacementScoreUpdated",
                "message": "AddOnPlacementScore updated successfully", "lastTransitionTime": "2026-01-01T11:00:00Z",
            },
            {"type": "Strange", "status": "True", "reason": "Whatever", "message": ""},
        ],
    }  # fmt: skip
    assert as_document(written(60, cpu=1))["validUntil"] == "2026-01-01T12:01:00Z"
