"""Held room: which pod has which slot, which slots are held, and that both follow from the objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowplan.columns.held.held_room import FEW, HeldRoom
from stowplan.columns.held.held_slots import HeldSlots
from stowplan.columns.held.source import Holding, Slot
from stowplan.columns.state import ClusterState
from stowplan.objects.changes import Gone, Put
from stowplan.objects.meta import Object, ObjectMeta
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod

NODES = ("a", "b", "c")
LABEL = "app"


class Holder(Object, frozen=True):
    """An object that holds room."""

    holding: Holding = Holding()


class Holders:
    """A pod's label names its holder."""

    kind = Holder

    def key_of(self, pod: Pod) -> str:
        return f"default/{pod.labels[LABEL]}" if LABEL in pod.labels else ""

    def holding(self, found: Object) -> Holding:
        assert isinstance(found, Holder)
        return found.holding


def a_holder(slots: Mapping[str, str], *, owner: str = "", reported: Mapping[str, str] | None = None) -> Holder:
    """Slots by name with their nodes, in the order of their names."""
    made = {name: Slot(node, {"pods": 1, "cpu": 1000}) for name, node in sorted(slots.items())}
    metadata = ObjectMeta(name="app", namespace="default", uid="r")
    return Holder(metadata=metadata, holding=Holding(made, owner, "driver", reported or {}))


def a_member(name: str, node: str) -> Pod:
    return a_pod(name, uid=name, node=node, cpu=1, labels={LABEL: "app"})


def a_state(*objects: Any) -> ClusterState:
    state = ClusterState()
    state.hold_as(Holders())
    for each in (*(a_node(name, cpu=8) for name in NODES), *objects):
        state.apply(Put(each))
    return state


def room(state: ClusterState) -> HeldRoom:
    return state.held_rooms[Holder]


def slots_of(state: ClusterState) -> HeldSlots:
    found = room(state).get("default/app")
    assert found is not None
    return found


def held(state: ClusterState) -> dict[str, str]:
    return {name.rpartition("#")[2]: node for name, (node, _) in state.held.items()}


DRIVEN = {"driver": "a", "executor-1": "a", "executor-2": "b", "executor-3": "b"}


@pytest.mark.parametrize(
    ("slots", "owner", "status", "members", "left"),
    [
        pytest.param({"one": "a", "two": "b"}, "", {}, {}, {"one": "a", "two": "b"}, id="nobody is there"),
        pytest.param({"one": "a", "two": "b"}, "", {}, {"p": "b"}, {"one": "a"}, id="a pod has a slot of its node"),
        pytest.param({"one": "a"}, "", {}, {"p": "c"}, {"one": "a"}, id="without an owner slots do not move"),
        pytest.param({"one": "a"}, "", {}, {"p": "a", "q": "a"}, {}, id="a pod too many"),
        pytest.param(DRIVEN, "d", {}, {}, {}, id="a driver without a node"),
        pytest.param(DRIVEN, "d", {}, {"p": "b"}, {}, id="a driver without a node, an executor with one"),
        pytest.param(
            DRIVEN, "d", {}, {"d": "a"}, {"executor-1": "a", "executor-2": "b", "executor-3": "b"}, id="a driver alone"
        ),
        pytest.param(DRIVEN, "d", {}, {"d": "a", "p": "b"}, {"executor-1": "a", "executor-3": "b"}, id="one executor"),
        pytest.param(
            DRIVEN, "d", {"executor-3": "p"}, {"d": "a", "p": "b"}, {"executor-1": "a", "executor-2": "b"},
            id="it has the slot that the status names",
        ),
        pytest.param(
            DRIVEN, "d", {"executor-1": "p"}, {"d": "a", "p": "b"}, {"executor-1": "a", "executor-3": "b"},
            id="but rather one of its own node",
        ),
        pytest.param(
            DRIVEN, "d", {}, {"d": "a", "p": "c"}, {"executor-1": "a", "executor-2": "b", "executor-3": "b"},
            id="an extra one has none",
        ),
        pytest.param(
            DRIVEN, "d", {"executor-2": "p"}, {"d": "a", "p": "c"}, {"executor-1": "a", "executor-3": "b"},
            id="one of which the status says that it has a slot elsewhere",
        ),
        pytest.param(
            DRIVEN, "d", {}, {"d": "a", "p": "a", "q": "b", "r": "b", "s": "c"}, {}, id="more pods than slots"
        ),
        pytest.param({"d": "a", "x": "b"}, "d", {}, {"d": "a"}, {"x": "b"}, id="an owner that has a slot by its name"),
    ],
)  # fmt: skip
def test_which_pod_has_which_slot(
    slots: dict[str, str], owner: str, status: dict[str, str], members: dict[str, str], left: dict[str, str]
) -> None:
    """Whichever comes first, the reservation or the pods."""
    made, pods = a_holder(slots, owner=owner, reported=status), [a_member(*each) for each in members.items()]
    for objects in ((made, *pods), (*pods, made), (*reversed(pods), made)):
        state = a_state(*objects)
        assert held(state) == left
        taken = Counter(node for _, node in members.items()) + Counter(left.values())
        for name in NODES:
            row = state.table.row_of[name]
            assert int(state.table.requested["cpu"][row]) == 1000 * taken[name]
            assert int(state.table.requested["pods"][row]) == taken[name]


