"""The search gives the answer of kube-scheduler's exhaustive one, also where it leaves out most of its steps."""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Any

import pytest

from stowplan.columns.devices.pools import NodeDevices
from stowplan.columns.state import ClusterState
from stowplan.objects.changes import Put
from stowplan.objects.devices import DeviceClass
from stowplan.objects.kinds import convert
from stowplan.objects.resource_claims import ResourceClaim
from stowplan.plugins.nodes.default.device_claims.device_expressions import DeviceExpressions
from stowplan.plugins.nodes.default.device_claims.node_answers import searched_node
from stowplan.plugins.nodes.default.device_claims.questions import DeviceQuestion, FatalError, OneRequest
from stowplan.plugins.nodes.default.device_claims.search import ConstraintError, DeviceSearch
from stowplan.testing.builders import a_node
from tests.columns.devices.slices_of import DRIVER, a_slice

CLASSES = {"gpu": convert(DeviceClass, {"metadata": {"name": "gpu"}})}
EXPRESSIONS = DeviceExpressions()


class Exhaustive(DeviceSearch):
    """Every subset is tried."""

    def _is_hopeless(self) -> bool:
        return False

    def _enough(self, request: OneRequest, needed: int, start: int) -> bool:
        return True

    def _alike(self, place: int) -> Hashable:
        return place


def a_request(name: str, count: int = 1, **fields: Any) -> dict[str, Any]:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count, **fields}
    return {"name": name, "exactly": exactly}


def where(expression: str) -> list[dict[str, Any]]:
    return [{"cel": {"expression": expression}}]


def a_claim(*requests: dict[str, Any], **devices: Any) -> ResourceClaim:
    return convert(ResourceClaim, {"spec": {"devices": {"requests": list(requests), **devices}}})


def a_device(name: str, **attributes: int) -> dict[str, Any]:
    return {"name": name, "attributes": {key: {"int": value} for key, value in attributes.items()}}


def a_state(*devices: dict[str, Any], **spec: Any) -> ClusterState:
    state = ClusterState()
    state.apply(Put(a_slice("s", *devices, **spec)))
    state.devices.catch_up()
    return state


def answer(kind: type[DeviceSearch], state: ClusterState, *claims: ResourceClaim) -> Any:
    """Return the names of the devices of each claim; None, or what ends the decision."""
    question = DeviceQuestion(claims, CLASSES, EXPRESSIONS)
    seen: NodeDevices = state.devices.of(a_node("node"))
    try:
        found = kind(question, searched_node(question, seen, state.devices)).run()
    except (FatalError, ConstraintError) as error:
        return str(error)
    if found is None:
        return None
    return [[(pick.request.full_name, seen.devices[pick.place].id[2]) for pick in picks] for picks in found.picks]


def names(state: ClusterState, *claims: ResourceClaim) -> Any:
    found = answer(DeviceSearch, state, *claims)
    return found if found is None or isinstance(found, str) else [[name for _, name in each] for each in found]


def test_the_first_devices_that_fit() -> None:
    state = a_state(a_device("a", numa=0), a_device("b", numa=1), a_device("c", numa=1))
    assert names(state, a_claim(a_request("r", 2))) == [["a", "b"]]
    assert names(state, a_claim(a_request("r", selectors=where(f'device.attributes["{DRIVER}"].numa == 1')))) == [["b"]]


def test_it_goes_back_if_the_first_choice_was_wrong() -> None:
    state = a_state(a_device("a", numa=0), a_device("b", numa=1), a_device("c", numa=1))
    match = [{"matchAttribute": f"{DRIVER}/numa"}]
    assert names(state, a_claim(a_request("r", 2), constraints=match)) == [["b", "c"]]


def test_one_device_more_than_there_is_does_not_explore() -> None:
    state = a_state(*(a_device(f"gpu-{number}", uuid=number) for number in range(31)))
    question = DeviceQuestion([a_claim(a_request("r", 32))], CLASSES, EXPRESSIONS)
    search = DeviceSearch(question, searched_node(question, state.devices.of(a_node("node")), state.devices))
    assert search.run() is None
    assert search.steps == 0


