"""The command line: `python -m tests.kube_tests --help`."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from tests.controlplane.build import MAIN, CannotBuildError
from tests.kube_tests import build, conformance, expectations, results, runner
from tests.kube_tests.outcomes import BAD, Outcome
from tests.kube_tests.runner import STOWPLAN, Request

FOLDER = results.ROOT / "build" / "kube-tests"
DOCUMENT = results.ROOT / "docs" / "conformance.md"


def arguments() -> argparse.Namespace:
    about = "Run kube-scheduler's integration tests against Stowplan; write the table of docs/conformance.md."
    parser = argparse.ArgumentParser(prog="python -m tests.kube_tests", description=about)
    parser.add_argument(
        "packages", nargs="*", help="packages below test/integration, such as scheduler/filters; all by default"
    )
    parser.add_argument("--run", default="", help="only these tests: a regular expression, as for go test")
    parser.add_argument("--skip", default="", help="not these tests: a regular expression, as for go test")
    parser.add_argument("--original", action="store_true", help="kube-scheduler's own code, for comparison")
    parser.add_argument("--again", action="store_true", help="also run packages that are done")
    parser.add_argument("--build-only", action="store_true", help="only build the tests")
    parser.add_argument("--table-only", action="store_true", help="only write docs/conformance.md from the results")
    parser.add_argument("--scheduler", default=STOWPLAN, help="the scheduler's command line [%(default)s]")
    parser.add_argument("--gang", default="", help="the scheduler's name for GangScheduling, if it is another one")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for results and logs [build/kube-tests]")
    return parser.parse_intermixed_args()


class Screen:
    """One line on a terminal that says how far it is; a line for each test that failed, and for each package."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False)

    def tell(self, line: str) -> None:
        self.console.print(escape(line))

    def show(self, package: str, found: dict[str, Outcome], seconds: float) -> None:
        self.tell(f"{package}: {counts(found)} in {seconds:.0f} s")
        for test, outcome in found.items():
            if outcome.ending in BAD:
                self.tell(f"  {outcome.ending}: {test} ({outcome.seconds:g} s)")
                for line in outcome.said:
                    self.tell(f"      {line[:300]}")


def counts(found: dict[str, Outcome]) -> str:
    count = Counter(outcome.ending for outcome in found.values())
    return ", ".join(f"{number} {ending}" for ending, number in sorted(count.items())) or "no tests"


def main() -> int:
    given, expected, screen = arguments(), expectations.load(), Screen()
    file = given.folder / ("results-original.json" if given.original else "results.json")
    kept = results.read(file, MAIN)
    unknown = [package for package in given.packages if package not in expected.packages]
    if unknown:
        screen.tell(f"found the packages {', '.join(unknown)}; there is {', '.join(expected.packages)}")
        return 2
    packages = given.packages or expected.runs
    if not given.table_only:
        try:
            build.build(packages, screen.tell)
        except CannotBuildError as error:
            screen.tell(str(error))
            return 2
    if given.build_only:
        return 0
    if not given.table_only:
        for package in packages:
            run_one(given, package, expected, kept, screen)
            kept.write(file)
    if given.original:
        return 0
    return finish(kept, expected, screen, partly=bool(given.run or given.skip))


def run_one(
    given: argparse.Namespace, package: str, expected: expectations.Expectations, kept: results.Results, screen: Screen
) -> None:
    request = Request(
        package, given.folder, results.commit(), given.original, given.run, given.skip,
        shlex.join(shlex.split(given.scheduler)), given.gang,
    )  # fmt: skip
    if request.whole and not given.again and kept.is_done(package):
        screen.tell(f"{package}: {counts(kept.packages[package].tests)} (done before; --again runs it again)")
        return
    started = time.monotonic()
    with screen.console.status(package) as status:
        found = runner.run(
            request, expected, lambda test, so_far: status.update(escape(f"{package}: {counts(so_far)}; last {test}"))
        )
    seconds = runner.timed(started)
    kept.add(package, found, seconds, whole=request.whole)
    screen.show(package, found, seconds)


def finish(kept: results.Results, expected: expectations.Expectations, screen: Screen, *, partly: bool) -> int:
    """Write the table (not after a run of some tests only), and name the failures that nobody explained."""
    if not partly:
        conformance.write(DOCUMENT, kept, expected)
    missing = conformance.unexplained(kept, expected)
    for test in missing:
        screen.tell(f"failed, and expectations.yaml has no reason: {test}")
    for name in conformance.outdated(kept, expected):
        screen.tell(f"expectations.yaml explains failures that there are none of: {name}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
