"""Drivers, executors, rivals, hand-written reservations, evictions, failures and restarts in any order.

Never more on a node than it offers, kept room included; no slot twice, no executor beyond the maximum; in the end every
reservation belongs to a running driver or to a user, and holds exactly what its pods have not taken.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from stowplan.columns.held.held_slots import HeldSlots
from stowplan.objects import spark
from stowplan.objects.actions import Action, Bind, Create, Delete, Evict, Patch
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod
from stowplan.objects.reservations import ResourceReservation
from stowplan.plugins.nodes.resource_reservation.holdings import ReservationHoldings
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.hypothesis_settings import at_most
from tests.plugins.nodes.resource_reservation.reservations import a_driver, a_reservation, a_world, an_executor, needs

APPS = ("x", "y")
NODES = ("a", "b", "c")
apps, nodes = st.sampled_from(APPS), st.sampled_from(NODES)


class Storm(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = a_world(*(a_node(name, cpu=4) for name in NODES), answer_within=5, graceful=True)
        self.born = 0
        self.written = False  # did a user ever keep room that may not be there?

    def _new(self, pod: Pod) -> Pod:
        self.born += 1
        return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=f"u{self.born}"))

    def _there(self, name: str) -> Pod | None:
        found = self.world.objects.get(("Pod", f"default/{name}"))
        return found if isinstance(found, Pod) else None

    # -- what users do

    @rule(app=apps, least=st.integers(0, 4), more=st.integers(0, 2), priority=st.integers(0, 2))
    def driver(self, app: str, least: int, more: int, priority: int) -> None:
        if self._there(f"{app}-driver") is None:
            annotations = needs(least=least, most=least + more)
            self.world.submit(self._new(a_driver(app, annotations=annotations, priority=priority)))

    @rule(app=apps, numbers=st.sets(st.integers(0, 5), min_size=1))
    def executors(self, app: str, numbers: set[int]) -> None:
        """As a driver does that runs."""
        driver = self._there(f"{app}-driver")
        if driver is not None and driver.node_name:
            for number in numbers:
                if self._there(f"{app}-{number}") is None:
                    self.world.submit(self._new(an_executor(number, app, priority=driver.priority)))

    @rule(number=st.integers(0, 9), cpu=st.sampled_from(("500m", "1", "2")), priority=st.integers(0, 2))
    def rival(self, number: int, cpu: str, priority: int) -> None:
        if self._there(f"rival-{number}") is None:
            self.world.submit(self._new(a_pod(f"rival-{number}", cpu=cpu, priority=priority)))

    @rule(slots=st.dictionaries(st.sampled_from(("one", "two")), nodes, min_size=1), ttl=st.sampled_from((0, 0, 5)))
    def reservation(self, slots: dict[str, str], ttl: int) -> None:
        self.written = True
        places: dict[str, Any] = {name: (node, {"cpu": "1"}) for name, node in slots.items()}
        self.world.submit(a_reservation("kept", ttl, **places))

    @rule()
    def reservation_goes(self) -> None:
        self.world.delete(a_reservation("kept"))

    @rule(number=st.integers(0, 2))
    def its_user(self, number: int) -> None:
        if self._there(f"user-{number}") is None:
            labels = {"scheduling.kubenexus.io/app-id": "kept"}
            self.world.submit(self._new(a_pod(f"user-{number}", cpu=1, labels=labels)))

    @rule(data=st.data(), ends=st.booleans())
    def pod_goes(self, data: st.DataObject, ends: bool) -> None:
        pods = sorted(self.world.pods(), key=lambda pod: pod.name)
        if not pods:
            return
        pod = data.draw(st.sampled_from(pods))
        if ends and pod.node_name:
            self.world.submit(
                msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase="Succeeded"))
            )
        self.world.delete(pod)
        if pod.name.endswith("-driver"):  # it owns its executors
            app = pod.name.removesuffix("driver")
            self.world.delete(*(each for each in self.world.pods() if each.name.startswith(app)))

    @rule(most=st.integers(1, 3))
    def victims_leave(self, most: int) -> None:
        """Some of those that were evicted are gone."""
        self.world.delete(
            *sorted((pod for pod in self.world.pods() if pod.terminating), key=lambda pod: pod.name)[:most]
        )

    # -- what goes wrong

    @rule(kind=st.sampled_from((Bind, Create, Patch, Delete, Evict)), status=st.sampled_from((None, 0, 409, 500)))
    def something_fails_once(self, kind: type[Action], status: int | None) -> None:
        failed: list[Action] = []

        def answers(action: Action) -> Result | None:
            if isinstance(action, kind) and not failed:
                failed.append(action)
                return None if status is None else Result(action.id, status, "failed")
            return Result(action.id)

        self.world.answers = answers

    @rule()
    def killed(self) -> None:
        self.world.restart()

    @rule()
    def the_watch_is_late(self) -> None:
        self.world.pause_watch()

    @rule()
    def the_watch_catches_up(self) -> None:
        self.world.resume_watch()

    @rule(seconds=st.sampled_from((0, 1, 5, 30)))
    def time_passes(self, seconds: float) -> None:
        self.world.resume_watch()
        self.world.advance(seconds)

    # -- what must hold

    def books(self) -> list[HeldSlots]:
        room = self.world.scheduler.state.held_rooms[ResourceReservation]
        return [book for key in (*APPS, "kept") if (book := room.get(f"default/{key}")) is not None]

    @invariant()
    def no_slot_twice(self) -> None:
        for book in self.books():
            taken = [uid for slot in book.holding.slots if (uid := book.taken_by(slot)) in book.pods]
            assert len(taken) == len(set(taken))
            assert len(taken) + len(book.free) <= len(book.holding.slots)

    @invariant()
    def no_executor_too_many(self) -> None:
        pods = self.world.scheduler.state.pods
        for book in self.books():
            driver = pods.get(book.owner)
            said = None if driver is None else spark.executors(driver.pod)
            if said is not None:
                assert book.members() <= said.most

    @invariant()
    def never_more_than_there_is(self) -> None:
        """Users may keep room that is not there; we do not."""
        table = self.world.scheduler.state.table
        for name in NODES:
            row = table.row_of[name]
            taken = int(table.requested["cpu"][row])
            assert taken >= 0
            assert self.written or taken <= int(table.allocatable["cpu"][row]), f"too much is kept on {name}"

    def teardown(self) -> None:
        """Once nothing fails any more."""
        self.world.answers = World.succeed
        self.world.resume_watch()
        self.world.advance(400)
        while leaving := [pod for pod in self.world.pods() if pod.terminating]:
            self.world.delete(*leaving)
            self.world.advance(400)
        state = self.world.scheduler.state
        running = {pod.uid for pod in self.world.pods() if pod.node_name}
        for found in self.world.objects.values():
            if isinstance(found, ResourceReservation):
                assert not found.owner or found.owner in running | {pod.uid for pod in self.world.pods()}
                book = state.held_rooms[ResourceReservation].get(found.key)
                assert book is not None and book.holding == ReservationHoldings().holding(found)
                taken = {
                    slot: book.pods[uid][0] for slot in book.holding.slots if (uid := book.taken_by(slot)) in book.pods
                }
                assert found.status.pods == taken, "the object says who has which place"
        held = {name for book in self.books() for name in book.free}
        assert {name.rpartition("#")[2] for name in state.held} == held
        for pod in self.world.pods():
            said = spark.executors(pod)
            if said is not None and pod.node_name:
                kept = self.world.objects.get(("ResourceReservation", f"default/{pod.name.removesuffix('-driver')}"))
                assert isinstance(kept, ResourceReservation) and len(kept.slots) == said.least + 1


TestStorm = Storm.TestCase
TestStorm.settings = at_most(200)
