"""Some random clusters have a crowded node: several pods there have every label that a plugin may count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.checks.words import words_of
from stowplan.framework.plugin_checks import check_plugin
from stowplan.framework.random_clusters import draw
from stowplan.plugin import pods_with
from stowplan.testing.builders import a_pod

OUT_OF_RANGE = "score fails: scores must be within 0 and 100; found "


class TeamTogether:
    """The policy of the tutorial."""

    def score(self, pod: Any, nodes: Any) -> Any:
        team = pod.labels.get("team")
        if team is None:
            return None
        return np.minimum(nodes.count(pods_with({"team": team})) * 50, 100)


class WithoutCap:
    """The same, with the mistake that a reader makes first."""

    def score(self, pod: Any, nodes: Any) -> Any:
        team = pod.labels.get("team")
        if team is None:
            return None
        return nodes.count(pods_with({"team": team})) * 50


class NearDatabases:
    """Counts pods with another label than the pod's own, and names it."""

    def score(self, pod: Any, nodes: Any) -> Any:
        return nodes.count(pods_with({"role": "database"})) * 30


class NearAlike:
    """Nothing in its code is a label: it counts pods with whatever the pod has."""

    def score(self, pod: Any, nodes: Any) -> Any:
        return nodes.count(pods_with(dict(pod.labels))) * 25


@pytest.mark.parametrize("plugin", [WithoutCap, NearDatabases, NearAlike])
def test_a_score_without_a_cap_is_found(plugin: type) -> None:
    for seed in (0, 40, 80):
        problems = check_plugin(plugin(), seed=seed)
        assert any(each.startswith(f"{plugin.__name__}: {OUT_OF_RANGE}") for each in problems), (seed, problems)


def test_a_score_with_a_cap_passes() -> None:
    assert check_plugin(TeamTogether()) == []


class Hidden:
    """Acts on pods that nobody draws."""

    def score(self, pod: Any, nodes: Any) -> Any:
        wanted = pod.labels.get("".join(("te", "am")))
        return None if wanted != "a!".strip("!") * 3 else nodes.count(pods_with(dict(pod.labels))) * 25


def test_a_given_pod_has_its_crowd_too() -> None:
    problem = check_plugin(Hidden(), pods=[a_pod("mine", labels={"team": "aaa"})])[0]
    assert problem.startswith(f"Hidden: {OUT_OF_RANGE}") and "(pod default/mine, " in problem


def test_a_crowd_is_on_one_node_with_the_labels_of_the_pod() -> None:
    words, sizes = words_of(TeamTogether()), []
    for seed in range(40):
        drawn = draw(seed, words)
        asked = drawn.asked_about(drawn.pod)
        new = asked.placed[len(drawn.placed) :]
        assert (drawn.crowd is None) == (not new) and asked.pod is drawn.pod
        if new:
            sizes.append(len(new))
            assert len({pod.node_name for pod in new}) == 1 and len({pod.uid for pod in new}) == len(new)
            assert all(drawn.pod.labels.items() <= pod.labels.items() and "team" in pod.labels for pod in new)
            there = Cluster(asked.state()).nodes.count(pods_with(dict(new[0].labels), [new[0].namespace]))
            assert there.max() >= len(new), "the columns count them"
    assert 8 <= len(sizes) <= 20, "about one cluster of three"
    assert min(sizes) >= 5 and max(sizes) <= 10
