"""From the events of test programs to the table of docs/conformance.md."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kube_tests import conformance, expectations, results, runner
from tests.kube_tests.expectations import Expectations
from tests.kube_tests.outcomes import CUT_OFF, FAILED, NOT_APPLICABLE, PASSED, Collector, Outcome
from tests.kube_tests.results import PackageResults, Results

EXPECTED = Expectations(
    packages={"scheduler/a": "run", "scheduler/b": "run", "scheduler/c": "plugins written in Go"},
    not_applicable={"scheduler/a": {"TestInside": "looks inside", "TestTable/(x|y)": "a mock"}},
    known_failures={"scheduler/a": {"TestKnown/one": "an alpha feature"}},
)


def event(action: str, test: str = "", output: str = "", elapsed: float = 0.0) -> str:
    return json.dumps({"Action": action, "Test": test, "Output": output, "Elapsed": elapsed})


def collected(*lines: str) -> dict[str, Outcome]:
    collector = Collector()
    for line in lines:
        collector.take(line)
    return collector.outcomes("abc1234")


def test_a_test_with_subtests_counts_by_these() -> None:
    found = collected(
        event("run", "TestA"), event("run", "TestA/one"), event("pass", "TestA/one", elapsed=1.5),
        event("run", "TestA/two"), event("fail", "TestA/two"), event("fail", "TestA"),
    )  # fmt: skip
    assert {test: outcome.ending for test, outcome in found.items()} == {"TestA/one": PASSED, "TestA/two": FAILED}
    assert (found["TestA/one"].seconds, found["TestA/one"].commit) == (1.5, "abc1234")


@pytest.mark.parametrize(
    ("lines", "endings"),
    [
        pytest.param([event("run", "T"), event("pass", "T")], {"T": PASSED}, id="passed"),
        pytest.param([event("run", "T")], {"T": CUT_OFF}, id="the program ended in the middle"),
        pytest.param(["not an event", event("run", "T"), event("skip", "T")], {"T": NOT_APPLICABLE}, id="skipped"),
        pytest.param(
            [event("run", "T"), event("run", "T/x"), event("pass", "T/x"), event("fail", "T")],
            {"T": FAILED, "T/x": PASSED},
            id="failed after its subtests passed",
        ),
        pytest.param(
            [event("run", "T"), event("run", "T/x"), event("run", "T/x/y"), event("pass", "T/x/y")],
            {"T/x/y": PASSED},
            id="subtests of subtests",
        ),
    ],
)
def test_endings(lines: list[str], endings: dict[str, str]) -> None:
    assert {test: outcome.ending for test, outcome in collected(*lines).items()} == endings


def test_why_a_test_was_not_asked_and_what_a_failed_one_said() -> None:
    found = collected(
        event("run", "TestNo"), event("output", "TestNo", "    util.go:9: EXTERNAL-NA: a fake clock\n"),
        event("skip", "TestNo"), event("run", "TestItself"), event("skip", "TestItself"),
        event("run", "TestBad"), event("output", "TestBad", "just talk\n"),
        event("output", "TestBad", "    filters_test.go:12: no node\n"), event("fail", "TestBad"),
    )  # fmt: skip
    assert (found["TestNo"].reason, found["TestItself"].reason) == ("a fake clock", "skips itself")
    assert found["TestBad"].said == ("filters_test.go:12: no node",)


def test_what_is_taken_says_which_test_ended_and_what_is_for_the_log() -> None:
    collector = Collector()
    assert collector.take(event("run", "T")) == ("", "")
    assert collector.take(event("output", "T", "hello\n")) == ("", "hello\n")
    assert collector.take("go: a warning\n") == ("", "go: a warning\n")
    assert collector.take(event("pass", "T")) == ("T", "")


def some_results() -> Results:
    return Results(
        "1.36.4",
        {
            "scheduler/a": PackageResults(
                True,
                180.0,
                {
                    "TestGood": Outcome(PASSED, commit="abc1234"),
                    "TestKnown/one": Outcome(FAILED, commit="abc1234"),
                    "TestBad": Outcome(CUT_OFF, commit="abc1234"),
                    "TestNo/one": Outcome(NOT_APPLICABLE, reason="plugins: x | y", commit="abc1234"),
                    "TestNo/two": Outcome(NOT_APPLICABLE, reason="plugins: x | y", commit="abc1234"),
                },
            )
        },
    )


def test_the_table() -> None:
    text = conformance.generated(some_results(), EXPECTED)
    for line in (
        "Kubernetes v1.36.4, Stowplan at abc1234: 1 passed, 2 failed, 2 not applicable. A test with subtests counts "
        "by these.",
        "| scheduler/a | 1 | 2 | 2 | 3 |",
        "| scheduler/a: TestKnown/one | an alpha feature |",
        "| scheduler/a: TestBad | **not explained yet** |",
        "| scheduler/c | plugins written in Go |",
        "| scheduler/a: TestTable/(x\\|y) | a mock |",
        "| scheduler/a: TestNo (2 cases) | plugins: x \\| y |",
        "Not run, or in part only: scheduler/b.",
    ):
        assert line in text.split("\n")
    assert conformance.unexplained(some_results(), EXPECTED) == ["scheduler/a: TestBad"]


def test_a_known_failure_that_does_not_happen_any_more_is_named() -> None:
    mended = some_results()
    assert conformance.outdated(mended, EXPECTED) == []
    mended.packages["scheduler/a"].tests["TestKnown/one"] = Outcome(PASSED)
    assert conformance.outdated(mended, EXPECTED) == ["scheduler/a: TestKnown/one"]
    mended.packages["scheduler/a"].whole = False
    assert conformance.outdated(mended, EXPECTED) == []


def test_the_part_of_the_document_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    file = tmp_path / "conformance.md"
    begin, end = "<!-- kube-tests: generated -->", "<!-- kube-tests: end -->"
    file.write_text(f"# Ours\n\n{begin}\nold\n{end}\n\n## Soak\n")
    for _ in range(2):
        conformance.write(file, some_results(), EXPECTED)
        text = file.read_text()
        assert text.startswith("# Ours\n") and text.endswith(f"{end}\n\n## Soak\n")
        assert "old" not in text and text.count("| scheduler/a | 1") == 1
    for marks in ("no marks", f"{end}\n{begin}", f"{begin}\n{begin}\n{end}"):
        file.write_text(marks)
        with pytest.raises(ValueError, match="expected one line"):
            conformance.write(file, some_results(), EXPECTED)
        assert file.read_text() == marks


def test_results_are_kept_and_added_to(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    kept = results.read(file, "1.36.4")
    kept.add("scheduler/a", {"T": Outcome(FAILED), "U": Outcome(PASSED)}, 60, whole=True)
    kept.add("scheduler/a", {"T": Outcome(PASSED, reason="again")}, 1, whole=False)
    kept.add("scheduler/b", {"V": Outcome(PASSED)}, 1, whole=False)
    kept.write(file)
    found = results.read(file, "1.36.4")
    assert found == kept
    assert {test: each.ending for test, each in found.packages["scheduler/a"].tests.items()} == {
        "T": PASSED,
        "U": PASSED,
    }
    assert (found.is_done("scheduler/a"), found.is_done("scheduler/b"), found.is_done("c")) == (True, False, False)
    assert results.read(file, "1.37.0").packages == {}


def test_the_command_leaves_out_what_cannot_be_asked(tmp_path: Path) -> None:
    request = runner.Request("scheduler/a", tmp_path, only="TestX")
    found = runner.command(request, EXPECTED)
    assert found[:4] == ["go", "tool", "test2json", "-t"] and "-test.run=TestX" in found
    assert "-test.skip=TestInside|TestTable/(x|y)" in found
    original = runner.command(runner.Request("scheduler/a", tmp_path, original=True), EXPECTED)
    assert not [each for each in original if each.startswith("-test.skip")]


def test_the_table_of_expectations_is_complete() -> None:
    found = expectations.load()
    assert "scheduler/filters" in found.runs
    for table in (found.not_applicable, found.known_failures):
        assert set(table) <= set(found.runs)
    reasons = [
        why for tests in (*found.not_applicable.values(), *found.known_failures.values()) for why in tests.values()
    ]
    assert all(len(why) > 5 for why in (*reasons, *(why for why in found.packages.values() if why != "run")))
