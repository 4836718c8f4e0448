"""A Prometheus as a child process, on loopback: it scrapes programs of ours all the time and evaluates our alerts."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.flags import free_port
from tests.controlplane.process import Program, until
from tests.monitoring.tools import tool

MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"
RULES = MONITORING / "alerts.yaml"
EVERY = "3s"  # a machine with much else to do is slow to answer
RANGE = "30s"  # instead of the 5 or 10 minutes of a rule
# Thresholds of ages: nobody waits for five minutes here. All other thresholds stay as they are.
SHORTER = {
    "StowplanQueueAge": ("> 300", "> 3"),
    "StowplanWatchStale": ("> 300", "> 90"),  # a server that is well is silent for a minute
}


def alerts() -> dict[str, dict[str, Any]]:
    """The rules as they are, by name."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def quick_rules() -> dict[str, Any]:
    """The same rules for a run of a few minutes: times are shorter, and nothing else."""
    document: dict[str, Any] = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    for group in document["groups"]:
        group["interval"] = EVERY
        for rule in group["rules"]:
            rule["for"] = "2s"
            rule["expr"] = re.sub(r"\[\d+m\]", f"[{RANGE}]", rule["expr"])
            if rule["alert"] in SHORTER:
                before, after = SHORTER[rule["alert"]]
                assert before in rule["expr"], rule["alert"]
                rule["expr"] = rule["expr"].replace(before, after)
    return document


class Prometheus(Program):
    def __init__(self, folder: Path, targets: Mapping[str, int]) -> None:
        """`targets`: ports of the loopback, by the name of their job."""
        self.port = free_port()
        folder.mkdir(parents=True, exist_ok=True)
        self._rules, self._config = folder / "rules.yaml", folder / "prometheus.yaml"
        self._rules.write_text(yaml.safe_dump(quick_rules()), encoding="utf-8")
        scrapes = [
            {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]} for job, port in targets.items()
        ]
        timing = {"scrape_interval": EVERY, "scrape_timeout": EVERY, "evaluation_interval": EVERY}
        document = {"global": timing, "rule_files": [str(self._rules)], "scrape_configs": scrapes}
        self._config.write_text(yaml.safe_dump(document), encoding="utf-8")
        arguments = [
            f"--config.file={self._config}", f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn",
        ]  # fmt: skip
        super().__init__(tool("prometheus"), arguments, folder / "prometheus.log")

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series that an expression has now. Raises an AssertionError with Prometheus' own words."""
        found = self._ask("query", query=expression)["result"]
        assert isinstance(found, list)
        return found

    def firing(self) -> set[str]:
        found = self._ask("alerts")["alerts"]
        return {each["labels"]["alertname"] for each in found if each["state"] == "firing"}

    def explain(self) -> str:
        targets = self._ask("targets")["activeTargets"]
        return "\n".join(f"{each['labels']['job']}: {each['health']} {each['lastError']}" for each in targets)

    def _ask(self, what: str, **parameters: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                document = json.loads(answer.read())
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None
        assert document["status"] == "success", document
        return document["data"]

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=5):
                return True
        except OSError:
            return False


@contextmanager
def prometheus(folder: Path, targets: Mapping[str, int]) -> Iterator[Prometheus]:
    with Prometheus(folder, targets) as program:
        program.wait_until(program.is_ready)
        up = f"sum(up) == {len(targets)}"
        until("every target is scraped", lambda: program.query(up), 240, program.explain)
        yield program
