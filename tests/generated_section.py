"""Parts of pages that a program writes: between `<!-- NAME: generated -->` and `<!-- NAME: end -->`."""

from __future__ import annotations

from pathlib import Path


def replace(page: Path, name: str, text: str) -> None:
    """Write the part of this name anew. ValueError if the page has no such part."""
    first, last = f"<!-- {name}: generated -->", f"<!-- {name}: end -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(first)
    _, closed, after = rest.partition(last)
    if not found or not closed:
        raise ValueError(f"{page} has no part between {first} and {last}")
    page.write_text(f"{before}{first}\n{text.strip()}\n{last}{after}", encoding="utf-8")
