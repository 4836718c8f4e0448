"""Expressions about one variable, `object`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stowplan.cel.environment import Environment
from stowplan.cel.evaluation import CelEvaluation

OBJECT = {
    "metadata": {"name": "one", "labels": {"version": "1.14.3", "zone": "b"}},
    "status": {"cpu": "1500m", "version": {"kubernetes": "v1.31.2"}},
}
ENVIRONMENT = Environment({"object": "map<string, dyn>"})


def evaluate(expression: str, environment: Environment = ENVIRONMENT, **functions: Callable[..., Any]) -> Any:
    return environment.compile(expression).run({"object": OBJECT}, CelEvaluation(1_000_000, functions))


def cost(expression: str, environment: Environment = ENVIRONMENT) -> int:
    """What an expression costs, whatever its result."""
    evaluation = CelEvaluation(1_000_000)
    environment.compile(expression).run({"object": OBJECT}, evaluation)
    return evaluation.cost