def test_a_held_slot_is_no_pod() -> None:
    """No pod to be counted, evicted or bound."""
    state = a_state(a_holder({"one": "a"}))
    row = state.table.row_of["a"]
    assert not state.pods and not state.pods_on[row] and not state.priorities


def test_a_holding_ends_with_its_owner_and_with_its_object() -> None:
    driver, made = a_member("d", "a"), a_holder(DRIVEN, owner="d")
    state = a_state(made, driver, a_member("p", "b"))
    assert len(held(state)) == 2
    state.apply(Gone(driver))
    assert held(state) == {}
    state.apply(Put(driver))
    assert len(held(state)) == 2
    state.apply(Gone(made))
    assert held(state) == {} and slots_of(state).pods
    for pod in (driver, a_member("p", "b")):
        state.apply(Gone(pod))
    assert room(state).get("default/app") is None, "nothing is left behind"


def test_a_pod_on_another_node_moves_a_slot() -> None:
    state = a_state(a_holder(DRIVEN, owner="d"), a_member("d", "a"), a_member("p", "c"))
    assert len(held(state)) == 3
    room(state).move("p")
    assert held(state) == {"executor-2": "b", "executor-3": "b"}
    state.apply(Put(a_member("p", "c")))
    assert len(held(state)) == 2, "an update changes nothing"
    state.apply(Gone(a_member("p", "c")))
    assert len(held(state)) == 3


def test_a_pod_that_becomes_the_owner_leaves_the_slot_that_was_reported_for_it() -> None:
    slots = {"driver": "a", "executor-2": "a"}
    state = a_state(a_holder(slots, reported={"executor-2": "d"}), a_member("d", "b"))
    assert held(state) == {"driver": "a"}
    state.put(a_holder(slots, owner="d"))
    assert held(state) == {"executor-2": "a"}


def test_room_is_released_while_its_own_pod_is_decided() -> None:
    state = a_state(a_holder({"one": "a", "two": "b"}), a_member("p", "a"))
    before = dict(state.held)
    names, more = state.offers(a_pod(labels={LABEL: "app"}))
    assert not more
    with state.released(names):
        assert held(state) == {}
    assert state.held == before
    for other in (a_pod(), a_pod(labels={LABEL: "other"})):
        assert state.offers(other) == ([], False)


def test_a_few_of_many_slots_are_offered_first() -> None:
    state = a_state(a_holder({f"s-{number}": "a" for number in range(40)}))
    pod = a_pod(labels={LABEL: "app"})
    few, every = state.offers(pod), state.offers(pod, None)
    assert (len(few[0]), few[1], len(every[0]), every[1]) == (FEW, True, 40, False)


