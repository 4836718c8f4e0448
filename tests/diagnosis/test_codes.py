"""The codes of causes are stable: docs/causes.md lists all of them, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import stowplan
from stowplan.framework.causes import REJECTED

SOURCE = Path(stowplan.__file__).parent
TABLE = Path(__file__).parents[2] / "docs" / "causes.md"
MADE = re.compile(r'(?:Cause\(|refused\(pod,)\s*f?"([a-z-]+)"')


def documented() -> set[str]:
    rows = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    found = [code for row in rows for code in re.findall(r"`([a-z-]+)`", row.split("|")[1])]
    assert len(found) == len(set(found)), "each code has one row"
    return set(found)


def sources() -> str:
    folders = (SOURCE / "plugins", SOURCE / "diagnosis", SOURCE / "framework", SOURCE / "apps" / "explain")
    return "\n".join(file.read_text(encoding="utf-8") for folder in folders for file in folder.rglob("*.py"))


def test_every_code_is_documented() -> None:
    made = set(MADE.findall(sources()))
    assert made - documented() == set()
    assert len(made) > 30


def test_every_documented_code_exists() -> None:
    text = sources()
    known = {f"predicate-{kind}" for kind in ("label", "claim")} | {REJECTED}
    assert {code for code in documented() - known if f'"{code}"' not in text} == set()
