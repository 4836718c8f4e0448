"""docs/operations.md names every metric of ours, every flag and event of the decision log, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import click

from stowplan.apps.cli import main
from tests.monitoring import known_metrics

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "operations.md").read_text(encoding="utf-8")
ELSEWHERE = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("placement.md", "scores.md", "running.md"))
OURS = re.compile(r"\b(?:stowplan_[a-z_]+|leader_election_[a-z_]+)")


def families() -> set[str]:
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in known_metrics.names() if OURS.fullmatch(name)}


def test_each_metric_of_ours_is_described() -> None:
    assert families() - set(OURS.findall(PAGE + ELSEWHERE)) == set()


def test_each_metric_on_the_page_exists() -> None:
    written = "stowplan_decision_log_lines_total"  # only with that log
    assert set(OURS.findall(PAGE)) - families() == {written}


def test_each_flag_of_the_decision_log_is_described() -> None:
    run = main.commands["run"]
    flags = {flag for each in run.params for flag in each.opts if flag.startswith("--decision-log")}
    assert set(re.findall(r"`(--decision-log[a-z-]*)", PAGE)) == flags


def test_each_event_of_the_decision_log_is_described() -> None:
    table = PAGE.partition("| `event` |")[2].partition("A decision is not a binding")[0]
    source = (Path(__file__).parents[3] / "src/stowplan/apps/run").glob("decision_*.py")
    written = {name for file in source for name in re.findall(r'"event": "(\w+)"', file.read_text(encoding="utf-8"))}
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == written


def test_each_flag_of_a_bundle_exists() -> None:
    bundle = main.commands["bundle"]
    options = (each for each in bundle.params if isinstance(each, click.Option))
    flags = {flag for each in options for flag in (*each.opts, *each.secondary_opts)}
    used = PAGE.partition("## A bundle for a question")[2]
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", used)) <= flags
