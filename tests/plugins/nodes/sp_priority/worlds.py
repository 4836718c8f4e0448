"""A World with SPPriority and one owner, whose pod a test makes, deletes and looks at; and a scheduler to be killed."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from stowplan.framework.profile import Profile
from stowplan.objects.actions import Action, Bind, Patch
from stowplan.objects.changes import Result
from stowplan.plugins.nodes.sp_priority.plugin import STATE
from stowplan.testing.world import World
from tests.plugins.nodes.sp_priority.replicas import a_replica, an_owner, with_priority

NOTE, BIND, COUNT = "note", "bind", "count"


def stage(action: Action) -> str:
    """Which step of a pod's way an action is."""
    if isinstance(action, Bind):
        return BIND
    return (NOTE if '"pending"' in text_of(action) else COUNT) if isinstance(action, Patch) else ""


def text_of(action: Patch) -> str:
    value = action.body[-1]["value"]  # type: ignore[index]
    return value if isinstance(value, str) else next(iter(value.values()))


def never_twice(nodes: list[str]) -> bool:
    """Was no pod where the one before it had been?"""
    return all(one != another for one, another in pairwise(nodes))


class Shop:
    """An owner of one pod, which is deleted and made anew."""

    def __init__(self, nodes: str = "ABC", owner: Any = None, **args: Any) -> None:
        self._args = args
        self.world = World(nodes=nodes, profiles=self._profiles())
        self.owner = owner or an_owner()
        self.world.submit(self.owner)
        self.world.run()
        self.made = 0

    def _profiles(self) -> dict[str, Profile]:
        return {"default-scheduler": with_priority(**self._args)}

    @property
    def plugin(self) -> Any:
        return self.world.profiles["default-scheduler"].plugin("SPPriority")

    @property
    def history(self) -> dict[str, Any]:
        found = self.world.objects[type(self.owner).__name__, self.owner.key]
        told: dict[str, Any] = json.loads(found.annotations.get(STATE, "{}"))
        return told

    @property
    def counts(self) -> dict[str, int]:
        found: dict[str, int] = self.history.get("node_count", {})
        return found

    @property
    def name(self) -> str:
        return f"web-{self.made}"

    def make(self, **keywords: Any) -> None:
        """The next pod."""
        self.made += 1
        self.world.submit(a_replica(self.name, **keywords))

    def node(self) -> str:
        """Where the pod is, once it is somewhere."""
        self.world.run()
        if self.name not in self.world.bindings:
            self.world.advance(30)
        return self.world.bindings[self.name]

    def delete(self) -> None:
        self.world.delete(self.world.pod(self.name))

    def kill(self, at: str, *, done: bool, deleted: bool = False) -> None:
        """The next pod is made, and the scheduler killed at this step, before or after the server has done it; while
        nobody runs the pod may be deleted.
        """
        world = self.world
        world.answers = lambda action: None if stage(action) == at else Result(action.id)
        self.make()
        world.advance(5)
        held = next(action for action in reversed(world.actions) if stage(action) == at)
        world.pause_watch()
        if done:
            world.perform(held)
        if deleted:
            self.delete()
        world.answers = world.succeed
        self.restart()

    def restart(self) -> None:
        """Another process: it knows nothing but what the server has."""
        self.world.profiles = self._profiles()
        self.world.restart()
        self.world.resume_watch()
