"""We agree with every recorded decision of Open Cluster Management; and the output of `stowplan parity`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from stowplan.apps.cli import main
from stowplan.apps.parity import command
from stowplan.apps.parity.placement_records import answer

GOLDEN = sorted((Path(__file__).parents[2] / "golden" / "placement").glob("*.jsonl.gz"))
NODES = Path(__file__).parents[2] / "golden" / "nodes" / "taints.jsonl.gz"
COUNTS = {
    "candidates": (60, 4),
    "groups": (60, 0),
    "large": (10, 0),
    "mixed": (70, 0),
    "numbers": (45, 0),
    "predicates": (80, 0),
    "prioritizers": (80, 1),
    "taints-tolerations": (64, 0),
}


def scenarios(file: Path) -> list[dict[str, Any]]:
    return [scenario for _, scenario in command.read(file)]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["parity", *map(str, arguments)])


def written(folder: Path, records: list[dict[str, Any]]) -> Path:
    file = folder / "some.jsonl"
    file.write_text("\n".join(json.dumps(record) for record in records))
    return file


def test_records_exist() -> None:
    assert {file.name.partition(".")[0] for file in GOLDEN} == COUNTS.keys()


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.name.partition(".")[0])
def test_every_scenario_agrees(file: Path) -> None:
    category = file.name.partition(".")[0]
    replayed = {scenario["id"]: command.replay(scenario) for scenario in scenarios(file)}
    differing = {name: found[:3] for name, (_, _, found) in replayed.items() if found}
    assert differing == {}
    apart = [name for name, (outcome, _, _) in replayed.items() if outcome == command.INVALID]
    assert (len(replayed), len(apart)) == COUNTS[category]


def test_the_command_counts_invalid_objects_apart() -> None:
    result = run(*GOLDEN)
    assert result.exit_code == 0, result.output
    assert result.output.split()[-6:] == ["all", "469", "464", "0", "0", "5"]


def test_both_kinds_of_records_can_be_mixed() -> None:
    result = run(NODES, GOLDEN[0])
    assert result.exit_code == 0, result.output
    assert result.output.split()[-6:] == ["all", "120", "116", "0", "0", "4"]


def test_our_answers_are_written_in_the_form_of_the_records(tmp_path: Path) -> None:
    few, out = scenarios(GOLDEN[1])[:3], tmp_path / "out.jsonl"
    assert run(written(tmp_path, few), "--json", out).exit_code == 0
    answers = [json.loads(line) for line in out.read_text().splitlines()]
    assert answers == [{"id": record["id"], "expect": record["expect"]} for record in few]


def record(**wanted: Any) -> dict[str, Any]:
    """The first record whose expected answer has all this."""
    every = (scenario for file in GOLDEN for scenario in scenarios(file))
    return next(
        each for each in every if each["apiValid"] and all(_has(each["expect"], *item) for item in wanted.items())
    )


def _has(expect: dict[str, Any], key: str, value: Any) -> bool:
    found: Any = expect
    for part in key.split("__"):
        found = found.get(part) if isinstance(found, dict) else None
    return bool(found) if value is ... else bool(found == value)


def alter(expect: dict[str, Any], path: str, value: Any) -> None:
    *parts, last = path.split("__")
    found: Any = expect
    for part in parts:
        found = found[int(part) if part.isdigit() else part]
    found[last] = value


@pytest.mark.parametrize(
    ("wanted", "path", "value"),
    [
        pytest.param({"decisions": ...}, "eligibleSets", ["x"], id="sets"),
        pytest.param({"decisions": ...}, "candidates", [], id="candidates"),
        pytest.param({"decisions": ...}, "filtered__Predicate", [], id="a filter"),
        pytest.param({"decisions": ...}, "prioritizers__0__weight", 9, id="a weight"),
        pytest.param({"decisions": ...}, "prioritizers__0__scores", {}, id="scores"),
        pytest.param({"decisions": ...}, "totals", {}, id="totals"),
        pytest.param({"decisions": ...}, "decisions", [], id="decisions"),
        pytest.param({"decisions": ...}, "unscheduled", 77, id="unscheduled"),
        pytest.param({"decisions": ...}, "status__code", "Warning", id="the status"),
        pytest.param({"status__code": "Warning"}, "status__message", "x", id="a warning's text"),
        pytest.param({"status__plugin": "TaintToleration"}, "status__message", "x", id="a text of our own"),
        pytest.param({"status__plugin": "Predicate"}, "status__plugin", "x", id="the plugin of an error"),
        pytest.param({"decisions": ...}, "requeueAfterSeconds", 77, id="requeue time"),
        pytest.param({"decisions": ...}, "numberOfSelectedClusters", 77, id="number of clusters"),
        pytest.param({"decisions": ...}, "groups__0__clusters", [], id="a group"),
        pytest.param({"decisions": ...}, "slices__0__labels", {}, id="a slice's labels"),
        pytest.param({"decisions": ...}, "conditions__1__reason", "x", id="a condition"),
        pytest.param({"skipped": True}, "skipped", False, id="a skipped placement"),
        pytest.param({"error": ...}, "decisions", [], id="an error beside an answer"),
    ],
)
def test_an_altered_record_differs(wanted: dict[str, Any], path: str, value: Any) -> None:
    found = record(**wanted)
    assert command.replay(found)[0] == command.AGREES
    if path == "decisions" and "error" in found["expect"]:
        found["expect"] = {"decisions": []}
    else:
        alter(found["expect"], path, value)
    assert command.replay(found)[0] == command.DIFFERS


def reworded(prefix: str) -> dict[str, Any]:
    """The first record of a misconfigured predicate whose message begins so, with another message in this place."""
    every = (scenario for file in GOLDEN for scenario in scenarios(file))
    found = next(each for each in every if each["expect"].get("status", {}).get("message", "").startswith(prefix))
    found["expect"]["status"]["message"] = f"{prefix} with an unheard-of problem"
    for condition in found["expect"]["conditions"]:
        if condition["reason"] == "Misconfigured":
            condition["message"] = f"Predicate:{prefix} with an unheard-of problem"
    return found


def test_the_selector_of_a_set_is_described_as_ocm_describes_it() -> None:
    every = (scenario for file in GOLDEN for scenario in scenarios(file))
    wanted = [each for each in every if "label selector operator" in each["expect"].get("error", "")]
    assert [answer(each)["error"] for each in wanted] == [each["expect"]["error"] for each in wanted]
    assert len(wanted) >= 2


def test_the_wording_of_the_compiler_is_not_compared() -> None:
    assert command.replay(reworded("compilation failed"))[0] == command.AGREES


@pytest.mark.parametrize("prefix", ["values: Invalid value: null:", "key: Invalid value:", '"Equals" is not a valid'])
def test_the_wording_of_selectors_is_compared(prefix: str) -> None:
    assert command.replay(reworded(prefix))[0] == command.DIFFERS


RECORD = {
    "id": "x",
    "now": "2026-01-01T00:00:00Z",
    "objects": {},
    "placement": {"metadata": {"name": "p"}},
    "expect": {},
}


@pytest.mark.parametrize(
    "part",
    [
        pytest.param({"now": "yesterday"}, id="not a time"),
        pytest.param({"objects": {"unheardOf": []}}, id="a list of an unknown kind"),
        pytest.param({"objects": {"managedClusters": ["x"]}}, id="an invalid cluster"),
        pytest.param({"placement": {"spec": 5}}, id="an invalid placement"),
    ],
)
def test_a_record_that_cannot_be_answered_differs(tmp_path: Path, part: dict[str, Any]) -> None:
    result = run(written(tmp_path, [RECORD | part]))
    assert result.exit_code == 1
    assert "ours     error: " in result.output and "Traceback" not in result.output


@pytest.mark.parametrize(
    "part",
    [
        pytest.param({"objects": []}, id="objects that are a list"),
        pytest.param({"objects": {"managedClusters": 5}}, id="clusters that are not a list"),
        pytest.param({"placement": 5}, id="a placement that is a number"),
    ],
)
def test_an_invalid_record_exits_with_2(tmp_path: Path, part: dict[str, Any]) -> None:
    result = run(written(tmp_path, [RECORD | part]))
    assert result.exit_code == 2
    assert "not a record" in result.stderr
