"""Manifests that a test gives to an embedded cluster, and the text that a failing test shows of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from stowplan.embedded import manifests
from stowplan.kube.responses import Response
from stowplan.objects.errors import ConfigError

LATEST_EVENTS, LAST_LINES = 10, 15


def path_of(given: str | Path | Mapping[str, Any], beside: Path) -> Path | None:
    """Return the file or folder that a manifest names; None for a text or a document.

    A relative path starts at `beside`; where nothing is there, at the working folder.
    """
    if isinstance(given, Mapping) or (isinstance(given, str) and ("\n" in given or ":" in given)):
        return None
    near = beside / given
    found = near if near.exists() else Path(given)
    return found if isinstance(given, Path) or found.exists() else None


def documents(given: str | Path | Mapping[str, Any], beside: Path) -> Iterator[dict[str, Any]]:
    """Return the documents of a file, a folder, a text, or a document. A text without a line end may name a file."""
    if isinstance(given, Mapping):
        yield dict(given)
        return
    path = path_of(given, beside)
    if path is not None:
        yield from (document for _, document in manifests.documents([path]))
        return
    try:
        found = list(yaml.safe_load_all(str(given)))
    except yaml.YAMLError as error:
        raise ConfigError(" ".join(f"not YAML: {error}".split())) from None
    for document in found:
        if document is None:
            continue
        if not isinstance(document, dict) or "kind" not in document:
            raise ConfigError(f"found {document!r}, expected an object with apiVersion and kind, or a file that exists")
        yield document


def decoded(response: Response) -> dict[str, Any]:
    """Return the document of a response."""
    found: dict[str, Any] = msgspec.json.decode(response.body)
    return found


def text(pods: Sequence[dict[str, Any]], events: Sequence[dict[str, Any]], log: str) -> str:
    """Return the pods, the latest events and the end of the log."""
    return "\n".join(
        (
            "Pods:",
            *(_pod(pod) for pod in pods),
            f"The latest {LATEST_EVENTS} events:",
            *(_event(event) for event in events[-LATEST_EVENTS:]),
            "The end of the scheduler's log:" if log else "No scheduler was started.",
            *(f"  {line}" for line in log.splitlines()[-LAST_LINES:]),
        )
    )


def _pod(pod: dict[str, Any]) -> str:
    metadata, status = pod["metadata"], pod.get("status", {})
    conditions = status.get("conditions") or ()
    said = next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), "")
    node = pod["spec"].get("nodeName") or "no node"
    return f"  {metadata['namespace']}/{metadata['name']}  {status.get('phase', '')}  {node}  {said}".rstrip()


def _event(event: dict[str, Any]) -> str:
    about = event.get("regarding") or {}
    return f"  {about.get('kind')} {about.get('name')}  {event.get('reason')}: {event.get('note', '')}"
