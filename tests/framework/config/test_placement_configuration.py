"""PlacementConfiguration: which plugins decide placements, with which weights and arguments, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.framework.config import placement_configuration
from stowplan.framework.config.placement_configuration import KIND, VERSION, PlacementConfiguration
from stowplan.framework.extension_points import CLUSTERS
from stowplan.framework.placement.policy import points_in
from stowplan.framework.registry import Registry
from stowplan.objects.errors import ConfigError
from stowplan.plugins.clusters import BUILT_IN


class Cheapest:
    def score(self, placement: Any, clusters: Any) -> None: ...


class Allowed:
    def filter(self, placement: Any, clusters: Any) -> Any: ...


class Both(Allowed, Cheapest): ...


PLUGINS = BUILT_IN | {"Cheapest": Cheapest, "Allowed": Allowed, "Both": Both}


def loaded(document: Any = None, *, ocm: bool = False, **fields: Any) -> PlacementConfiguration:
    registry = Registry(PLUGINS, kind=CLUSTERS)
    given = {"apiVersion": VERSION, "kind": KIND, **fields} if document is None else document
    return placement_configuration.load(given, implements=points_in(registry, ocm=ocm), known=registry.names())


def filters(found: PlacementConfiguration) -> list[str]:
    return [each.name for each in found.points["filter"]]


def weights(found: PlacementConfiguration) -> dict[str, int]:
    return {each.name: each.weight for each in found.points["score"]}


def enabled(*entries: Any, disabled: tuple[str, ...] = ()) -> dict[str, Any]:
    listed = [each if isinstance(each, dict) else {"name": each} for each in entries]
    return {"enabled": listed, "disabled": [{"name": name} for name in disabled]}


DEFAULT = {"Balance": 1, "Steady": 1, "TaintToleration": 3, "Spread": 2}


@pytest.mark.parametrize(
    ("plugins", "expected_filters", "expected_weights"),
    [
        pytest.param({}, ["Predicate", "TaintToleration"], DEFAULT, id="no plugins: Open Cluster Management's"),
        pytest.param(
            {"multiPoint": enabled({"name": "Both", "weight": 4})},
            ["Predicate", "TaintToleration", "Both"],
            DEFAULT | {"Both": 4},
            id="a plugin at all points that it has",
        ),
        pytest.param(
            {"filter": enabled("Both"), "score": enabled("Cheapest")},
            ["Predicate", "TaintToleration", "Both"],
            DEFAULT | {"Cheapest": 1},
            id="points one by one; a weight that is missing is 1",
        ),
        pytest.param(
            {"score": enabled({"name": "Balance", "weight": -2}, disabled=("Steady",))},
            ["Predicate", "TaintToleration"],
            {"Balance": -2, "TaintToleration": 3, "Spread": 2},
            id="other weights, and a default that is disabled",
        ),
        pytest.param(
            {"score": enabled({"name": "Cheapest", "weight": 0}, disabled=("*",))},
            ["Predicate", "TaintToleration"],
            {"Cheapest": 0},
            id="all defaults disabled, and a plugin for placements that name it",
        ),
        pytest.param(
            {"multiPoint": enabled("Allowed", disabled=("*",))}, ["Allowed"], {}, id="nothing but one's own plugin"
        ),
        pytest.param(
            {"filter": enabled("Allowed", "Predicate", disabled=("*",))},
            ["Allowed", "Predicate"],
            DEFAULT,
            id="filters in another order",
        ),
    ],
)
def test_plugins(plugins: Any, expected_filters: list[str], expected_weights: dict[str, int]) -> None:
    found = loaded(plugins=plugins)
    assert (filters(found), weights(found)) == (expected_filters, expected_weights)


def test_the_order_of_scores() -> None:
    assert list(weights(loaded())) == ["Balance", "Steady", "TaintToleration", "Spread"]


def test_compatibility_leaves_our_additions_out() -> None:
    found = loaded(ocm=True, plugins={"multiPoint": enabled("Both")})
    assert (filters(found), weights(found)) == (
        ["Predicate", "TaintToleration", "Both"],
        {"Balance": 1, "Steady": 1, "Both": 1},
    )
    with pytest.raises(ConfigError, match=r'plugins.score.enabled\[0\]: plugin "TaintToleration" does not implement'):
        loaded(ocm=True, plugins={"score": enabled("TaintToleration")})


def test_arguments() -> None:
    found = loaded(pluginConfig=[{"name": "Both", "args": {"a": 1}}], plugins={"multiPoint": enabled("Both")})
    assert (found.plugin_args, found.notes) == ({"Both": {"a": 1}}, ())


def test_notes_about_what_has_no_effect() -> None:
    found = loaded(pluginConfig=[{"name": "Both"}], plugins={"score": enabled(disabled=("Balnce",))})
    assert found.notes == (
        'pluginConfig[0]: plugin "Both" is not enabled.',
        'plugins.score.disabled[0]: there is no plugin "Balnce" to disable. did you mean "Balance"?',
    )


@pytest.mark.parametrize(
    ("document", "said"),
    [
        pytest.param("", f"the shortest one is: {{apiVersion: {VERSION}, kind: {KIND}}}", id="nothing"),
        pytest.param("[]", f"found a list, expected one {KIND}", id="a list"),
        pytest.param(
            {"kind": "KubeSchedulerConfiguration"},
            f'kind: found "KubeSchedulerConfiguration", expected "{KIND}"; it is for `stowplan run`',
            id="a scheduler's configuration",
        ),
        pytest.param({"kind": "PlacementConfig"}, f'did you mean "{KIND}"?', id="a misspelt kind"),
        pytest.param({"kind": KIND, "apiVersion": "v1"}, f'apiVersion: found "v1", expected "{VERSION}"', id="version"),
    ],
)
def test_documents_of_another_kind(document: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(document)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        pytest.param({"profiles": []}, "profiles: unknown field", id="a field of another kind"),
        pytest.param(
            {"plugins": {"scores": {}}}, 'plugins.scores: unknown field; did you mean "score"?', id="a misspelt point"
        ),
        pytest.param(
            {"plugins": {"score": enabled("Cheapst")}},
            'plugins.score.enabled[0]: there is no plugin "Cheapst"; did you mean "Cheapest"?',
            id="a misspelt plugin",
        ),
        pytest.param(
            {"plugins": {"filter": enabled("Cheapest")}},
            'plugin "Cheapest" does not implement filter; it can be listed at score',
            id="a point that a plugin does not have",
        ),
        pytest.param({"plugins": {"score": enabled("Cheapest", "Cheapest")}}, "appears twice", id="listed twice"),
        pytest.param(
            {"plugins": {"score": enabled({"name": "Cheapest", "weight": 11})}},
            "plugins.score.enabled[0].weight: found 11, expected an integer <= 10",
            id="a weight that is too large",
        ),
        pytest.param(
            {"pluginConfig": [{"name": "Both"}, {"name": "Both"}]}, 'pluginConfig[1]: plugin "Both" appears', id="twice"
        ),
        pytest.param(
            {"pluginConfig": [{"name": "Both", "args": [1]}]}, "pluginConfig[0].args: found a list", id="a list"
        ),
    ],
)
def test_what_is_refused(fields: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(**fields)
    assert said in str(caught.value)
