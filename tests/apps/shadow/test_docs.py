"""docs/shadow.md names every flag, every kind of verdict, every metric and every field of the JSON, and no others."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

from stowplan.apps.cli import main
from stowplan.apps.shadow.metrics import ShadowMetrics
from stowplan.apps.shadow.output import ShadowOutput
from stowplan.shadow.verdict import DIFFERENT, KINDS, ShadowVerdict

TEXT = (Path(__file__).parents[3] / "docs" / "shadow.md").read_text(encoding="utf-8")


def rows(heading: str) -> set[str]:
    """Return the first cells of the table below a heading."""
    section = TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| ([^|]+?) \|", section, re.MULTILINE)) - {"kind", "flag", "metric", "---"}


def test_flags() -> None:
    known = {
        name for each in main.commands["shadow"].params for name in each.opts if name not in ("--help", "-h", "--v")
    }
    assert set(re.findall(r"`(-[\w-]+)", " ".join(rows("Flags")))) == known - {"--output"}


def test_kinds() -> None:
    assert rows("What each kind means") == set(KINDS)


def test_metrics() -> None:
    text, _ = ShadowMetrics().text("")
    served = set(re.findall(r"^# TYPE (\w+) (?:counter|gauge)$", text.decode(), re.MULTILINE))
    named = set(re.findall(r"`(\w+)", " ".join(rows("Output for programs"))))
    assert named == {each for each in served if not each.endswith("_created")}


def test_fields() -> None:
    out = io.StringIO()
    ShadowOutput("table", out, everything=False, since=0.0).tell(
        ShadowVerdict(DIFFERENT, "shop/web-9", "u", "default-scheduler", 1.0, "a", "b", 1, "why")
    )
    example = json.loads(re.findall(r"```json\n(.+?)```", TEXT, re.DOTALL)[0])
    assert list(example) == list(json.loads(out.getvalue()))
