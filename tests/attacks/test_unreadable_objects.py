"""Documents that a tenant writes and a decoder refuses. What kube-scheduler schedules is scheduled; what nobody can
read does not count; and neither the next pod nor the next start of the program is any the worse for it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.attacks.survivor import bind_plain_pod, decides_unharmed, unharmed
from tests.controlplane.api import Api
from tests.controlplane.hubs import GROUP
from tests.controlplane.place_process import MOMENT, Hub, placing
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.controlplane.served_hub import ServedHub
from tests.controlplane.stowplan_process import Stowplan, a_live_pod, stowplan

pytestmark = pytest.mark.controlplane

DEEP = '"too deep"'  # a value that is replaced by one that nests too deep for any decoder of ours
TOO_DEEP = 1200
DIGITS = "9" * 5000
ODD = "\\ud800\\udfff\\u202e\\u0000"


def deep_text(document: Any, levels: int = TOO_DEEP) -> bytes:
    """The document with managedFields that nest so deep."""
    owner = {"manager": "m", "operation": "Update", "apiVersion": document["apiVersion"], "time": MOMENT}
    owner |= {"fieldsType": "FieldsV1", "fieldsV1": "too deep"}
    named = {**document["metadata"], "managedFields": [owner]}
    fields = '{"f:metadata":' + '{"f:a":' * levels + "{}" + "}" * levels + "}"
    return json.dumps({**document, "metadata": named}).replace(DEEP, fields).encode()


@contextlib.contextmanager
def having_deep(api: Api, collection: str, document: Any, levels: int = TOO_DEEP) -> Iterator[None]:
    """An object that nests so deep; gone afterwards, since not even a test could decode a list with it."""
    answer = api.ask("POST", collection, deep_text(document, levels))
    assert answer.status == 201, answer.body[:300]
    try:
        yield
    finally:
        api.ask("DELETE", f"{collection}/{document['metadata']['name']}?gracePeriodSeconds=0")


def is_bound(api: Api, namespace: str, name: str) -> bool:
    answer = api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
    return answer.status == 200 and b'"nodeName":' in answer.body


@pytest.mark.parametrize("levels", [TOO_DEEP, 9000])
def test_a_pod_with_deep_managed_fields_is_scheduled(
    plane: ControlPlane, namespace: str, attacked: Stowplan, levels: int
) -> None:
    api, pods = plane.api(), f"/api/v1/namespaces/{namespace}/pods"
    with unharmed(plane, namespace, attacked), having_deep(api, pods, a_live_pod("deep"), levels):
        until("the deep pod is bound", lambda: is_bound(api, namespace, "deep"), 10, attacked.tail)
        with stowplan(plane, f"again-{levels}", "--leader-elect=false") as again:  # it is in the first list now
            bind_plain_pod(plane, namespace, again)
            assert again.metric("stowplan_unreadable_objects") == 0


def test_a_pod_with_bytes_that_no_text_has_is_scheduled(
    plane: ControlPlane, namespace: str, attacked: Stowplan
) -> None:
    """The API server passes them on as they came, if they are in managedFields."""
    api, pods = plane.api(), f"/api/v1/namespaces/{namespace}/pods"
    text = deep_text(a_live_pod("bytes"), levels=1).replace(b'"f:a"', b'"f:\xff"')
    with unharmed(plane, namespace, attacked):
        answer = api.ask("POST", pods, text)
        assert answer.status == 201, answer.body[:300]
        try:
            assert b"\xff" in api.get(f"{pods}/bytes").body, "else there is nothing to survive"
            until("the pod is bound", lambda: is_bound(api, namespace, "bytes"), 10, attacked.tail)
            with stowplan(plane, "again-bytes", "--leader-elect=false") as again:
                bind_plain_pod(plane, namespace, again)
        finally:
            api.ask("DELETE", f"{pods}/bytes?gracePeriodSeconds=0")


def test_odd_quantities_and_texts(plane: ControlPlane, namespace: str, attacked: Stowplan) -> None:
    api, pods = plane.api(), f"/api/v1/namespaces/{namespace}/pods"
    odd = [
        a_live_pod("digits", cpu=DIGITS),
        a_live_pod("decimals", cpu="0." + "0" * 5000 + "1"),
        a_live_pod("bound", cpu=DIGITS, nodeName="attacked-0"),
        a_live_pod("huge", cpu="1e400"),
        a_live_pod("texts", tolerations=[{"key": "a", "value": "x", "effect": "NoSchedule"}]),
    ]
    odd[-1]["metadata"]["annotations"] = {"a": "odd"}
    with unharmed(plane, namespace, attacked):
        for pod in odd:
            answer = api.ask("POST", pods, json.dumps(pod).replace('"odd"', f'"{ODD}"').encode())
            assert answer.status == 201, answer.body[:300]
        for pod in odd:
            name = pod["metadata"]["name"]
            until(f"{name} is bound", partial(is_bound, api, namespace, name), 10, attacked.tail)
        assert attacked.metric("stowplan_unreadable_objects") == 0


def test_a_node_with_5000_digits_of_cpu(plane: ControlPlane, namespace: str, attacked: Stowplan) -> None:
    with plane.nodes(1, prefix="odd") as (name,), unharmed(plane, namespace, attacked):
        path = f"/api/v1/nodes/{name}"
        while True:
            node = plane.api().must("GET", path)
            node["status"]["allocatable"]["cpu"] = DIGITS
            answer = plane.api().ask("PUT", f"{path}/status", node)
            if answer.status != 409:
                break
        assert answer.status == 200, answer.body[:300]
    assert attacked.metric("stowplan_unreadable_objects") == 0


def test_a_placement_with_deep_managed_fields_is_decided(hub: Hub, attacked_hub: ServedHub) -> None:
    document: dict[str, Any] = {"apiVersion": f"{GROUP}/v1beta1", "kind": "Placement"}
    document |= {"metadata": {"name": "deep"}, "spec": {"numberOfClusters": 1}}
    with decides_unharmed(hub, attacked_hub.program), having_deep(hub.api, hub.path("placements"), document):
        until("the deep placement is decided", lambda: len(hub.chosen("deep")) == 1, 10, attacked_hub.program.tail)
        with placing(attacked_hub.cluster, "again", "--leader-elect=false") as again:  # it is in the first list now
            again.wait_until_ready(10)


def unread(program: Stowplan) -> float:
    return program.metric("stowplan_unreadable_objects", kind="AddOnPlacementScore")


BY_SCORE = {
    "numberOfClusters": 1,
    "prioritizerPolicy": {
        "mode": "Exact",
        "configurations": [
            {
                "scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "score"}},
                "weight": 1,
            }
        ],
    },
}


@pytest.mark.parametrize(
    ("until_when", "unreadable"),
    [
        pytest.param("0000-01-01T00:00:00Z", 0, id="the year 0, which is long ago"),
        pytest.param("2099-01-01T00:00:00+99:99", 1, id="a time that is none"),
    ],
)
def test_an_old_score_does_not_stay_in_force(
    hub: Hub, attacked_hub: ServedHub, until_when: str, unreadable: int
) -> None:
    program = attacked_hub.program
    hub.score("c1", 90)
    hub.score("c2", 50)
    hub.place("by-score", **BY_SCORE)
    hub.gets("c1", name="by-score")
    with decides_unharmed(hub, program):
        hub.score("c1", -50, validUntil=until_when)
        hub.gets("c2", name="by-score", seconds=10)
        until("it is counted", lambda: unread(program) == unreadable, 5, program.tail)
    hub.score("c1", 90)
    hub.gets("c1", name="by-score", seconds=10)
    until("it can be read again", lambda: not unread(program), 5, program.tail)
