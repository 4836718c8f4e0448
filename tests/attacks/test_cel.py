"""Expressions of placements that would take all memory, all time, or another tenant's data."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.attacks.survivor import decides_unharmed
from tests.controlplane.place_process import SET_LABEL, Hub
from tests.controlplane.process import until
from tests.controlplane.served_hub import ServedHub

pytestmark = pytest.mark.controlplane

ABOUT = "managedCluster.metadata.name != ''"
THOUSAND = f"[{','.join(['1'] * 1000)}]"
BOMBS = {
    "replace": f'["{"a" * 4000}".replace("a", "{"a" * 1000}")].map(s, s.replace("a", s)).size() > 0',
    "lists": "[[1]]" + "".join(f".map(v{n}, v{n} + v{n} + v{n} + v{n})" for n in range(15)) + ".size() > 0",
    "tree": "'%s'.format([[1]" + "".join(f".map(v{n}, [{','.join([f'v{n}'] * 30)}])" for n in range(8)) + "]) != ''",
    "loops": f"{ABOUT} && {THOUSAND}.all(a, {THOUSAND}.all(b, {THOUSAND}.all(c, a + b + c > 0)))",
    "regex": f"{ABOUT} && {THOUSAND}.all(a, ''.matches('\\\\pL{{300}}') || true)",
}
REFUSED = {
    "macros": "optional.of(1)" + ".optMap(x, x)" * 40 + ".hasValue()",
    "parentheses": "(" * 8000 + "true" + ")" * 8000,
    "sums": "+".join("1" * 8000) + " > 0",
}


def with_expression(expression: str) -> dict[str, Any]:
    return {"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": [expression]}}}]}


def misconfigured(hub: Hub, name: str) -> str:
    """The message of the placement's condition; "" while it is not misconfigured."""
    found = hub.condition("PlacementMisconfigured", name)
    return str(found["message"]) if found.get("status") == "True" else ""


def test_expressions_that_cost_too_much_are_set_aside(hub: Hub, attacked_hub: ServedHub) -> None:
    hub.place("cheap", **with_expression("managedCluster.metadata.name.matches('^c[12]$')"))
    hub.gets("c1", "c2", name="cheap")  # the libraries for expressions are loaded by now
    with decides_unharmed(hub, attacked_hub.program):
        for name, expression in (BOMBS | REFUSED).items():
            hub.place(name, **with_expression(expression))
        for name in BOMBS | REFUSED:
            until(f"{name} has its condition", partial(misconfigured, hub, name), 60, attacked_hub.program.tail)
    for name in BOMBS:
        assert "operation cancelled" in misconfigured(hub, name)


def test_an_expression_does_not_see_the_scores_of_a_cluster_that_is_not_bound(hub: Hub) -> None:
    hub.change(hub.path("managedclusters", "c3"), lambda each: each["metadata"]["labels"].update({SET_LABEL: "secret"}))
    hub.score("c3", 77, name="price", resource="costs")
    hub.score("c1", 77, name="price", resource="costs")
    guess = '.scores("costs").exists(each, each.value == 77)'
    hub.place("own", **with_expression(f"managedCluster{guess}"))
    hub.place("spy", **with_expression(f'{{"metadata": {{"name": "c3"}}}}{guess}'))
    hub.gets("c1", name="own")
    hub.says("PlacementSatisfied", "False", "NoManagedClusterMatched", name="spy")