def test_a_pod_removed_in_a_trial_leaves_its_slot_held() -> None:
    state = a_state(a_holder(DRIVEN, owner="d"), a_member("d", "a"), a_member("p", "b"))
    row = state.table.row_of["b"]
    taken = int(state.table.requested["cpu"][row])
    with state.trial() as trial:
        trial.remove_pod("p")
        assert int(state.table.requested["cpu"][row]) == taken
        trial.remove_pod("d")
        assert int(state.table.requested["cpu"][row]) == 0, "with the driver all of it goes"
    assert int(state.table.requested["cpu"][row]) == taken


# -- whatever happens

names = st.sampled_from(("d", "p", "q", "r", "s"))
nodes = st.sampled_from(NODES)
slots = st.dictionaries(st.sampled_from(("driver", "executor-1", "executor-2", "p")), nodes, max_size=4)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("come"), names, nodes),
        st.tuples(st.just("go"), names),
        st.tuples(st.just("move"), names),
        st.tuples(
            st.just("put"),
            slots,
            st.sampled_from(("", "d")),
            st.dictionaries(st.sampled_from(("executor-1", "executor-2", "p")), names),
        ),
        st.tuples(st.just("drop")),
    ),
    max_size=25,
)


def take(state: ClusterState, objects: dict[str, Any], step: tuple[Any, ...]) -> None:
    match step:
        case ("come", name, node):
            objects[name] = a_member(name, node)
            state.add_pod(objects[name], node)
        case ("go", name) if objects.pop(name, None) is not None:
            state.remove_pod(name)
        case ("move", name):
            room(state).move(name)
        case ("put", reserved, owner, status):
            objects["app"] = a_holder(reserved, owner=owner, reported=status)
            state.put(objects["app"])
        case ("drop",) if (found := objects.pop("app", None)) is not None:
            state.discard(found)


def seen(state: ClusterState) -> Any:
    columns = {name: column[:3].tolist() for name, column in state.table.requested.items()}
    found = room(state).get("default/app")
    taken = {} if found is None else {slot: found.taken_by(slot) for slot in found.holding.slots}
    return dict(state.held), columns, taken, {} if found is None else dict(found.pods)


def check(state: ClusterState, objects: dict[str, Any]) -> None:
    rebuilt = a_state(*objects.values())
    rebuilt.held_rooms[Holder].copy_moves(state.held_rooms[Holder])
    assert seen(state) == seen(rebuilt)
    found = room(state).get("default/app")
    if found is not None:
        seated = [uid for slot in found.holding.slots if (uid := found.taken_by(slot))]
        assert len(seated) == len(set(seated)), "a pod in two slots"
        assert set(seated) <= {*found.pods, found.owner}
        for slot, uid in found.pod_in.items():
            assert found.holding.slots[slot].node == found.pods[uid][1]
        assert len(held(state)) == (len(found.free) if found.in_force else 0)


@settings(max_examples=150)
@given(first=steps, then=steps)
def test_slots_follow_from_the_objects_and_trials_are_undone_exactly(
    first: list[tuple[Any, ...]], then: list[tuple[Any, ...]]
) -> None:
    state, objects = a_state(), dict[str, Any]()
    for step in first:
        take(state, objects, step)
        check(state, objects)
    before, inside = seen(state), dict(objects)
    with state.trial():
        for step in then:
            take(state, inside, step)
            check(state, inside)
    assert seen(state) == before
    check(state, objects)


def test_a_source_that_is_registered_late_finds_what_is_there() -> None:
    late = ClusterState()
    made = a_holder(DRIVEN, owner="d")
    for each in (*(a_node(name, cpu=8) for name in NODES), made, a_member("d", "a"), a_member("p", "b")):
        late.apply(Put(each))
    assert not late.held and late.offers(a_member("q", "")) == ([], False) and not late.holds_room
    late.hold_as(Holders())
    late.hold_as(Holders())
    assert late.held == a_state(made, a_member("d", "a"), a_member("p", "b")).held and late.holds_room
