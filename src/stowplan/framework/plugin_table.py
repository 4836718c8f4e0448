"""A table of plugins by name, whose modules are imported when their plugins are first looked up.

A scheduler that knows forty policies runs five or twenty: the modules of the others would cost it memory, and time at
each start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module


class PluginTable(Mapping[str, type]):
    """`places`: by the plugin's name its module below the package, and its class: `nodes.mine:Mine`."""

    def __init__(self, package: str, places: Mapping[str, str]) -> None:
        self._package, self._places = package, dict(places)

    def __getitem__(self, name: str) -> type:
        module, _, attribute = self._places[name].partition(":")
        found: type = getattr(import_module(f"{self._package}.{module}"), attribute)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
