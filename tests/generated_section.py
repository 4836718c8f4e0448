"""Parts of pages that a program writes: between `<!-- NAME: generated -->` and `<!-- NAME: end -->`."""

from __future__ import annotations

from pathlib import Path


def replace(page: Path, name: str, text: str) -> None:
    """Write the part of this name anew. ValueError unless the page has both marks once, in this order."""
    begin, end = f"<!-- {name}: generated -->", f"<!-- {name}: end -->"
    found = page.read_text(encoding="utf-8")
    if found.count(begin) != 1 or found.count(end) != 1 or found.index(begin) > found.index(end):
        raise ValueError(f"{page}: expected one line {begin!r}, and after it one line {end!r}")
    before, after = found[: found.index(begin)], found[found.index(end) :]
    page.write_text(f"{before}{begin}\n{text.strip()}\n{after}", encoding="utf-8")
