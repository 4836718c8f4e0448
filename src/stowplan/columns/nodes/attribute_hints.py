"""Hints for attributes that one node has and a view of many nodes does not: what to write instead.

Policies that look at one node at a time read `node.labels`; their authors try `nodes.labels` next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

INSTEAD = {
    "labels": 'write nodes.label("disk") for the values of one label',
    "pods": "write nodes.count(pods_with({…})) for the number of pods on each node",
}


class AttributeHints:
    """A base for views of many nodes."""

    if not TYPE_CHECKING:  # mypy must go on finding attributes that do not exist

        def __getattr__(self, name: str) -> Any:
            if name not in INSTEAD:
                return object.__getattribute__(self, name)  # raises what Python raised before it called this
            text = f"{type(self).__name__!r} object has no attribute {name!r}; {INSTEAD[name]}"
            raise AttributeError(text, name=name, obj=self)
