"""Pages of the repository, as GitHub shows them: their links, their headings, their blocks of code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
LEFT_OUT = {"build", ".venv", "node_modules", "templates", "dist"}
READER = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True)
class Block:
    """A block of code: its language and what follows it in that line, its text, and the line that it begins in.

    A block that is indented has no language; one between fences that name none is "text".
    """

    language: str
    title: str
    text: str
    line: int


def pages() -> list[Path]:
    """Return every page of the repository."""
    found = (each for each in ROOT.rglob("*.md") if not LEFT_OUT & set(each.relative_to(ROOT).parts))
    return sorted(each for each in found if not any(part.startswith(".") for part in each.relative_to(ROOT).parts))


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def tokens(page: Path) -> list[Token]:
    return READER.parse(page.read_text(encoding="utf-8"))


def links(page: Path) -> Iterator[str]:
    """Yield where links and pictures of the page lead."""
    for token in tokens(page):
        for child in token.children or ():
            target = child.attrGet("href" if child.type == "link_open" else "src")
            if child.type in ("link_open", "image") and target:
                yield str(target)


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of the page."""
    found: Counter[str] = Counter()
    all_of_them = set()
    everything = tokens(page)
    for at, token in enumerate(everything):
        if token.type == "heading_open":
            slug = slug_of("".join(child.content for child in everything[at + 1].children or ()))
            all_of_them.add(f"{slug}-{found[slug]}" if found[slug] else slug)
            found[slug] += 1
    return all_of_them


def slug_of(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def blocks(page: Path) -> Iterator[Block]:
    for token in tokens(page):
        if token.type in ("fence", "code_block"):
            language, _, title = token.info.strip().partition(" ")
            language = language or ("text" if token.type == "fence" else "")
            yield Block(language, title, token.content, (token.map or [0])[0] + 1)
