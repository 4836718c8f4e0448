"""Plugins that fail: each is a cause, and the diagnosis goes on without it.

A plugin that raises, or gives a wrong answer, ends every decision about the pod. So no change of the pod or of the
cluster helps alone. What else keeps the pod from a node is found with the plugins that work, and each remedy says that
it was tried without the one that fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from stowplan.diagnosis.diagnosis import Diagnosis, NamedCause, Wait
from stowplan.framework.causes import Cause
from stowplan.framework.profile import Profile
from stowplan.objects.errors import PluginError

PLUGIN_ERROR = "plugin-error"


def cause(error: PluginError) -> NamedCause:
    """Name a plugin that fails: where it was asked, what it raised, in which line of which file."""
    file, _, line = error.place.rpartition(":")
    details = {"point": error.point, "error": error.problem, "file": file, "line": int(line) if line else None}
    return NamedCause(error.plugin, Cause(PLUGIN_ERROR, str(error), details))


def without(profile: Profile, names: Iterable[str]) -> Profile:
    """Return a profile without some of its plugins."""
    left_out = frozenset(names)
    points = {
        point: tuple(each for each in plugins if each.name not in left_out) for point, plugins in profile.points.items()
    }
    return Profile(profile.scheduler_name, points, profile.percentage_of_nodes_to_score)


def names_in(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return the plugins that fail, and without which remedies were tried."""
    return tuple(each.plugin for each in diagnosis.pod_causes if each.cause.code == PLUGIN_ERROR)


def working(profiles: Mapping[str, Profile], scheduler_name: str, failing: Iterable[str]) -> dict[str, Profile]:
    """Return the profiles, that of one scheduler name without the plugins that fail."""
    names, profile = tuple(failing), profiles.get(scheduler_name)
    return dict(profiles) if profile is None or not names else {**profiles, scheduler_name: without(profile, names)}


def noted(found: Diagnosis, failed: Mapping[str, PluginError], node: str | None) -> Diagnosis:
    """Return what was found without the plugins that fail, with these plugins as causes.

    node   that the pod would get if they raised no more and rejected nothing
    """
    if not failed:
        return found
    own = tuple(each for each in found.pod_causes if each.plugin not in failed)
    names = " and ".join(failed)
    plugins = f"plugin{'s' if len(failed) > 1 else ''} {names}"
    note = f"tried without {plugins}: it helps once {'these work' if len(failed) > 1 else 'this works'}"
    remedies = tuple(replace(each, also=(*each.also, note)) for each in found.remedies)
    waits = found.waits
    if node is not None:
        waits = (Wait(PLUGIN_ERROR, f"mend {plugins}: the pod would go to {node} if nothing else changed"), *waits)
    return replace(
        found,
        pod_causes=(*map(cause, failed.values()), *own),
        preemption=None,
        remedies=remedies,
        waits=waits,
    )
