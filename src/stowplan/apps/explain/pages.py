"""What a running Stowplan says of a pod on its pages: its place in the queue, attempts and backoff."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlsplit

from stowplan.objects.errors import ConfigError
from stowplan.objects.pods import Pod

WITHIN = 10.0  # seconds
LARGEST = 64 << 20  # bytes


def queue_of(url: str, pod: Pod, warn: Callable[[str], None]) -> dict[str, Any] | None:
    """Ask /debug/explain about a pod. None if the page does not answer; `warn` is told why."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise ConfigError(f"{url!r} is no URL of pages", path="--pages", remedy="write http://127.0.0.1:10251")
    page = f"{url.rstrip('/')}/debug/explain/{quote(pod.namespace)}/{quote(pod.name)}"
    try:
        with urllib.request.urlopen(page, timeout=WITHIN) as answer:
            found = json.loads(answer.read(LARGEST))
    except (OSError, ValueError) as error:
        warn(f"{page}: {error}")
        return None
    queue = found.get("waiting", {}).get("queue") if isinstance(found, dict) else None
    return queue if isinstance(queue, dict) else None
