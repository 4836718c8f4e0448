"""We agree with every recorded decision of the real kube-scheduler; and the output of `stowplan parity`."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from stowplan.apps.cli import main
from stowplan.apps.parity import command
from stowplan.columns.pods import carried_terms

GOLDEN = sorted((Path(__file__).parents[2] / "golden" / "nodes").glob("*.jsonl.gz"))


def scenarios(file: Path) -> list[dict[str, Any]]:
    return [scenario for _, scenario in command.read(file)]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["parity", *map(str, arguments)])


def test_records_exist() -> None:
    assert len(GOLDEN) == 14
    assert {file.name.partition(".")[0] for file in GOLDEN} >= {"taints", "preemption", "volumes", "dynamic-resources"}


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.name.partition(".")[0])
def test_every_scenario_agrees(file: Path) -> None:
    outcomes: Counter[str] = Counter()
    differing = {}
    for scenario in scenarios(file):
        outcome, _, found = command.replay(scenario)
        outcomes[outcome] += 1
        if found:
            differing[scenario["id"]] = found[:3]
    assert differing == {}
    assert outcomes[command.AGREES] == outcomes.total() > 0


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.name.partition(".")[0])
def test_every_scenario_agrees_as_if_many_terms_were_carried(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The terms of existing pods are then added up, and not looked at one by one."""
    monkeypatch.setattr(carried_terms, "MANY", 0)
    affine = (each for each in scenarios(file) if "PodAffinity" in str(each) or "podAntiAffinity" in str(each))
    assert {each["id"]: found for each in affine if (found := command.replay(each)[2][:3])} == {}


# -- the command

TAINTS = next(file for file in GOLDEN if file.name.startswith("taints"))


@pytest.fixture(scope="module")
def few() -> list[dict[str, Any]]:
    return scenarios(TAINTS)[:3]


def written(folder: Path, records: list[dict[str, Any]], name: str = "some.jsonl") -> Path:
    file = folder / name
    text = "\n".join(json.dumps(record) for record in records).encode()
    file.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return file


@pytest.mark.parametrize(
    "name", [pytest.param("some.jsonl", id="plain"), pytest.param("some.jsonl.gz", id="compressed")]
)
def test_agreement_exits_with_0(tmp_path: Path, few: list[dict[str, Any]], name: str) -> None:
    result = run(written(tmp_path, few, name))
    assert result.exit_code == 0, result.output
    assert result.output.split()[-5:] == ["all", "3", "3", "0", "0"]


def test_our_answers_are_written_in_the_form_of_the_records(tmp_path: Path, few: list[dict[str, Any]]) -> None:
    out = tmp_path / "out.jsonl"
    assert run(written(tmp_path, few), "--json", out).exit_code == 0
    answers = [json.loads(line) for line in out.read_text().splitlines()]
    assert answers == [{"id": record["id"], "expect": record["expect"]} for record in few]


def first_key(mapping: dict[str, Any]) -> str:
    return next(iter(mapping))


def drop_a_node(expect: dict[str, Any]) -> None:
    del expect["filter"][first_key(expect["filter"])]


def add_a_node(expect: dict[str, Any]) -> None:
    expect["filter"]["unheard-of"] = None


def change_a_score(expect: dict[str, Any]) -> None:
    expect["scores"][first_key(expect["scores"])]["TaintToleration"] -= 1


def change_the_best(expect: dict[str, Any]) -> None:
    expect["best"] = ["unheard-of"]


def add_a_field(expect: dict[str, Any]) -> None:
    expect["message"] = "0/1 nodes are available."


