"""`stowplan simulate` with several configurations, streams and seeds: the comparison, the gate, its exit codes."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from stowplan.apps.cli import main
from stowplan.apps.simulate.comparison_text import comparison_text
from stowplan.apps.simulate.gate import gate_text
from stowplan.simulation.comparison import RunFigures, compared
from stowplan.simulation.expectations import JudgedExpectation

HEAD = "apiVersion: simulation.stowplan.io/v1alpha1\nkind: "
CLUSTER = HEAD + "ClusterTemplate\nnodes: [{name: w, count: 4, capacity: {cpu: 8, memory: 32Gi}, price: 0.4}]\n"
SCENARIO = (
    HEAD
    + """Scenario
templates:
- {apiVersion: v1, kind: Pod, metadata: {name: one}, spec: {containers: [{name: a, image: b}]}}
phases:
- name: day
  for: 30m
  arrivals:
  - {template: one, requests: {cpu: 1}, process: {poisson: 60s}, duration: {exponential: 15m}}
  - {template: one, requests: {cpu: 8}, process: {poisson: 5m}, duration: {exponential: 5m}}
"""
)
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
FIT = "{scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}"
PACKED = CONFIG + f"profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {FIT}}}]}}]\n"
EXPECT = HEAD + "Expectations\nexpect:\n- {figure: pods.neverPlaced, atMost: 0}\n- {figure: wait.p99, atMost: %s}\n"
BOTH = "--config today.yaml --config packed.yaml"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    texts = {
        "cluster.yaml": CLUSTER, "day.yaml": SCENARIO, "today.yaml": CONFIG, "packed.yaml": PACKED,
        "trace.csv": "arrival,duration,cpu\n0,60,4\n10,60,8\n", "night.csv": "arrival,duration,cpu\n0,600,8\n",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def said(words: str) -> Result:
    return CliRunner().invoke(main, ["simulate", "cluster.yaml", *shlex.split(words)])


def test_two_configurations_are_compared_over_seeds(folder: Path) -> None:
    found = said(f"day.yaml {BOTH} --seeds 3 --jobs 2 --out out")
    assert found.exit_code == 0, found.output
    assert found.stdout.startswith("packed beside today, seeds 0 to 2\n") and "wait.p99" in found.stdout
    assert max(map(len, found.stdout.splitlines())) <= 80
    told = json.loads((folder / "out" / "comparison.json").read_text())
    assert (told["kind"], told["configurations"], told["seeds"]) == ("Comparison", ["today", "packed"], [0, 1, 2])
    rows = [json.loads(line) for line in (folder / "out" / "runs.jsonl").read_text().splitlines()]
    assert [(row["configuration"], row["seed"]) for row in rows] == [
        (name, seed) for seed in range(3) for name in ("today", "packed")
    ]
    one = json.loads(said("day.yaml --config packed.yaml --seed 2 -o json").stdout)
    assert rows[-1]["figures"] == one
    used = next(each for each in told["figures"] if each["figure"] == "nodes.meanUsed")
    mean = sum(row["figures"]["nodes"]["meanUsed"] for row in rows if row["configuration"] == "packed") / 3
    assert used["spreads"]["packed"]["mean"] == pytest.approx(mean)


def test_the_report_has_a_run_of_each_configuration(folder: Path) -> None:
    words = f"day.yaml {BOTH} --seeds 2 --journal j.jsonl"
    assert said(f"{words} --report a.html").exit_code == 0
    page = (folder / "a.html").read_text(encoding="utf-8")
    data = re.search(r'id="heat-data">(.*?)</script>', page)
    assert data is not None and len(json.loads(data[1])["runs"]) == 2
    assert "packed" in page and "MostAllocated" in page
    # The first seed is that of a run alone, and a journal has what the page needs.
    assert said("day.yaml --config packed.yaml --report one.html").exit_code == 0
    alone = re.search(r'id="heat-data">(.*?)</script>', (folder / "one.html").read_text(encoding="utf-8"))
    assert alone is not None
    assert json.loads(data[1])["runs"][1]["parts"] == json.loads(alone[1])["runs"][0]["parts"]
    assert said(f"{words} --report b.html").exit_code == 0
    assert (folder / "b.html").read_text(encoding="utf-8") == page
    assert "j.jsonl" in said(words).stderr  # the journal of another sweep: its answers have what a report needs


def test_the_number_of_processes_and_a_journal_change_nothing(folder: Path) -> None:
    first = said(f"day.yaml {BOTH} --seeds 2 --jobs 1 -o json")
    assert said(f"day.yaml {BOTH} --seeds 2 --jobs 3 -o json --journal j.jsonl").stdout == first.stdout
    kept = (folder / "j.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "j.jsonl").write_bytes(b"".join(kept[:3]) + kept[3][:20])
    again = said(f"day.yaml {BOTH} --seeds 2 --jobs 2 -o json --journal j.jsonl")
    assert again.stdout == first.stdout and again.stderr == "2 of 4 runs are in j.jsonl\n"


def test_streams_are_alternatives(folder: Path) -> None:
    found = json.loads(said(f"{BOTH} --stream busy=trace.csv --stream night.csv -o json").stdout)
    assert found["streams"] == ["busy", "night"]
    arrived = {
        each["stream"]: each["spreads"]["today"]["mean"]
        for each in found["figures"]
        if each["figure"] == "pods.arrived"
    }
    assert arrived == {"busy": 2, "night": 1}


def test_one_configuration_over_seeds_shows_its_spread(folder: Path) -> None:
    found = said("day.yaml --seeds 3 --figure wait.*")
    lines = found.stdout.splitlines()
    assert lines[0] == "default, seeds 0 to 2" and lines[2].split() == ["Figure", "mean", "deviation", "least", "most"]
    assert [line.split()[0] for line in lines[3:]] == [
        f"wait.{name}" for name in ("mean", "p50", "p90", "p95", "p99", "p100")
    ]


def test_one_run_shows_its_summary_as_ever(folder: Path) -> None:
    found = said("trace.csv --config packed.yaml").stdout
    assert "Pods       2 arrived, 2 got a node" in found and "Figure" not in found
    assert said("--stream one=trace.csv --config other=packed.yaml --seeds 1 --jobs 2").stdout == found


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        pytest.param("day.yaml --fail-if 'pods.neverPlaced > 0'", 0, "Expectations: all 1 hold", id="one run"),
        pytest.param("trace.csv --fail-if 'pods.arrived > 0'", 1, "FAILED default: pods.arr", id="one run fails"),
        pytest.param(f"day.yaml {BOTH} --seeds 2 --fail-if 'nodes.meanUsed.change > 0'", 0, "all 1 hold", id="better"),
        pytest.param(f"day.yaml {BOTH} --fail-if 'nodes.meanUsed.change < -5%'", 1, "1 of 1 failed", id="changed"),
        pytest.param("day.yaml --config today.yaml --expect expect.yaml", 0, "all 2 hold", id="a file"),
        pytest.param("day.yaml --config today.yaml --expect strict.yaml", 1, "1 of 2 failed", id="a file fails"),
        pytest.param("--stream a=trace.csv --fail-if 'wait.p100 > 1s'", 0, "default, a: wait.p100", id="stream"),
    ],
)  # fmt: skip
def test_a_gate_decides_the_exit_code(folder: Path, words: str, code: int, told: str) -> None:
    (folder / "expect.yaml").write_text(EXPECT % "1d")
    (folder / "strict.yaml").write_text(EXPECT % "0")
    found = said(words)
    assert found.exit_code == code, found.output
    assert told in " ".join(found.stdout.split())


def test_what_is_expected_is_part_of_the_json(folder: Path) -> None:
    found = said("trace.csv --fail-if 'wait.p100 > 1s' -o json")
    (one,) = json.loads(found.stdout)["expectations"]
    assert (one["expectation"], one["configuration"], one["holds"]) == ("wait.p100 <= 1s", "default", True)
    both = json.loads(said(f"trace.csv {BOTH} --fail-if 'wait.p100 > 1s' -o json").stdout)
    assert [each["configuration"] for each in both["expectations"]] == ["packed"]


def test_a_junit_file_has_a_case_for_each_expectation(folder: Path) -> None:
    gates = "--fail-if 'pods.arrived < 1' --fail-if 'today: cost.all > 0' --junit junit.xml"
    found = said(f"{BOTH} --stream a=trace.csv --stream b=night.csv {gates}")
    assert found.exit_code == 1
    root = ElementTree.parse(folder / "junit.xml").getroot()
    assert root is not None and root.tag == "testsuites"
    suite = root.find("testsuite")
    assert suite is not None and root.attrib | {"skipped": "0"} == suite.attrib
    assert (suite.attrib["name"], suite.attrib["tests"], suite.attrib["failures"]) == ("stowplan simulate", "4", "2")
    assert float(suite.attrib["time"]) > 0
    cases = [(each.attrib["classname"], each.attrib["name"], each.find("failure") is None) for each in suite]
    assert cases == [
        ("packed.a", "pods.arrived >= 1", True), ("packed.b", "pods.arrived >= 1", True),
        ("today.a", "cost.all <= 0", False), ("today.b", "cost.all <= 0", False),
    ]  # fmt: skip
    failure = suite[2].find("failure")
    assert failure is not None and failure.attrib["message"].startswith("cost.all is 0.")
    assert failure.text is not None and failure.text.startswith("today.a: expected cost.all <= 0: cost.all is")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("day.yaml --config a=today.yaml --config a=packed.yaml", "today.yaml is named 'a', too; give them names"),
        ("day.yaml --config today.yaml --config today.yaml", "today.yaml: --config: is given twice; give them names"),
        ("day.yaml --config x:y=today.yaml", "'x:y' is no name; write NAME=FILE"),
        ("day.yaml --config today.yaml --config none.yaml", "none.yaml: cannot be read: No such file"),
        ("--stream none.csv", "none.csv: --stream none: does not exist"),
        ("day.yaml --fail-if 'wait.p98 > 1s'", "no figure is named 'wait.p98'; did you mean wait.p9"),
        ("day.yaml --fail-if 'wait.p99.change > 1s'", "has nothing to compare with; give --config twice"),
        (f"day.yaml {BOTH} --fail-if 'wait.p99.realChange > 1s'", "with one seed nobody can say what is real"),
        (f"trace.csv {BOTH} --figure wait.p98", "--figure: no figure is named 'wait.p98'; did you mean wait.p9"),
        (f"broken.csv {BOTH} --figure 'wiat.*'", "--figure: no figure is named 'wiat.*'; did you mean wait.p"),
        (f"trace.csv {BOTH} --figure allocation.cpuu", "--figure: no figure is named 'allocation.cpuu'; did you mean"),
        ("trace.csv --fail-if 'allocation.cpuu > 1%'", "--fail-if: no figure is named 'allocation.cpuu'; did you mean"),
        ("day.yaml --junit junit.xml", "--junit: there is nothing to write; give --fail-if or --expect"),
        ("day.yaml --fail-if 'wait.p99 > 1' --junit none/junit.xml", "none/junit.xml: --junit: cannot be written"),
        ("day.yaml --expect today.yaml", "today.yaml: "),
        (f"broken.csv {BOTH}", "seed 0: broken.csv: line 2: "),
    ],
)
def test_bad_input_is_refused_with_exit_code_2(folder: Path, words: str, told: str) -> None:
    (folder / "broken.csv").write_text("arrival,cpu\n-1,1\n")
    found = said(words)
    assert found.exit_code == 2 and found.stderr.startswith("stowplan: ") and told in found.stderr, found.output


def test_a_name_that_no_run_has_costs_nothing_but_the_gate(folder: Path) -> None:
    """Which resources there are is known at the end: what was done until then is told."""
    found = said(f"trace.csv {BOTH} --fail-if 'allocation.cpuu > 1%' --out out")
    assert found.exit_code == 2 and "packed beside today" in found.stdout
    assert (folder / "out" / "runs.jsonl").exists()


def test_a_journal_of_another_plugin_is_refused(folder: Path) -> None:
    """The code of a plugin counts as its configuration does."""
    (folder / "own.py").write_text("class Own:\n    def filter(self, pod, nodes):\n        return []\n")
    (folder / "own.yaml").write_text(CONFIG + "profiles: [{plugins: {filter: {enabled: [{name: 'own.py:Own'}]}}}]\n")
    words = "trace.csv --config today.yaml --config own.yaml --journal j.jsonl --figure wait.mean"
    first = said(words)
    assert first.exit_code == 0, first.output
    assert "own: note: own.py:Own: `stowplan run` loads it" in first.stderr
    (folder / "own.py").write_text("class Own:\n    def filter(self, pod, nodes):\n        return ()\n")
    found = said(words)
    assert found.exit_code == 2 and "with a difference in own.py; remove it to begin again" in found.stderr
    assert said(words.replace("j.jsonl", "other.jsonl")).exit_code == 0
    found = said(f"{words.replace('j.jsonl', 'other.jsonl')} --until 1h")
    assert found.exit_code == 2 and "with a difference in until" in found.stderr


def test_what_is_skipped_is_said_once_for_each_configuration(folder: Path) -> None:
    (folder / "broken.csv").write_text("arrival,cpu\n-1,1\n3,1\n")
    found = said(f"broken.csv {BOTH} --seeds 2 --skip-invalid --figure wait.mean")
    assert [line.partition(": line 2")[0] for line in found.stderr.splitlines()] == [
        "today: skipped: broken.csv", "packed: skipped: broken.csv",
    ]  # fmt: skip


def test_every_table_is_within_80_columns_whatever_the_names_are() -> None:
    long = "x" * 253
    figures = {f"allocation.{long}": 1e9, "cost.all": 1e12, "wait.p99": 1e9, f"evictions.byReason.{long}": 1.0}
    runs = [
        RunFigures(f"{name}{long}", long, seed, {key: each * (1 + seed * place) for key, each in figures.items()})
        for place, name in enumerate("abc") for seed in range(3)
    ]  # fmt: skip
    words = comparison_text(compared(runs)).split("\n")
    assert max(len(line) for line in words if long not in line) <= 80
    assert comparison_text(compared(runs[:3])).startswith("a")
    judged = [JudgedExpectation("wait.p99 <= 60s", long, long, False, 1, "wait.p99 is 1e9")]
    assert max(map(len, gate_text(judged).splitlines())) <= 80


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (([1.0], [2.0]), "One seed does not say whether a change is chance"),
        (([1.0, 1.0], [2.0, 2.0]), "The seed changes nothing in these runs"),
        (([1.0, 2.0], [1.0, 2.0]), "Nothing differs. The same: wait.p99"),
        (([1.0, 2.0], [2.0, 2.5]), "more seeds may tell"),
    ],
)
def test_what_a_table_means_is_said_below_it(values: tuple[list[float], list[float]], told: str) -> None:
    runs = [
        RunFigures(name, "", seed, {"wait.p99": each})
        for name, found in zip("ab", values, strict=True) for seed, each in enumerate(found)
    ]  # fmt: skip
    assert told in " ".join(comparison_text(compared(runs)).split())
