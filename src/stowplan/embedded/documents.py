"""The type of API objects in the embedded cluster: plain JSON values, as they are stored and sent."""

from __future__ import annotations

from typing import Any, TypeAlias

Document: TypeAlias = dict[str, Any]
