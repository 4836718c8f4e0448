"""Objects that nobody should send and that an API server takes all the same. Each stays for a while and is deleted."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.controlplane.hubs import GROUP
from tests.controlplane.stowplan_process import a_live_pod
from tests.soak.connection import Connection

DEPTH = 1200
DEEP = "as deep as it goes"
EVERY = 10.0  # seconds


def nested_fields() -> dict[str, Any]:
    """metadata.managedFields that `written` makes as deep as a server takes them."""
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": DEEP}
    return {"managedFields": [entry | {"time": "2026-01-01T00:00:00Z"}]}


def written(dose: dict[str, Any]) -> bytes:
    """The text of an object. (Python's own encoder would not get to the bottom of it.)"""
    deep = '{"f:a":' * DEPTH + "{}" + "}" * DEPTH
    return json.dumps(dose).replace(json.dumps(DEEP), deep).encode()


def pods() -> list[dict[str, Any]]:
    """Pods, each odd in its own way."""
    nested = a_live_pod("poison")
    nested["metadata"] |= nested_fields()
    odd_text = a_live_pod("poison")
    odd_text["metadata"]["annotations"] = {"a": "\x00\ud800\u202e" + "é" * 1000}
    fat = a_live_pod("poison")
    fat["metadata"]["annotations"] = {"a": "x" * 250_000}
    many = {f"example.com/r{n}": "1" for n in range(200)}
    huge = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "9" * 5000}}}
    lacking = {"name": "main", "image": "i", "resources": {"requests": many, "limits": many}}
    expression = {"key": "a", "operator": "Gt", "values": ["9" * 4000]}
    terms = [{"matchExpressions": [expression]}]
    beyond = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    claims: dict[str, Any] = {
        "resourceClaims": [{"name": "x", "resourceClaimName": "y"}],
        "containers": [{"name": "main", "image": "i", "resources": {"claims": [{"name": "x"}]}}],
    }
    return [
        nested,
        odd_text,
        fat,
        a_live_pod("poison", containers=[huge]),
        a_live_pod("poison", containers=[lacking]),
        a_live_pod("poison", affinity=beyond),
        a_live_pod("poison", affinity=_many_preferences(500)),
        a_live_pod("poison", **claims),
    ]


def _many_preferences(number: int) -> dict[str, Any]:
    """Terms that match everybody else's pods."""
    expressions = ({"key": "app", "operator": "NotIn", "values": [f"x{n}"]} for n in range(number))
    terms = (
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchExpressions": [each]}} for each in expressions
    )
    preferred = [{"weight": 1, "podAffinityTerm": term} for term in terms]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def placements() -> list[dict[str, Any]]:
    bomb = f'["{"a" * 4000}".replace("a", "{"a" * 1000}")].map(s, s.replace("a", s)).size() > 0'
    selector = {"requiredClusterSelector": {"celSelector": {"celExpressions": [bomb]}}}
    about = {"apiVersion": f"{GROUP}/v1beta1", "kind": "Placement"}
    return [
        about | {"metadata": {"name": "poison", **nested_fields()}, "spec": {}},
        about | {"metadata": {"name": "poison"}, "spec": {"predicates": [selector]}},
    ]


class Poison(threading.Thread):
    """One object every ten seconds; the one before is deleted."""

    def __init__(self, connect: Callable[[], Connection], namespace: str) -> None:
        super().__init__(name="poison", daemon=True)
        self._connection, self._ended = connect(), False
        at = f"/api/v1/namespaces/{namespace}/pods", f"/apis/{GROUP}/v1beta1/namespaces/{namespace}/placements"
        self._doses = itertools.cycle([*((at[0], each) for each in pods()), *((at[1], each) for each in placements())])
        self.sent = self.refused = 0

    def end(self) -> None:
        self._ended = True

    def run(self) -> None:
        for number, (path, dose) in enumerate(self._doses):
            if self._ended:
                return
            name = f"poison-{number}"
            named = dose | {"metadata": dose["metadata"] | {"name": name}}
            status, _ = self._connection.ask("POST", path, written(named))
            self.sent += status == 201
            self.refused += status not in (0, 201)
            time.sleep(EVERY)
            grace = "?gracePeriodSeconds=0" if path.endswith("/pods") else ""
            self._connection.ask("DELETE", f"{path}/{name}{grace}")
