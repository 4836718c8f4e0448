"""Plugins that answer what a test wants them to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stowplan.framework.decision import Decision, Reject
from stowplan.framework.evaluation import schedule_one
from stowplan.testing.builders import a_pod, a_profile_of, a_state


def a_plugin(name: str = "Fake", **methods: Any) -> Any:
    """A plugin that always answers the same; a callable is called."""

    def method(answer: Any) -> Callable[..., Any]:
        return lambda _self, *given: answer(*given) if callable(answer) else answer

    return type(name, (), {key: method(answer) for key, answer in methods.items()})()


def refusing(*names: str, reason: str = "no", resolvable: bool = True) -> Any:
    return lambda _, nodes: [Reject(np.isin(nodes.names, names), reason, resolvable)]


def decide(*plugins: Any, nodes: Any = ("a", "b", "c"), **pod: Any) -> Decision:
    return schedule_one(a_pod(**pod), a_state(nodes=nodes), a_profile_of(*plugins))
