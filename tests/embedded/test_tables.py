"""One word for how a pod is, ages, amounts: what tables show."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.embedded import tables
from stowplan.embedded.resources import BUILT_IN
from stowplan.embedded.schema.quantities import canonical
from stowplan.embedded.schema.typed import decoded
from stowplan.embedded.timestamps import micro_stamp, seconds, span, stamp

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("length", "message"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (190, "3m10s"), (600, "10m"), (10_799, "179m"), (10_800, "3h"),
     (14_700, "4h5m"), (28_800, "8h"), (172_799, "47h"), (183_600, "2d3h"), (700_000, "8d"), (-5, "<invalid>"),
     (86400 * 800, "2y70d"), (86400 * 365 * 9, "9y")],
)  # fmt: skip
def test_ages(length: float, message: str) -> None:
    assert span(length) == message


def test_times_are_read_as_they_are_written() -> None:
    assert seconds(stamp(NOW)) == NOW
    assert seconds(micro_stamp(NOW + 0.25)) == NOW + 0.25
    assert seconds("nonsense") == 0.0


@pytest.mark.parametrize(
    ("written", "expected"),
    [("1", "1"), ("1000", "1k"), ("1500m", "1500m"), ("0", "0"), ("0.001", "1m"), ("1Ki", "1Ki"), ("1025", "1025"),
     ("2048Mi", "2Gi"), ("1e3", "1e3"), ("-5", "-5"), ("0.5Gi", "512Mi"), ("500u", "500u")],
)  # fmt: skip
def test_amounts(written: str, expected: str) -> None:
    assert canonical(written) == expected


def pod(phase: str = "Running", containers: tuple[dict[str, Any], ...] = (), **more: Any) -> dict[str, Any]:
    status = {"phase": phase, "containerStatuses": list(containers), **more.pop("status", {})}
    spec = {"containers": [{"name": "c"}], **more.pop("spec", {})}
    return {"metadata": {"name": "p", **more}, "spec": spec, "status": status}


WAITING = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 3}
DONE = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
RUNS = {"state": {"running": {}}, "ready": True}


@pytest.mark.parametrize(
    ("document", "word"),
    [
        pytest.param(pod(), "Running", id="it runs"),
        pytest.param(pod("Pending"), "Pending", id="it waits"),
        pytest.param(pod("Pending", status={"conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}), "SchedulingGated", id="gated"),
        pytest.param(pod("Running", (WAITING,)), "CrashLoopBackOff", id="a container waits"),
        pytest.param(pod("Succeeded", (DONE,)), "Completed", id="it is done"),
        pytest.param(pod("Running", (DONE, RUNS), status={"conditions": [{"type": "Ready", "status": "True"}]}),
                     "Running", id="one of two is done"),
        pytest.param(pod("Failed", ({"state": {"terminated": {"exitCode": 3}}},)), "ExitCode:3", id="a code"),
        pytest.param(pod("Failed", ({"state": {"terminated": {"exitCode": 137, "signal": 9}}},)), "Signal:9",
                     id="a signal"),
        pytest.param(pod("Failed", status={"reason": "Evicted"}), "Evicted", id="evicted"),
        pytest.param(pod(deletionTimestamp="2026-01-01T00:00:00Z"), "Terminating", id="terminating"),
        pytest.param(pod("Pending", spec={"initContainers": [{"name": "i"}]}, status={
            "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}), "Init:0/1", id="it prepares"),
        pytest.param(pod("Pending", spec={"initContainers": [{"name": "i"}]}, status={
            "initContainerStatuses": [{"name": "i", "state": {"waiting": {"reason": "ErrImagePull"}}}]}),
            "Init:ErrImagePull", id="it cannot prepare"),
    ],
)  # fmt: skip
def test_how_a_pod_is(document: dict[str, Any], word: str) -> None:
    assert tables.printer_for("pods").cells(document, NOW)[2] == word


@pytest.mark.parametrize("resource", [each for each in BUILT_IN if "list" in each.verbs], ids=lambda each: each.plural)
def test_every_kind_has_as_many_cells_as_columns_even_if_it_is_empty(resource: Any) -> None:
    document = decoded(resource.type, {"metadata": {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"}})
    printer = tables.printer_for(resource.collection)
    assert len(printer.cells(document, NOW)) == len(printer.columns)
