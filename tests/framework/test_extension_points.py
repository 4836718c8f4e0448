"""What a plugin is for: nodes or clusters, told by its parameters or by its methods."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.framework.extension_points import CLUSTERS, NODES, PluginKind, kind_of
from stowplan.plugin import per_node
from stowplan.plugins import BUILT_IN


class ByPod:
    def filter(self, pod: Any, these: Any) -> Any: ...


class ByPlacement:
    def score(self, placement: Any, these: Any) -> Any: ...


class ByNodes:
    def filter(self, _: Any, nodes: Any) -> Any: ...


class ByClusters:
    def filter(self, _: Any, clusters: Any) -> Any: ...


class Unused:
    def score(self, _placement: Any, _: Any) -> Any: ...


@per_node
class OneCluster:
    def fits(self, asked: Any, cluster: Any) -> Any: ...


class Sorts:
    def sort_key(self, one: Any, two: Any) -> Any: ...
    def score(self, one: Any, two: Any) -> Any: ...


class Explains:
    def why(self, one: Any, two: Any) -> Any: ...
    def filter(self, one: Any, two: Any) -> Any: ...


class Unclear:
    def score(self, one: Any, two: Any) -> Any: ...


class Mixed:
    def score(self, one: Any, two: Any) -> Any: ...
    def why(self, one: Any, two: Any) -> Any: ...
    def permit(self, one: Any, two: Any, three: Any) -> Any: ...


@pytest.mark.parametrize(
    ("plugin", "kind"),
    [
        (ByPod, NODES),
        (ByPlacement, CLUSTERS),
        (ByNodes, NODES),
        (ByClusters, CLUSTERS),
        (Unused, CLUSTERS),
        (OneCluster, CLUSTERS),
        (Sorts, NODES),
        (Explains, CLUSTERS),
        (Unclear, None),
        (Mixed, None),
    ],
)
def test_what_a_plugin_is_for(plugin: type, kind: PluginKind | None) -> None:
    assert kind_of(plugin) is kind


def test_the_plugins_of_stowplan() -> None:
    assert {kind_of(plugin) is NODES for plugin in BUILT_IN.values()} == {True}
