"""The generated part of docs/conformance.md: a table of packages, and the reason for each test that did not pass."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests import generated_section
from tests.kube_tests.expectations import RUN, Expectations
from tests.kube_tests.outcomes import BAD, NOT_APPLICABLE, PASSED, Outcome
from tests.kube_tests.results import Results

SECTION = "kube-tests"
UNEXPLAINED = "**not explained yet**"


def write(file: Path, results: Results, expected: Expectations) -> None:
    """Write the generated part of the page."""
    generated_section.replace(file, SECTION, generated(results, expected))


def generated(results: Results, expected: Expectations) -> str:
    return "\n".join(
        [*_summary(results), *_packages(results), *_failures(results, expected), *_others(results, expected)]
    )


def unexplained(results: Results, expected: Expectations) -> list[str]:
    """The tests that failed without a known reason."""
    return [
        f"{package}: {test}"
        for package, test, outcome in _all(results)
        if outcome.ending in BAD and not expected.explanation(package, test)
    ]


def outdated(results: Results, expected: Expectations) -> list[str]:
    """The known failures of packages that were run as a whole, without any test that failed so."""
    return [
        f"{package}: {name}"
        for package, names in expected.known_failures.items()
        for name in names
        if results.is_done(package) and not any(re.match(name, test) for test in _failed(results, package))
    ]


def _failed(results: Results, package: str) -> list[str]:
    return [test for test, outcome in results.packages[package].tests.items() if outcome.ending in BAD]


def _all(results: Results) -> Iterator[tuple[str, str, Outcome]]:
    for package, found in results.packages.items():
        for test, outcome in found.tests.items():
            yield package, test, outcome


def _summary(results: Results) -> Iterator[str]:
    total = Counter(_column(outcome) for _, _, outcome in _all(results))
    commits = sorted({outcome.commit for _, _, outcome in _all(results) if outcome.commit})
    yield (
        f"Kubernetes v{results.kubernetes}, Stowplan at {', '.join(commits) or 'an unknown commit'}: "
        f"{total[PASSED]} passed, {total['failed']} failed, {total[NOT_APPLICABLE]} not applicable. "
        "A test with subtests counts by these."
    )
    yield ""


def _column(outcome: Outcome) -> str:
    return "failed" if outcome.ending in BAD else outcome.ending


def _packages(results: Results) -> Iterator[str]:
    yield from _head("package below test/integration", "passed", "failed", "not applicable", "minutes")
    for package, found in sorted(results.packages.items()):
        count = Counter(_column(outcome) for outcome in found.tests.values())
        part = "" if found.whole else " (in part)"
        minutes = f"{found.seconds / 60:.0f}" if found.whole else ""
        yield _row(f"{package}{part}", count[PASSED], count["failed"], count[NOT_APPLICABLE], minutes)
    yield ""


def _failures(results: Results, expected: Expectations) -> Iterator[str]:
    failed = [(package, test) for package, test, outcome in _all(results) if outcome.ending in BAD]
    if not failed:
        return
    yield from ("Failed:", "")
    yield from _head("test", "reason")
    for package, test in failed:
        yield _row(f"{package}: {test}", expected.explanation(package, test) or UNEXPLAINED)
    yield ""


def _others(results: Results, expected: Expectations) -> Iterator[str]:
    """What cannot be asked of another program: packages, tests by the table, and tests that found out by themselves."""
    yield from ("Not applicable:", "")
    yield from _head("package or test", "reason")
    for package, why in expected.packages.items():
        if why != RUN:
            yield _row(package, why)
    for package, tests in expected.not_applicable.items():
        for test, why in tests.items():
            yield _row(f"{package}: {test}", why)
    found = ((package, test, each) for package, test, each in _all(results) if each.ending == NOT_APPLICABLE)
    for (package, test, why), number in Counter((p, t.partition("/")[0], o.reason) for p, t, o in found).items():
        yield _row(f"{package}: {test}" + (f" ({number} cases)" if number > 1 else ""), why)
    missing = [package for package in expected.runs if not results.is_done(package)]
    if missing:
        yield from ("", f"Not run, or in part only: {', '.join(missing)}.")


def _head(*names: str) -> Iterator[str]:
    yield _row(*names)
    yield "|" + "---|" * len(names)


def _row(*cells: object) -> str:
    return f"| {' | '.join(_cell(each) for each in cells)} |"


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")
