"""The alerts and dashboards as files: promtool takes them, each alert has tests and a runbook, each metric exists."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.monitoring import known_metrics
from tests.monitoring.dashboards import documents, panels
from tests.monitoring.prometheus import MONITORING, RULES, alerts
from tests.monitoring.tools import tool

UNIT_TESTS = Path(__file__).parent / "alerts_test.yaml"
RUNBOOKS = MONITORING.parents[1] / "docs" / "operations.md"
URL = "https://github.com/stowplan/stowplan/blob/main/docs/operations.md#"
METRIC = re.compile(r"([a-z_]+)\{")


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([tool("promtool"), *arguments], capture_output=True, text=True, check=False)


def rule_tests() -> list[dict[str, Any]]:
    tests = yaml.safe_load(UNIT_TESTS.read_text(encoding="utf-8"))["tests"]
    return [each for test in tests for each in test["alert_rule_test"]]


def test_promtool_takes_the_rules() -> None:
    done = promtool("check", "rules", "--lint-fatal", str(RULES))
    assert done.returncode == 0 and f"SUCCESS: {len(alerts())} rules found" in done.stdout, done


def test_each_alert_fires_when_it_should_and_not_before() -> None:
    done = promtool("test", "rules", str(UNIT_TESTS))
    assert done.returncode == 0, done


def test_these_tests_see_alerts_that_are_not_as_they_should_be(tmp_path: Path) -> None:
    """Alerts that fire at once, whatever the metrics are: the quiet tests of each of them fail."""
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    for group in rules["groups"]:
        for rule in group["rules"]:
            rule["expr"], rule["for"] = "vector(1)", "0s"
    (tmp_path / "alerts.yaml").write_text(yaml.safe_dump(rules))
    tests = yaml.safe_load(UNIT_TESTS.read_text(encoding="utf-8"))
    tests["rule_files"] = ["alerts.yaml"]
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(tests))
    done = promtool("test", "rules", str(tmp_path / "tests.yaml"))
    assert done.returncode == 1
    assert [name for name in alerts() if f"alertname: {name}" not in done.stderr] == []


def test_each_alert_is_tested_both_ways() -> None:
    assert {each["alertname"] for each in rule_tests() if each.get("exp_alerts")} == alerts().keys()
    assert {each["alertname"] for each in rule_tests() if not each.get("exp_alerts")} == alerts().keys()


@pytest.mark.parametrize("name", alerts())
def test_an_alert_has_a_runbook(name: str) -> None:
    notes = alerts()[name]["annotations"]
    assert notes.keys() == {"summary", "description", "runbook", "runbook_url"}
    assert all(notes.values()) and "\n" not in notes["runbook"]
    assert notes["runbook_url"] == URL + name.lower()
    assert f"\n### {name}\n" in RUNBOOKS.read_text(encoding="utf-8")


def test_no_runbook_is_left_over() -> None:
    found = re.findall(r"^### (Stowplan\w+)$", RUNBOOKS.read_text(encoding="utf-8"), re.MULTILINE)
    assert found == list(alerts())


def test_each_expression_is_about_stowplan_alone_and_about_metrics_that_exist() -> None:
    names = known_metrics.names()
    alerting = {name: rule["expr"] for name, rule in alerts().items()}
    shown = {panel.name: query for panel in panels() for query in panel.queries}
    for where, expression in (alerting | shown).items():
        found = METRIC.findall(expression)
        assert found and not set(found) - names, (where, set(found) - names)
        assert len(re.findall(r'job=~"\.\*stowplan\.\*"', expression)) == len(found), where


@pytest.mark.parametrize("name", documents())
def test_a_dashboard(name: str) -> None:
    document = documents()[name]
    assert document["uid"] == f"stowplan-{name}" and "id" not in document, "Grafana gives ids"
    ids = [panel["id"] for panel in document["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in document["panels"]:
        assert panel["datasource"]["uid"] == "${datasource}", "no data source of somebody's own Grafana"
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
    assert [each["name"] for each in document["templating"]["list"]] == ["datasource", "job"]
