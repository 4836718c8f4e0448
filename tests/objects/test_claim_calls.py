"""The calls that write claims, and what is done when the server does not take them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from stowplan.objects import claim_calls
from stowplan.objects.actions import AllocateClaims, ClaimAction, ClaimWrite, DeallocateClaim, PodRef, ReleaseClaims
from stowplan.objects.claim_calls import ClaimAnswer, ClaimCall, ClaimOutcome
from stowplan.objects.kinds import convert
from stowplan.objects.resource_claims import (
    FINALIZER,
    AllocatedDevice,
    AllocatedDevices,
    AllocationResult,
    ClaimConsumer,
    ResourceClaim,
)

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
POD = PodRef("default", "pod", "pod-uid")
GIVEN = AllocationResult(devices=AllocatedDevices(results=(AllocatedDevice("r", "d", "p", "gpu-0"),)))
CONFLICT = ClaimAnswer(409, message="the object has been modified")


def a_claim(version: str = "1", **metadata: Any) -> ResourceClaim:
    about = {"name": "mine", "namespace": "default", "uid": "claim-uid", "resourceVersion": version, **metadata}
    return convert(ResourceClaim, {"metadata": about})


def allocated(claim: ResourceClaim, allocation: AllocationResult = GIVEN) -> ResourceClaim:
    return msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, allocation=allocation))


def told(action: ClaimAction, known: ResourceClaim | None, *answers: ClaimAnswer) -> tuple[list[str], ClaimOutcome]:
    """Return the calls in short, when they are answered like this, and how it ended."""
    conversation = claim_calls.calls(action, lambda _: known, NOW)
    made: list[str] = []
    waiting = list(answers)
    answer: ClaimAnswer | None = None
    while True:
        try:
            call = next(conversation) if answer is None else conversation.send(answer)
        except StopIteration as end:
            assert not waiting, "fewer calls than answers"
            return made, end.value
        made.append(_short(call))
        answer = waiting.pop(0)


def _short(call: ClaimCall) -> str:
    return f"{call.verb} {call.resource}{'/' if call.subresource else ''}{call.subresource} {call.version}".strip()


def allocating(**fields: Any) -> AllocateClaims:
    return AllocateClaims(pod=POD, claims=(ClaimWrite("default/mine", "claim-uid", GIVEN, **fields),))


def test_first_the_finalizer_then_allocation_and_user_at_once() -> None:
    finalized, done = a_claim("2", finalizers=[FINALIZER]), a_claim("3")
    made, outcome = told(allocating(), a_claim(), ClaimAnswer(200, finalized), ClaimAnswer(200, done))
    assert made == ["update resourceclaims 1", "update resourceclaims/status 2"]
    assert outcome == ClaimOutcome()


def test_the_status_has_the_time_and_the_user() -> None:
    conversation = claim_calls.calls(allocating(), lambda _: a_claim(finalizers=[FINALIZER]), NOW)
    body = next(conversation).body
    assert body is not None
    assert body["status"]["reservedFor"] == [{"resource": "pods", "name": "pod", "uid": "pod-uid"}]
    assert body["status"]["allocation"]["allocationTimestamp"] == "2026-11-19T12:00:00Z"


def test_after_a_conflict_it_is_read_again_and_what_is_left_is_written() -> None:
    finalized = a_claim("5", finalizers=[FINALIZER])
    answers = (CONFLICT, ClaimAnswer(200, finalized), ClaimAnswer(200, a_claim("6")))
    made, outcome = told(allocating(), a_claim(), *answers)
    assert made == ["update resourceclaims 1", "get resourceclaims", "update resourceclaims/status 5"]
    assert outcome == ClaimOutcome()


def test_a_conflict_without_end_is_given_up() -> None:
    answers = [CONFLICT, *[ClaimAnswer(200, a_claim()), CONFLICT] * (claim_calls.MOST_TRIES - 1)]
    _, outcome = told(allocating(), a_claim(), *answers)
    problem = "add allocation and reservation to claim default/mine: the object has been modified"
    assert outcome == ClaimOutcome(409, problem)


@pytest.mark.parametrize(
    ("known", "problem"),
    [
        pytest.param(a_claim(deletionTimestamp="2026-01-01T00:00:00Z"), "got deleted in the meantime", id="deleted"),
        pytest.param(a_claim(uid="another"), "got deleted in the meantime", id="made again"),
        pytest.param(allocated(a_claim()), "got allocated elsewhere in the meantime", id="allocated"),
    ],
)
def test_a_claim_that_is_not_free_any_more(known: ResourceClaim, problem: str) -> None:
    made, outcome = told(allocating(), known)
    assert made == []
    assert outcome.message == f"claim default/mine {problem}"


def test_members_of_a_group_write_the_same_allocation() -> None:
    made, outcome = told(allocating(together=True), allocated(a_claim()), *[ClaimAnswer(200, a_claim("2"))] * 2)
    assert made == ["update resourceclaims 1", "update resourceclaims/status 2"]
    assert outcome == ClaimOutcome()


def test_what_an_earlier_try_wrote_is_not_written_again() -> None:
    ours = allocated(a_claim("2", finalizers=[FINALIZER]))
    users = convert(ResourceClaim, {"status": {"reservedFor": [{"resource": "pods", "name": "pod", "uid": "pod-uid"}]}})
    status = msgspec.structs.replace(ours.status, reserved_for=users.status.reserved_for)
    ours = msgspec.structs.replace(ours, status=status)
    answers = (CONFLICT, ClaimAnswer(200, ours))
    made, outcome = told(allocating(together=True), a_claim(finalizers=[FINALIZER]), *answers)
    assert made == ["update resourceclaims/status 1", "get resourceclaims"]
    assert outcome == ClaimOutcome()


def test_a_refusal_is_told_in_the_words_of_kube_scheduler() -> None:
    write = ClaimWrite("default/mine", "claim-uid")
    refused = ClaimAnswer(422, message="Too many: 257")
    _, outcome = told(AllocateClaims(pod=POD, claims=(write,)), allocated(a_claim()), refused)
    assert outcome == ClaimOutcome(422, "add reservation to claim default/mine: Too many: 257")


def test_a_claim_is_deallocated_by_an_empty_status() -> None:
    conversation = claim_calls.calls(
        DeallocateClaim(pod=POD, key="default/mine", uid="claim-uid"), lambda _: allocated(a_claim()), NOW
    )
    assert next(conversation).body == {"status": {}}


def test_a_claim_that_got_a_user_in_the_meantime_is_not_deallocated() -> None:
    taken = allocated(a_claim())
    users = (ClaimConsumer(resource="pods", name="other", uid="other-uid"),)
    taken = msgspec.structs.replace(taken, status=msgspec.structs.replace(taken.status, reserved_for=users))
    action = DeallocateClaim(pod=POD, key="default/mine", uid="claim-uid")
    conversation = claim_calls.calls(action, lambda _: taken, NOW)
    with pytest.raises(StopIteration) as end:
        next(conversation)
    assert end.value.value == ClaimOutcome(409, "claim default/mine got reserved in the meantime")


def test_an_allocation_whose_answer_was_lost_is_not_taken_for_a_strangers() -> None:
    there = allocated(a_claim())
    users = (ClaimConsumer(resource="pods", name=POD.name, uid=POD.uid),)
    there = msgspec.structs.replace(there, status=msgspec.structs.replace(there.status, reserved_for=users))
    write = ClaimWrite("default/mine", "claim-uid", there.allocation)
    made, outcome = told(AllocateClaims(pod=POD, claims=(write,)), there)
    assert (made, outcome) == ([], ClaimOutcome())


def test_a_claim_that_was_made_for_the_pod_is_deleted_without_its_finalizer() -> None:
    action = ReleaseClaims(pod=POD, claims={"default/mine": "claim-uid"}, delete=("default/mine",))
    answers = (CONFLICT, ClaimAnswer(200, a_claim("2")), ClaimAnswer(200, a_claim("3")), ClaimAnswer(404))
    made, outcome = told(action, a_claim(finalizers=[FINALIZER]), *answers)
    calls = ["update resourceclaims 1", "get resourceclaims", "update resourceclaims 2", "delete resourceclaims"]
    assert (made, outcome) == (calls, ClaimOutcome())


def test_a_pod_is_taken_out_of_the_users() -> None:
    action = ReleaseClaims(pod=POD, claims={"default/mine": "claim-uid"})
    call = next(claim_calls.calls(action, lambda _: None, NOW))
    assert (call.verb, call.subresource) == ("patch", "status")
    assert call.body == {
        "metadata": {"uid": "claim-uid"},
        "status": {"reservedFor": [{"$patch": "delete", "uid": "pod-uid"}]},
    }
