"""Hooks of MkDocs: `mkdocs.yml` names this file, and MkDocs calls its functions.

Pages are written for GitHub, and work there as they are. For the site

- links to files outside docs/ become links to the repository;
- a page that mkdocs.yml names and that does not exist is left out of the navigation;
- a line `<!-- generated: NAME -->` is replaced by the text that NAME stands for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from documentation import configuration, metrics, public_names

GENERATED: dict[str, Callable[[], str]] = {
    "configuration": configuration.reference,
    "metrics": metrics.reference,
    **dict(public_names.references()),
}
MARK = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)
LINK = re.compile(r"(?<=\]\()(\.\./[^)\s#]*)|(?<=\]: )(\.\./[^\s#]*)")
BRANCH = "main"


def on_config(config: Any) -> Any:
    """Leave pages out of the navigation that do not exist, and headings without pages."""
    config["nav"] = _existing(config["nav"], Path(config["docs_dir"]))
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:  # noqa: ARG001
    """Return the page with its generated parts, and with links that work on the site."""
    folder = PurePosixPath("docs", page.file.src_uri).parent
    root = Path(config["docs_dir"]).parent
    return with_links(with_generated(markdown), folder, root, config["repo_url"])


def _existing(nav: list[Any], folder: Path) -> list[Any]:
    kept = []
    for entry in nav:
        ((title, target),) = entry.items()
        if isinstance(target, list):
            target = _existing(target, folder)
        elif not (folder / target).exists():
            continue
        if target:
            kept.append({title: target})
    return kept


def with_generated(markdown: str) -> str:
    """Return the text with its generated parts. KeyError for a mark that stands for nothing."""
    return MARK.sub(lambda found: GENERATED[found[1]](), markdown)


def with_links(markdown: str, folder: PurePosixPath, root: Path, repository: str) -> str:
    """Return the text of a page in a folder of the repository; its links out of docs/ go to the repository."""

    def rewritten(found: re.Match[str]) -> str:
        path = _joined(folder, found[0])
        if path.parts[:1] == ("docs",):
            return found[0]
        kind = "tree" if (root / path).is_dir() else "blob"
        return f"{repository}/{kind}/{BRANCH}/{path}"

    return LINK.sub(rewritten, markdown)


def _joined(folder: PurePosixPath, link: str) -> PurePosixPath:
    """Return where a relative link leads, from the root of the repository."""
    parts = list(folder.parts)
    for part in PurePosixPath(link).parts:
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
        else:
            raise ValueError(f"{folder}: the link {link} leads out of the repository")
    return PurePosixPath(*parts)
