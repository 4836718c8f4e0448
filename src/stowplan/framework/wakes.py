"""What plugins wait for (`wakes_on`, `reorders_on`): can each of these cluster events happen, and is each hint there?

A misspelt action is an event that never comes: the plugin's pods would wait for the retry after five minutes, and
nothing else would tell. So a configuration with such a plugin is refused, and `check_plugin` names it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from stowplan.framework.cluster_event import ANY, PODS, actions_of
from stowplan.framework.config.document import suggestion
from stowplan.framework.declared_kinds import reads_of
from stowplan.framework.interfaces import Wake
from stowplan.objects.errors import ConfigError

METHODS = ("wakes_on", "reorders_on")
ALWAYS = ("Node", *PODS, ANY)  # what is seen without being in anybody's `reads`


class WakeProblem(NamedTuple):
    """What is wrong with a method that names cluster events, and what would be right."""

    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}" if self.remedy else self.problem


def wakes_of(plugin: Any, method: str = "wakes_on") -> list[Any]:
    """Return what a plugin names. This calls the plugin, and may raise whatever it raises."""
    return list(getattr(plugin, method)()) if callable(getattr(plugin, method, None)) else []


def check(plugins: Iterable[tuple[str, Any]], known: Collection[str]) -> None:
    """Raise ConfigError for the first wake that cannot be right. `known`: all kinds, those of plugins included."""
    listed = list(plugins)
    own_events = any(hasattr(plugin, "cluster_events") for _, plugin in listed)
    for name, plugin in listed:
        for each in problems(plugin, known, own_events=own_events):
            raise ConfigError(each.problem, path=f"plugin {name}", remedy=each.remedy)


def problems(plugin: Any, known: Collection[str], *, own_events: bool = False) -> Iterator[WakeProblem]:
    """Yield what is wrong with the events that a plugin names.

    `own_events`: a plugin (`cluster_events`) may add events of resources that are no kinds.
    """
    for method in METHODS:
        try:
            given = wakes_of(plugin, method)
        except Exception as error:
            yield WakeProblem(f"{method} fails: {type(error).__name__}: {error}", "")
            continue
        for each in given:
            if not isinstance(each, Wake):
                yield WakeProblem(f"{method} gives {each!r}, and only Wake is right", "")
                continue
            yield from _of_wake(method, each, known, own_events)
            if method == "wakes_on" and each.hint and not callable(getattr(plugin, each.hint, None)):
                methods = [name for name in dir(plugin) if not name.startswith("_")]
                problem = f"{method} names the hint {each.hint!r}, and there is no such method"
                yield WakeProblem(problem, suggestion(each.hint, methods))


def unread(plugin: Any) -> Iterator[WakeProblem]:
    """Yield a problem for each kind that a plugin waits for, and does not read itself."""
    seen = {*ALWAYS, *reads_of(plugin)}
    wakes = [each for each in wakes_of(plugin) if isinstance(each, Wake) and isinstance(each.resource, str)]
    for resource in dict.fromkeys(each.resource for each in wakes):
        if resource not in seen:
            remedy = f'add it to its reads, since another plugin may not read it: reads = ("{resource}",)'
            yield WakeProblem(f"wakes_on names {resource}, which the plugin does not read", remedy)


def _of_wake(method: str, wake: Wake, known: Collection[str], own_events: bool) -> Iterator[WakeProblem]:
    resource: str = wake.resource
    actions: Any = wake.actions  # of somebody's code, which nothing has checked
    if resource not in (*ALWAYS, *known):
        if not own_events:
            near = suggestion(str(resource), (*ALWAYS, *known))
            remedy = near or "a plugin brings another one by a CustomResource in its reads"
            yield WakeProblem(f"{method} names the resource {resource!r}, which is no known kind", remedy)
        return
    if isinstance(actions, str) or not isinstance(actions, Collection):
        problem = f"{method} names the actions {actions!r} of {resource}, which is no tuple"
        yield WakeProblem(problem, f'write ("{actions}",)' if isinstance(actions, str) else 'write ("Add", "Update")')
        return
    right = actions_of(resource)
    if not actions:
        yield WakeProblem(f"{method} names no action of {resource}", f"its actions are {', '.join(right)}")
    for action in actions:
        if action not in right and not (own_events and resource not in ALWAYS):
            near = suggestion(str(action), right)
            listed = f"the actions of {resource} are {', '.join(right)}"
            problem = f"{method} names the action {action!r} of {resource}, which never happens"
            yield WakeProblem(problem, f"{near} {listed}" if near else listed)
