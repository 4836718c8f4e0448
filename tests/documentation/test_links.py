"""Every link of every page leads somewhere, and every anchor is a heading there."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.documentation import pages

PAGES = pages.pages()
OUT = ("https://", "http://", "mailto:")


def test_there_are_pages() -> None:
    assert {"README.md", "docs/index.md", "docs/tutorial.md", "examples/README.md"} <= {*map(pages.named, PAGES)}


@pytest.mark.parametrize("page", [pytest.param(each, id=pages.named(each)) for each in PAGES])
def test_links(page: Path) -> None:
    broken = {target for target in pages.links(page) if not target.startswith(OUT) and not leads(page, target)}
    assert broken == set()


def leads(page: Path, target: str) -> bool:
    path, _, anchor = unquote(target).partition("#")
    goal = (page.parent / path).resolve() if path else page
    if not goal.exists() or not goal.is_relative_to(pages.ROOT):
        return False
    return not anchor or (goal.suffix == ".md" and anchor in pages.anchors(goal))


@pytest.mark.parametrize(
    ("target", "there"),
    [
        pytest.param("glossary.md", True, id="a page"),
        pytest.param("glossary.md#glossary", True, id="a heading"),
        pytest.param("glossary.md#nothing", False, id="no such heading"),
        pytest.param("nothing.md", False, id="no such page"),
        pytest.param("../deploy/", True, id="a folder"),
        pytest.param("../../..", False, id="outside of the repository"),
        pytest.param("#flags-of-stowplan-run", True, id="a heading of the page itself, with code in it"),
    ],
)
def test_what_leads_somewhere(target: str, there: bool) -> None:
    assert leads(pages.ROOT / "docs" / "running.md", target) is there


@pytest.mark.parametrize("page", [each for each in PAGES if pages.named(each).startswith("docs/")], ids=pages.named)
def test_every_page_is_in_the_navigation(page: Path) -> None:
    nav = (pages.ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
    assert f": {page.relative_to(pages.ROOT / 'docs')}\n" in f"{nav}\n"
