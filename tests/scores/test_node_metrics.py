"""Real usage of nodes: what metrics-server says, and the scores of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stowplan.objects.changes import Put
from stowplan.objects.errors import ConfigError
from stowplan.scores.node_metrics import used_by_node
from stowplan.scores.usage import Usage, actual_measures, default_measures
from stowplan.testing import a_node, a_pod


def metrics(**usage: dict[str, str]) -> bytes:
    items = [
        {"metadata": {"name": name}, "timestamp": "2026-01-01T00:00:00Z", "window": "20s", "usage": amounts}
        for name, amounts in usage.items()
    ]
    return json.dumps({"kind": "NodeMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": items}).encode()


def a_cluster() -> Usage:
    """Two nodes of 4 cores and 8 GB; requests fill the first one."""
    usage = Usage()
    for name in ("a", "b"):
        usage.apply([Put(a_node(name, cpu="4", memory="8G"))])
    usage.apply([Put(a_pod("busy", cpu="4", memory="8G", node="a"))])
    return usage


def test_amounts() -> None:
    found = used_by_node(metrics(a={"cpu": "123456789n", "memory": "1024Ki"}, b={"cpu": "2", "memory": "1G"}))
    assert found == {"a": {"cpu": 124, "memory": 1 << 20}, "b": {"cpu": 2000, "memory": 10**9}}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        pytest.param(b"<html>", "found no NodeMetricsList", id="no JSON"),
        pytest.param(b'{"kind": "Status"}', "kind: found 'Status', expected NodeMetricsList", id="another kind"),
        pytest.param(b'{"kind": "NodeMetricsList", "items": 5}', "found no NodeMetricsList", id="no list"),
        pytest.param(metrics(a={"cpu": "much"}), "usage of a: expected a quantity", id="no quantity"),
        pytest.param(b"[" * 100_000, "found no NodeMetricsList", id="deep"),
    ],
)
def test_documents_that_cannot_be_used(document: bytes, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        used_by_node(document)


def test_a_list_without_items() -> None:
    assert used_by_node(b'{"kind": "NodeMetricsList", "items": null}') == {}


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        pytest.param(
            {"a": {"cpu": "1", "memory": "2G"}, "b": {"cpu": "1", "memory": "6G"}},
            {"cpuratio": 0.75, "memratio": 0.5, "cpu": 6.0, "mem": 8e9},
            id="both nodes",
        ),
        pytest.param(
            {"a": {"cpu": "5", "memory": "2G"}, "b": {"cpu": "1", "memory": "2G"}},
            {"cpuratio": 0.375, "memratio": 0.75, "cpu": 3.0, "mem": 12e9},
            id="more than a node has is all of it",
        ),
        pytest.param({"a": {"cpu": "1", "memory": "2G"}}, {}, id="half of the nodes are not enough"),
        pytest.param(
            {"a": {"cpu": "1", "memory": "2G"}, "b": {"cpu": "1"}},
            {"cpuratio": 0.75, "cpu": 6.0},
            id="memory was not measured everywhere",
        ),
        pytest.param({}, {}, id="nothing was measured: it is not known what is free"),
    ],
)
def test_what_is_not_used_is_free(used: dict[str, dict[str, str]], expected: dict[str, float]) -> None:
    usage, found = a_cluster(), used_by_node(metrics(**used))
    measured: dict[str, Any] = usage.measured(actual_measures(), found)
    assert measured == {f"{name}-actual": value for name, value in expected.items()}
    assert usage.unmeasured(found) == sorted({"a", "b"} - used.keys())


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        pytest.param(10, {"cpuratio": 0.75, "cpu": 30.0}, id="all nodes"),
        pytest.param(9, {"cpuratio": 0.75, "cpu": 27.0}, id="one in ten may be missing, and does not count"),
        pytest.param(8, {}, id="two in ten are too many"),
    ],
)
def test_most_nodes_must_be_measured(measured: int, expected: dict[str, float]) -> None:
    usage = Usage()
    usage.apply([Put(a_node(f"n{number}", cpu="4", memory="8G")) for number in range(10)])
    used = used_by_node(metrics(**{f"n{number}": {"cpu": "1"} for number in range(measured)}))
    assert usage.measured(actual_measures(), used) == {f"{name}-actual": value for name, value in expected.items()}


def test_without_nodes_nothing_is_free() -> None:
    assert set(Usage().measured(actual_measures(), {}).values()) == {0.0}
    assert Usage().measured(actual_measures()) == {}, "nobody asked metrics-server"


def test_requests_beside_usage() -> None:
    used = used_by_node(metrics(a={"cpu": "0", "memory": "0"}, b={"cpu": "4", "memory": "0"}))
    found = a_cluster().measured((*default_measures(), *actual_measures()), used)
    assert (found["cpu"], found["cpu-actual"]) == (4.0, 4.0)
    assert (found["memratio"], found["memratio-actual"]) == (0.5, 1.0)