def test_alike_devices_are_not_tried_one_after_the_other() -> None:
    """Eight of sixteen, twice, on the same side: without a look at what is alike, 2^16 subsets."""
    state = a_state(*(a_device(f"gpu-{number}", numa=number % 2, uuid=number) for number in range(16)))
    match = [{"matchAttribute": f"{DRIVER}/numa"}]
    claim = a_claim(a_request("a", 5), a_request("b", 4), constraints=match)
    question = DeviceQuestion([claim], CLASSES, EXPRESSIONS)
    search = DeviceSearch(question, searched_node(question, state.devices.of(a_node("node")), state.devices))
    assert search.run() is None
    assert search.steps < 100


def test_an_expression_ends_the_decision_only_if_it_is_reached() -> None:
    state = a_state(a_device("a", model=1), a_device("b"))
    asks = a_request("r", selectors=where(f'device.attributes["{DRIVER}"].model == 1'))
    assert names(state, a_claim(asks)) == [["a"]]
    both = a_request("r", 2, selectors=where(f'device.attributes["{DRIVER}"].model == 1'))
    assert names(state, a_claim(both)) == ": selector #0: CEL runtime error: no such key: model"


def a_random_question(draw: random.Random) -> tuple[ClusterState, list[ResourceClaim]]:
    """Few devices with few traits, and claims that hardly fit."""

    def a_number(most: int) -> int:
        return draw.randint(0, most)

    devices: list[dict[str, Any]] = []
    for number in range(draw.randint(2, 6)):
        device = a_device(f"d{number}", **{key: a_number(1) for key in ("x", "y") if draw.random() < 0.85})
        if draw.random() < 0.25:
            device["allowMultipleAllocations"] = True
            device["capacity"] = {"memory": {"value": str(draw.randint(2, 4))}}
        if draw.random() < 0.3:
            used = {"memory": {"value": str(draw.randint(1, 3))}}
            device["consumesCounters"] = [{"counterSet": "set", "counters": used}]
        if draw.random() < 0.2:
            device["taints"] = [{"key": "t", "effect": "NoSchedule"}]
        devices.append(device)
    counters = [{"name": "set", "counters": {"memory": {"value": "4"}}}]
    state = a_state(*devices, sharedCounters=counters)

    def a_spec() -> dict[str, Any]:
        key = draw.choice("xy")
        expression = draw.choice([f'device.attributes["{DRIVER}"].{key} == {a_number(1)}', "true", "true"])
        spec: dict[str, Any] = {"deviceClassName": "gpu", "selectors": where(expression)}
        spec |= {"allocationMode": "All"} if draw.random() < 0.1 else {
            "allocationMode": "ExactCount", "count": draw.randint(1, 3)
        }  # fmt: skip
        if draw.random() < 0.3:
            spec["capacity"] = {"requests": {"memory": "1"}}
        if draw.random() < 0.3:
            spec["tolerations"] = [{"operator": "Exists"}]
        return spec

    def a_random_request(name: str) -> dict[str, Any]:
        if draw.random() < 0.3:
            return {"name": name, "firstAvailable": [{"name": f"alt{n}", **a_spec()} for n in range(2)]}
        return {"name": name, "exactly": a_spec() | ({"adminAccess": True} if draw.random() < 0.1 else {})}

    def a_random_claim() -> ResourceClaim:
        requests = [a_random_request(f"r{number}") for number in range(draw.randint(1, 3))]
        kinds = [("matchAttribute", "x"), ("distinctAttribute", "y"), ("distinctAttribute", "x")]
        chosen = [pair for pair in kinds if draw.random() < 0.3]
        return a_claim(*requests, constraints=[{kind: f"{DRIVER}/{key}"} for kind, key in chosen])

    return state, [a_random_claim() for _ in range(draw.randint(1, 2))]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_left_out_changes_no_answer(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(60):
        state, claims = a_random_question(draw)
        assert answer(DeviceSearch, state, *claims) == answer(Exhaustive, state, *claims)
