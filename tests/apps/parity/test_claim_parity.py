"""We agree with every recorded decision of the real kube-scheduler about resource claims, and see when we do not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from stowplan.apps.cli import main
from stowplan.apps.parity import claim_records, command
from stowplan.apps.parity.claim_records import Pins, comparable

GOLDEN = sorted((Path(__file__).parents[2] / "golden" / "dra").glob("*.jsonl.gz"))


def scenarios(file: Path) -> list[dict[str, Any]]:
    return [scenario for _, scenario in command.read(file)]


def one(category: str, wanted: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    file = next(each for each in GOLDEN if each.name.startswith(category))
    return next(scenario for scenario in scenarios(file) if wanted(scenario))


def test_records_exist() -> None:
    assert len(GOLDEN) == 24
    assert sum(len(scenarios(file)) for file in GOLDEN) == 689


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.name.partition(".")[0])
def test_every_scenario_agrees(file: Path) -> None:
    outcomes = {scenario["id"]: command.replay(scenario) for scenario in scenarios(file)}
    assert {name: found[:3] for name, (_, _, found) in outcomes.items() if found} == {}
    assert {outcome for outcome, _, _ in outcomes.values()} == {command.AGREES}


def test_our_answers_are_written_in_the_form_of_the_records(tmp_path: Path) -> None:
    record = one("consumable", lambda each: "share-1" in json.dumps(each["expect"].get("bind")))
    file, out = tmp_path / "some.jsonl", tmp_path / "out.jsonl"
    file.write_text(json.dumps(record))
    assert CliRunner().invoke(main, ["parity", str(file), "--json", str(out)]).exit_code == 0
    assert json.loads(out.read_text()) == {"id": record["id"], "expect": record["expect"]}


def anything(_record: dict[str, Any]) -> bool:
    return True


def bound(record: dict[str, Any]) -> bool:
    return bool(record["expect"].get("bind", {}).get("calls"))


def with_choice(record: dict[str, Any]) -> bool:
    return any(record["expect"].get("postFilter", {}).get("oneOf", [[]]))


def swap_devices(expect: dict[str, Any]) -> None:
    for rows in expect["allocations"].values():
        for row in rows:
            for result in row["allocation"]["devices"]["results"]:
                result["device"] += "-other"


def drop_a_call(expect: dict[str, Any]) -> None:
    del expect["bind"]["calls"][0]


def swap_calls(expect: dict[str, Any]) -> None:
    expect["bind"]["calls"].reverse()


def empty_choice(expect: dict[str, Any]) -> None:
    expect["postFilter"]["oneOf"] = [[]]


def other_error(expect: dict[str, Any]) -> None:
    expect["error"]["anyOf"] = ["something else"]


def other_hint(expect: dict[str, Any]) -> None:
    expect["hints"][0] = "Queue" if expect["hints"][0] == "QueueSkip" else "QueueSkip"


@pytest.mark.parametrize(
    ("category", "wanted", "alter", "path"),
    [
        pytest.param("exact", bound, swap_devices, "allocations.", id="other devices"),
        pytest.param("exact", bound, drop_a_call, "bind.calls", id="a call is missing"),
        pytest.param("exact", bound, swap_calls, "bind.calls", id="calls in another order"),
        pytest.param("claim-state", with_choice, empty_choice, "postFilter.oneOf", id="nothing is deallocated"),
        pytest.param("cel-errors", lambda each: "error" in each["expect"], other_error, "error.anyOf", id="an error"),
        pytest.param("queueing", anything, other_hint, "hints", id="a hint"),
    ],
)
def test_an_altered_record_differs(
    category: str, wanted: Callable[[dict[str, Any]], object], alter: Callable[[dict[str, Any]], None], path: str
) -> None:
    record = one(category, wanted)
    alter(record["expect"])
    outcome, _, found = command.replay(record)
    assert outcome == command.DIFFERS
    assert all(where.startswith(path.rstrip(".")) for where, _, _ in found), found


def test_an_earlier_pod_that_would_go_elsewhere_is_a_difference() -> None:
    record = one("in-flight", anything)
    record["earlier"][0]["node"] = "elsewhere"
    outcome, answer, _ = command.replay(record)
    assert outcome == command.DIFFERS
    assert answer["error"].startswith("the earlier pod early-0: ") and "elsewhere" in answer["error"]


def test_the_sample_among_the_records_of_nodes_has_no_allocations() -> None:
    cluster: dict[str, Any] = {"deviceClasses": [{}], "resourceSlices": []}
    assert not claim_records.is_record({"category": "dynamic-resources", "cluster": cluster})
    assert claim_records.is_record({"category": "pools", "cluster": cluster})
    assert not claim_records.is_record({"category": "taints", "cluster": {"nodes": [], "resourceSlices": []}})


def test_shares_are_numbered_and_stamps_replaced_unless_the_input_has_them() -> None:
    pins = Pins('"shareID": "known", "allocationTimestamp": "2026-01-01T00:00:00Z"')
    rows = [{"shareID": each} for each in ("b", "a", "known", "b")]
    assert pins.pinned(rows) == [{"shareID": each} for each in ("share-1", "share-2", "known", "share-1")]
    assert pins.pinned({"allocationTimestamp": "2050-01-01T00:00:00Z"}) == {"allocationTimestamp": "now"}
    assert pins.pinned({"allocationTimestamp": "2026-01-01T00:00:00Z"}) == {
        "allocationTimestamp": "2026-01-01T00:00:00Z"
    }


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param({"consumedCapacity": {"m": "1Gi"}}, {"consumedCapacity": {"m": "1024Mi"}}, True, id="amounts"),
        pytest.param({"consumedCapacity": {"m": "1Gi"}}, {"consumedCapacity": {"m": "1G"}}, False, id="other amounts"),
        pytest.param({"anyOf": ["a", "b"]}, {"anyOf": ["b", "a"]}, True, id="texts of errors have no order"),
        pytest.param({"results": ["a", "b"]}, {"results": ["b", "a"]}, False, id="devices have one"),
    ],
)
def test_what_is_the_same(one: Any, other: Any, same: bool) -> None:
    assert (comparable(one) == comparable(other)) is same
