"""The words of a plugin's code and arguments, and clusters that have them."""

from __future__ import annotations

from typing import Any

import msgspec

from stowplan.framework.checks.words import Words, words_of
from stowplan.framework.random_clusters import draw

TEAM, OTHERS = "example.com/team", ("red", "blue")


def helper(pod: Any) -> bool:
    return bool(pod.annotations.get("from-a-helper"))


class Settings(msgspec.Struct):
    zone: str = "zone-of-a-struct"


class Wordy:
    """Not a word: its documentation."""

    kinds = ("class-attribute",)

    def __init__(self, key: str = "argument", settings: Settings | None = None) -> None:
        self.key, self.settings, self.more = key, settings or Settings(), {"in-a-mapping": ["in-a-list"]}

    def filter(self, pod: Any, nodes: Any) -> Any:
        """Nor this."""
        if pod.labels.get("heavy") == "true" and pod.priority > 7000 and helper(pod):
            return [pod for each in nodes if each.labels[TEAM] in OTHERS]
        return ["a sentence is no word", f"{self.key}: neither", "example.com/gpu"]

    def wakes_on(self) -> Any:
        return ["Node"]


def test_where_words_come_from() -> None:
    words = words_of(Wordy())
    expected = {
        *("argument", "zone-of-a-struct", "in-a-mapping", "in-a-list", "class-attribute", "heavy", "true"),
        *("from-a-helper", TEAM, *OTHERS, "example.com/gpu"),
    }
    assert expected <= set(words.texts) and 7000 in words.numbers
    assert not {"Node", "Nor this.", "a sentence is no word", "key"} & set(words.texts)
    assert words.texts.index("true") == words.texts.index("heavy") + 1, "a value follows its key"


def test_what_words_may_be() -> None:
    words = Words(("heavy", "Team", "example.com/gpu"))
    assert words.values == ("heavy", "Team")
    assert words.namespaces == ("heavy",)
    assert words.resources == ("example.com/gpu",)
    assert not Words()


def test_clusters_have_the_words() -> None:
    words = words_of(Wordy())
    drawn = [draw(seed, words) for seed in range(40)]
    pods = [each.pod for each in drawn]
    nodes = [node for each in drawn for node in each.nodes]
    assert any(pod.labels.get("heavy") == "true" for pod in pods)
    assert any("from-a-helper" in pod.annotations for pod in pods)
    assert {6999, 7000, 7001} <= {pod.priority for pod in pods}
    assert any(pod.namespace == "heavy" for pod in pods)
    assert any(node.labels.get(TEAM) in OTHERS for node in nodes)
    assert any(taint.key in words.texts for node in nodes for taint in node.taints)
    assert any("example.com/gpu" in pod.request for pod in pods)
    assert draw(3, words) == draw(3, words) != draw(3)
