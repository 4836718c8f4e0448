"""Namespaces get their shares, however many pods one of them submits."""

from __future__ import annotations

from collections import Counter

import pytest

from stowplan.objects.errors import ConfigError
from stowplan.testing import World, a_node, a_pod, a_profile, check_plugin
from tests.examples.loading import EXAMPLES, loaded

FOLDER = EXAMPLES / "05-queue-order"
FairShare = loaded(FOLDER / "fair_share.py").FairShare


def test_it_keeps_the_contract() -> None:
    assert check_plugin(FairShare()) == []


@pytest.mark.parametrize(
    ("weights", "shares"),
    [
        pytest.param("{}", {"team-a": 3, "team-b": 3}, id="equal shares"),
        pytest.param("{team-a: 2}", {"team-a": 4, "team-b": 2}, id="one has twice the weight"),
    ],
)
def test_six_places_are_shared(weights: str, shares: dict[str, int]) -> None:
    config = (FOLDER / "config.yaml").read_text().replace("fair_share.py:", f"{FOLDER}/fair_share.py:")
    profile = a_profile(config.replace("{team-a: 2}", weights))
    world = World(nodes=[a_node("full", pods=6)], profiles={"default-scheduler": profile})
    for team in ("team-a", "team-b"):
        world.submit(*(a_pod(f"{team}-{number}", namespace=team) for number in range(6)))
    world.run()
    assert Counter(pod.namespace for pod in world.pods() if pod.node_name) == shares


def test_priority_comes_first() -> None:
    world = World(nodes=[a_node("full", pods=2)], profiles={"default-scheduler": a_profile(FOLDER / "config.yaml")})
    world.submit(*(a_pod(f"a-{number}", namespace="team-a", priority=10) for number in range(2)))
    world.submit(a_pod("b", namespace="team-b"))
    world.run()
    assert set(world.bindings) == {"a-0", "a-1"}


def test_a_weight_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"weights\.team-a is 0; choose more than 0"):
        FairShare(weights={"team-a": 0})