@pytest.mark.parametrize(
    ("alter", "path"),
    [
        pytest.param(drop_a_node, "filter.", id="a node is missing"),
        pytest.param(add_a_node, "filter.unheard-of", id="a node is added"),
        pytest.param(change_a_score, "scores.", id="a score is changed"),
        pytest.param(change_the_best, "best", id="the best node is changed"),
        pytest.param(add_a_field, "message", id="a field is added"),
    ],
)
def test_an_altered_record_differs(tmp_path: Path, alter: Any, path: str) -> None:
    record = next(each for each in scenarios(TAINTS) if each["expect"].get("scores"))
    alter(record["expect"])
    result = run(written(tmp_path, [record]))
    assert result.exit_code == 1
    assert f"{record['id']} differs in 1 field(s):\n  {path}" in result.output
    assert result.output.split()[-5:] == ["all", "1", "0", "1", "0"]


def test_the_number_of_differences_shown_is_limited(tmp_path: Path, few: list[dict[str, Any]]) -> None:
    altered = [{**record, "expect": {**record["expect"], "extra": True}} for record in few]
    result = run(written(tmp_path, altered), "--show", "1")
    assert result.exit_code == 1
    assert result.output.count("differs in") == 1
    assert "2 more differ; --show 3 shows all" in result.output


RECORD = '{"id": "x", "cluster": {}, "pod": {"metadata": {"name": "p"}}}'
GARBLED = gzip.compress(b"")[:10] + b"\xff" * 20


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(b"hello", "line 1: not JSON: ", id="not JSON"),
        pytest.param(b"\n\n[1]", "line 3: not a record; ", id="JSON, not a record"),
        pytest.param(b'{"id": 1}', "line 1: not a record; ", id="half a record"),
        pytest.param(b"\xff\xfe\x00", "line 1: not JSON: ", id="bytes"),
        pytest.param(gzip.compress(RECORD.encode())[:-10], "cannot be read: ", id="a compressed file cut short"),
        pytest.param(b"\x1f\x8bnonsense", "cannot be read: ", id="only the first bytes of a compressed file"),
        pytest.param(GARBLED, "cannot be read: ", id="a garbled compressed file"),
        pytest.param(RECORD.replace("{}", "[]").encode(), "line 1: not a record; ", id="a cluster that is a list"),
        pytest.param(
            RECORD.replace("{}", '{"nodes": 5}').encode(), "line 1: not a record; ", id="nodes that are not a list"
        ),
        pytest.param(
            RECORD.replace('{"metadata": {"name": "p"}}', "5").encode(), "not a record; ", id="a pod that is a number"
        ),
    ],
)
def test_files_that_cannot_be_used_exit_with_2(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_bytes(content)
    result = run(file)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith(f"stowplan: {file}: ")
    assert problem in result.stderr
    assert "Traceback" not in result.output and result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        pytest.param("missing.jsonl", "No such file", id="no such file"),
        pytest.param(".", "Is a directory", id="a folder"),
    ],
)
def test_files_that_cannot_be_read_exit_with_2(tmp_path: Path, name: str, problem: str) -> None:
    result = run(tmp_path / name)
    assert (result.exit_code, problem in result.stderr) == (2, True), result.output


@pytest.mark.parametrize(
    "part",
    [
        pytest.param({"pod": {"metadata": {"name": "p"}, "spec": 5}}, id="an invalid pod"),
        pytest.param({"cluster": {"unheardOf": []}}, id="a list of an unknown kind"),
        pytest.param({"cluster": {"nodes": ["x"]}}, id="an invalid node"),
        pytest.param({"config": {"kind": "Wrong"}}, id="an invalid configuration"),
        pytest.param({"pod": {"spec": {"schedulerName": "nobody"}}}, id="an unknown scheduler"),
    ],
)
def test_a_record_that_cannot_be_answered_differs(tmp_path: Path, part: dict[str, Any]) -> None:
    result = run(written(tmp_path, [json.loads(RECORD) | {"expect": {}} | part]))
    assert result.exit_code == 1
    assert "ours     error: " in result.output and "Traceback" not in result.output


def test_no_records_at_all_is_not_agreement(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    assert run(tmp_path / "empty.jsonl").exit_code == 1


def test_no_files_is_a_wrong_command() -> None:
    assert run().exit_code == 2
