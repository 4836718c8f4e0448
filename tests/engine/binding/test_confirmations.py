"""Pods that the API server said were bound, and what the watch says then; and pods that somebody else bound."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.engine.binding.assumed_pod import BindStep
from stowplan.engine.binding.confirmations import CONFIRM_WITHIN, MOST_READS
from stowplan.engine.pods import assumed
from stowplan.engine.reports import BindingUnconfirmed, BoundByAnother, Report
from stowplan.objects.actions import Action, Bind, Read
from stowplan.objects.changes import Result
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.engine.life_cycle_worlds import UID, fine, no_answer, of, step


def told(kind: type[Report], **options: Any) -> tuple[World, list[Any]]:
    found: list[Any] = []
    world = World(
        nodes=[a_node("a", cpu=1), a_node("b", cpu=1)],
        report=lambda report: found.append(report) if isinstance(report, kind) else None,
        **options,
    )
    return world, found


def bind_in_name_only(world: World, name: str = "web") -> None:
    """The binding is answered with success, and not carried out."""
    world.answers = no_answer(Bind)
    world.submit(a_pod(name, cpu=1))
    world.run()
    world.deliver_result(Result(of(world, Bind)[-1].id, 201))
    assert step(world) is BindStep.BOUND


def test_a_pod_that_is_not_bound_after_all_is_scheduled_again() -> None:
    world, reports = told(BindingUnconfirmed)
    bind_in_name_only(world)
    world.advance(CONFIRM_WITHIN - 1)
    assert not of(world, Read) and len(world.scheduler.state.pods) == 1
    world.answers = fine
    world.advance(3)
    assert len(of(world, Read)) == 1 and list(world.bindings) == ["web"]
    assert [each.pod for each in reports] == ["default/web"]
    assert not world.scheduler.assumed_pods and world.scheduler.next_deadline() is None


def test_a_pod_that_is_bound_is_confirmed_by_reading_it() -> None:
    world, reports = told(BindingUnconfirmed)
    world.pause_watch()
    world.deliver_object(a_pod("web", cpu=1))
    world.run()
    assert step(world) is BindStep.BOUND
    world.advance(CONFIRM_WITHIN + 5)
    assert len(of(world, Read)) == 1 and len(of(world, Bind)) == 1 and not reports
    assert not world.scheduler.assumed_pods and len(world.scheduler.state.pods) == 1
    world.resume_watch()
    assert list(world.bindings) == ["web"]


def test_a_pod_that_is_gone_is_removed() -> None:
    world, _ = told(BindingUnconfirmed)
    bind_in_name_only(world)
    world.pause_watch()
    world.delete(world.pod("web"))
    world.answers = fine
    world.advance(CONFIRM_WITHIN + 5)
    assert not world.scheduler.assumed_pods and not world.scheduler.state.pods and not world.scheduler.pods


def test_without_an_answer_the_pod_is_read_again_later() -> None:
    world, reports = told(BindingUnconfirmed)
    bind_in_name_only(world)
    world.answers = no_answer(Read, Bind)
    world.advance(CONFIRM_WITHIN + 31)
    assert len(of(world, Read)) == 1 and step(world) is BindStep.BOUND and not reports
    world.answers = fine
    world.advance(CONFIRM_WITHIN + 2)
    assert len(of(world, Read)) == 2 and len(reports) == 1 and list(world.bindings) == ["web"]


def test_no_reminder_is_left_of_pods_that_the_watch_confirms() -> None:
    world, _ = told(BindingUnconfirmed)
    world.submit(a_pod("web"), a_pod("other"))
    world.run()
    assert world.scheduler.next_deadline() is None
    world.advance(60)
    assert not of(world, Read)


def test_a_broken_watch_does_not_make_a_storm_of_reads() -> None:
    world = World(nodes=[a_node("a", cpu=1000, pods=1000)])
    world.pause_watch()
    for number in range(3 * MOST_READS):
        world.deliver_object(a_pod(f"web-{number}", cpu="1m"))
    world.run()
    most = []

    def answer(action: Action) -> Result:
        most.append(world.now)
        return Result(action.id)

    world.answers = answer
    for _ in range(40):
        world.advance(0.5)
    assert len(of(world, Read)) == 3 * MOST_READS
    assert max(most.count(moment) for moment in set(most)) <= MOST_READS


# -- bound by somebody else


@pytest.mark.parametrize("status", [None, 409], ids=["before we bind", "while we bind"])
def test_a_binding_of_somebody_else_is_reported(status: int | None) -> None:
    world, reports = told(BoundByAnother)
    world.answers = no_answer(Bind)
    world.submit(a_pod("web", cpu=1 if status else 2))
    world.run()
    bind = of(world, Bind)[-1] if status else None
    theirs = "a" if bind is None or bind.node_name == "b" else "b"
    world.submit(assumed(world.pod("web"), theirs))
    if bind is not None:
        world.deliver_result(Result(bind.id, 409, "it is bound"))
    assert reports == [BoundByAnother("default/web", theirs, "default-scheduler")]


def test_our_own_bindings_are_not_reported() -> None:
    world, reports = told(BoundByAnother)
    world.submit(a_pod("web", cpu=1))
    world.run()
    assert list(world.bindings) == ["web"] and not reports


def test_a_binding_of_ours_whose_answer_was_lost_is_not_reported() -> None:
    world, reports = told(BoundByAnother)
    world.answers = no_answer(Bind, Read)
    world.submit(a_pod("web", cpu=1))
    world.run()
    node = of(world, Bind)[0].node_name
    world.advance(30.2)  # the answer is lost by now, and the pod is back in the queue
    assert UID not in world.scheduler.assumed_pods
    world.submit(assumed(world.pod("web"), node))
    assert not reports


@pytest.mark.parametrize("more", [{"schedulerName": "somebody"}, {"node_name": "a"}], ids=["not ours", "born bound"])
def test_pods_that_nobody_took_from_us_are_not_reported(more: dict[str, str]) -> None:
    world, reports = told(BoundByAnother)
    pod = a_pod("web", schedulerName=more.get("schedulerName", "default-scheduler"))
    world.submit(assumed(pod, "a") if "node_name" in more else pod)
    world.submit(assumed(world.pod("web"), "a"))
    assert not reports
