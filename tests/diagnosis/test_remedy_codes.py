"""The codes of remedies and waits: code, docs/explain.md and docs/explain.schema.json have the same ones."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import stowplan
from stowplan.diagnosis import ranking
from tests.diagnosis.test_codes import documented

SOURCE = Path(stowplan.__file__).parent
DOCS = Path(__file__).parents[2] / "docs"
FOLDERS = (SOURCE / "diagnosis", SOURCE / "apps" / "explain", SOURCE / "apps" / "place")
CODES = {name.partition(" ")[0] for _, names in ranking.ROWS for name in names}


def trees() -> Iterator[ast.Module]:
    for folder in FOLDERS:
        for file in folder.rglob("*.py"):
            if file.name != "ranking.py":
                yield ast.parse(file.read_text(encoding="utf-8"))


def makers() -> tuple[str, ...]:
    """What makes an edit or a remedy, with the code as its first argument."""
    found = {"Edit", "Remedy"}
    for tree in trees():
        for each in ast.walk(tree):
            if isinstance(each, ast.FunctionDef):
                names = [argument.arg for argument in each.args.args if argument.arg != "self"]
                found |= {each.name} if names[:1] == ["code"] else set()
    return tuple(found)


def constants(tree: ast.Module) -> dict[str, str]:
    """The texts that a module names: `RAISE, SPECIFY = "raise-quota", "specify-resources"`."""
    found: dict[str, str] = {}
    for each in tree.body:
        if isinstance(each, ast.Assign):
            (target,), value = each.targets, each.value
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = value.elts if isinstance(value, ast.Tuple) else [value]
            for name, part in zip(names, values, strict=False):
                if isinstance(name, ast.Name) and isinstance(part, ast.Constant) and isinstance(part.value, str):
                    found[name.id] = part.value
    return found


def made(tree: ast.Module, by: tuple[str, ...]) -> Iterator[str]:
    """The codes with which a module calls these."""
    named = constants(tree)
    for each in ast.walk(tree):
        if not isinstance(each, ast.Call) or not each.args:
            continue
        called = each.func.attr if isinstance(each.func, ast.Attribute) else getattr(each.func, "id", "")
        code = each.args[0]
        text = code.value if isinstance(code, ast.Constant) else named.get(getattr(code, "id", ""))
        if called in by and isinstance(text, str) and text:
            yield text


def schema() -> Any:
    return json.loads((DOCS / "explain.schema.json").read_text(encoding="utf-8"))["$defs"]


def in_docs(heading: str) -> list[str]:
    text = (DOCS / "explain.md").read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| what ")]


def test_every_remedy_is_in_the_table_of_ranking() -> None:
    known = makers()
    codes = {code for tree in trees() for code in made(tree, known)}
    assert codes - CODES == set()
    assert len(codes) > 40


def test_every_code_of_the_table_is_made_by_some_remedy() -> None:
    texts = {each.value for tree in trees() for each in ast.walk(tree) if isinstance(each, ast.Constant)}
    assert {code for code in CODES if code not in texts} == set()


def test_each_code_is_in_one_place_of_the_table() -> None:
    names = [name for _, row in ranking.ROWS for name in row]
    assert len(names) == len(set(names))


def test_the_table_in_the_docs_is_the_one_in_the_code() -> None:
    def told(name: str) -> str:
        code, _, rest = name.partition(" ")
        return f"`{code}` {rest}".rstrip()

    expected = [f"| {text} | {', '.join(map(told, names))} |" for text, names in ranking.ROWS]
    assert in_docs("The order of remedies") == expected


def test_the_schema_has_the_codes_of_remedies() -> None:
    one = f"({'|'.join(sorted(CODES))})"
    assert schema()["remedy"]["properties"]["code"]["pattern"] == rf"^{one}(\+{one})*$"


def test_the_schema_has_the_codes_of_waits() -> None:
    waits = {code for tree in trees() for code in made(tree, ("Wait",))}
    assert schema()["wait"]["properties"]["code"]["enum"] == sorted(waits)


def test_the_schema_names_the_codes_of_causes() -> None:
    assert schema()["cause"]["properties"]["code"]["examples"] == sorted(documented())


def test_codes_can_be_joined_by_a_plus() -> None:
    assert all(re.fullmatch("[a-z]+(-[a-z]+)*", code) for code in CODES)
