"""Every example is listed, has a page and a test, and imports from the public modules only."""

from __future__ import annotations

import ast
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from stowplan.apps.plugin_kit import new
from tests.examples.loading import EXAMPLES
from tests.public_surface import PUBLIC

ROOT = EXAMPLES.parent
TEMPLATES = Path(new.__file__).with_name("templates")
FOLDERS = sorted(each for each in EXAMPLES.iterdir() if each.name[:2].isdigit())


def sources() -> Iterator[tuple[str, str]]:
    """Python that users copy, with its name: the README, the examples, what `stowplan plugin new` writes."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    yield from ((f"README.md, block {number}", text) for number, text in enumerate(blocks, 1))
    yield from ((str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")) for file in EXAMPLES.rglob("*.py"))
    yield from scaffolded()


def scaffolded() -> Iterator[tuple[str, str]]:
    for kind in sorted(each.name for each in TEMPLATES.iterdir() if each.is_dir() and not each.name.startswith("_")):
        with tempfile.TemporaryDirectory() as folder:
            new.write(Path(folder) / "new", new.plugin_name("rack-spread"), kind)
            for file in sorted(Path(folder).rglob("*.py")):
                yield f"plugin new, {kind}: {file.name}", file.read_text(encoding="utf-8")


def imported(text: str) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name for name in names if name.partition(".")[0] == "stowplan"}


@pytest.mark.parametrize(("name", "text"), [pytest.param(*each, id=each[0]) for each in sources()])
def test_only_public_modules_are_imported(name: str, text: str) -> None:
    assert imported(text) <= set(PUBLIC), name


def test_there_is_python_to_look_at() -> None:
    found = [name for name, _ in sources()]
    assert [kind for kind in ("README.md", "examples/", "plugin new") if not any(kind in name for name in found)] == []


def test_the_examples_are_numbered_and_listed() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [int(folder.name[:2]) for folder in FOLDERS] == list(range(1, len(FOLDERS) + 1))
    linked = re.findall(r"^\| \[([\w/-]+)\]\(([\w/-]+)/\)", text, re.MULTILINE)
    assert [name for name, folder in linked if name != folder] == []
    policies = sorted(f"policies/{each.name}" for each in (EXAMPLES / "policies").iterdir())
    assert [name for name, _ in linked] == [*(folder.name for folder in FOLDERS), *policies]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_example_has_a_page_and_a_test(folder: Path) -> None:
    page = (folder / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:examples|deploy|tests)/[\w./-]*\w", page))
    assert [each for each in named if not (ROOT / each).exists()] == []
    assert any(each.startswith("tests/") for each in named), "the page names its test"
    assert [each for each in re.findall(r"\]\(([^)#]+)", page) if not (folder / each).exists()] == []
