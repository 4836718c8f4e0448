"""Hypothesis profiles, and a line in the summary that says what ran against real control planes.

The profile is chosen by STOWPLAN_HYPOTHESIS:

ci      (the default) quick, and the same examples each time
full    many more examples, others each time
hasty   as ci, but reports the first failure as it was found: searching for a simpler one may take minutes

Tests may run in several processes (pytest-xdist): workers, and a controller that shows what they report. The hooks here
are in the topmost conftest since the controller collects nothing, so that it reads no other.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.controlplane import build
from tests.controlplane.fixtures import embedded as embedded  # these three are for tests/attacks, too
from tests.controlplane.fixtures import plane as plane
from tests.controlplane.fixtures import plane_137 as plane_137
from tests.started_planes import started

ci = settings(
    deadline=None,
    derandomize=True,
    max_examples=80,
    stateful_step_count=30,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.register_profile("ci", ci)
settings.register_profile("full", ci, derandomize=False, max_examples=600, stateful_step_count=50, print_blob=True)
settings.register_profile("hasty", ci, phases=[Phase.explicit, Phase.generate])
settings.load_profile(os.environ.get("STOWPLAN_HYPOTHESIS", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kubernetes",
        choices=[build.minor(each) for each in build.VERSIONS],
        default=build.minor(build.MAIN),
        help="the server of tests that say `on Kubernetes %(default)s`",
    )


REAL = ("controlplane", True)  # a property of tests that are marked so; reports take it along


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("controlplane"):
            item.user_properties.append(REAL)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A worker has ended; one that died told nothing."""
    started(node.config).update(getattr(node, "workeroutput", {}).get("started", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reports = [
        report
        for outcome in ("passed", "failed", "error", "skipped")
        for report in terminalreporter.getreports(outcome)
        if REAL in getattr(report, "user_properties", ())
    ]
    skipped = [report for report in reports if report.skipped]
    if reports:
        versions = ", ".join(f"{number} × {version}" for version, number in started(config).items()) or "none"
        ran = sum(report.when == "call" and not report.skipped for report in reports)
        terminalreporter.write_line(f"control plane: {ran} tests run (Kubernetes started: {versions})")
    if skipped:
        reason = str(skipped[0].longrepr[2]).removeprefix("Skipped: ")  # of path, line and reason
        terminalreporter.write_line(f"control plane: {len(skipped)} tests SKIPPED: {reason}", yellow=True, bold=True)
