"""Scheduler configurations: one profile or several, plugins switched on, off and around, and arguments for some."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.oracle.draw.scenario import Draw, Obj, Scenario

Piece = Callable[[Draw], Obj]  # draws one plugin's arguments

PLUGINS = [
    "SchedulingGates", "PrioritySort", "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity",
    "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone",
    "PodTopologySpread", "InterPodAffinity", "DynamicResources", "DefaultPreemption",
    "NodeResourcesBalancedAllocation", "ImageLocality", "DefaultBinder", "NodeDeclaredFeatures",
]  # fmt: skip
INDISPENSABLE = ("PrioritySort", "DefaultBinder")  # a profile without them is refused
FILTERS = [
    "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
    "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity",
    "DynamicResources", "NodeDeclaredFeatures",
]  # fmt: skip
PREFILTERS = [
    "NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding",
    "VolumeZone", "PodTopologySpread", "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures",
]  # fmt: skip
SCORERS = [
    "TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding", "PodTopologySpread", "InterPodAffinity",
    "NodeResourcesBalancedAllocation", "ImageLocality", "DynamicResources",
]  # fmt: skip
PRESCORERS = [
    "TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding", "PodTopologySpread", "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
]  # fmt: skip


def configure(s: Scenario, pieces: Sequence[Piece], plugins: float = 0.3, profiles: float = 0.15) -> None:
    """A configuration for the scenario; with several profiles the incoming pod asks for one of them."""
    d = s.d
    config: Obj = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    if d.chance(profiles):
        names = ["default-scheduler", "binpack", "other"][: d.randint(2, 3)]
        config["profiles"] = [profile(d, n, pieces, plugins) for n in names]
        chosen = d.choice(names)
        if chosen != "default-scheduler":
            s.pod["spec"]["schedulerName"] = chosen
    elif d.chance(0.05):
        config["profiles"] = [profile(d, "binpack", pieces, plugins)]
        s.pod["spec"]["schedulerName"] = "binpack"
        for other in s.cluster["pods"]:
            other["spec"]["schedulerName"] = "binpack"
    else:
        config["profiles"] = [profile(d, d.one(None, "default-scheduler"), pieces, plugins)]
    if d.chance(0.1):
        config["percentageOfNodesToScore"] = d.one(0, 50, 100)
    if d.chance(0.1):
        config["parallelism"] = d.one(1, 8)
    s.config = config


def profile(d: Draw, name: str | None, pieces: Sequence[Piece], plugins: float) -> Obj:
    out: Obj = {}
    if name is not None:
        out["schedulerName"] = name
    conf = [piece(d) for piece in pieces]
    if conf:
        out["pluginConfig"] = conf
    if d.chance(plugins):
        out["plugins"] = plugin_sets(d)
    return out


def plugin_sets(d: Draw) -> Obj:
    """Plugins switched on, off and around at single points and at all."""
    kind = d.random()
    if kind < 0.18:
        return {"filter": disabled(d.some(FILTERS, 1, 3))}
    if kind < 0.3:
        return {"score": disabled(d.some(SCORERS, 1, 3))}
    if kind < 0.36:
        return first_half_disabled(d, "preScore", "score", PRESCORERS)
    if kind < 0.42:
        return first_half_disabled(d, "preFilter", "filter", PREFILTERS)
    if kind < 0.5:
        return {"multiPoint": disabled(d.some([p for p in PLUGINS if p not in INDISPENSABLE], 1, 4))}
    if kind < 0.62:
        return {"multiPoint": another_order(d)}
    if kind < 0.7:
        return {"filter": other_filters(d)}
    if kind < 0.8:
        return {"score": other_scorers(d)}
    if kind < 0.88:
        return {"multiPoint": other_weights(d)}
    if kind < 0.93:
        return {"postFilter": disabled(d.one(["*"], ["DefaultPreemption"], ["DynamicResources"]))}
    if kind < 0.95:
        return {"preEnqueue": disabled(d.one(["*"], ["SchedulingGates"]))}
    lone = disabled(["*"])
    if d.chance(0.5):
        lone["enabled"] = weighted(d, d.some(SCORERS, 1, 1))
    return {"score": lone}


def disabled(plugins: Sequence[str]) -> Obj:
    return {"disabled": named(plugins)}


def named(plugins: Sequence[str]) -> list[Obj]:
    return [{"name": n} for n in plugins]


def weighted(d: Draw, plugins: Sequence[str]) -> list[Obj]:
    out = named(plugins)
    for item in out:
        if d.chance(0.6):
            item["weight"] = d.one(1, 2, 3, 5, 10, 100, d.randint(1, 50))
    return out


def first_half_disabled(d: Draw, before: str, point: str, plugins: Sequence[str]) -> Obj:
    """Plugins that lose the point that prepares another, and mostly that other one too."""
    chosen = d.some(plugins, 1, 2)
    out = {before: disabled(chosen)}
    if d.chance(0.7):
        out[point] = disabled(chosen)
    return out


def another_order(d: Draw) -> Obj:
    plugins = [p for p in PLUGINS if p in INDISPENSABLE or not d.chance(0.15)]
    d.shuffle(plugins)
    return {**disabled(["*"]), "enabled": weighted(d, plugins)}


def other_filters(d: Draw) -> Obj:
    out: Obj = {"enabled": named(d.some(FILTERS, 1, 6))}
    if d.chance(0.5):
        out |= disabled(["*"])
    return out


def other_scorers(d: Draw) -> Obj:
    plugins = d.some(SCORERS, 1, 4)
    out: Obj = {"enabled": weighted(d, plugins)}
    off = ["*"] if d.chance(0.6) else [n for n in plugins if d.chance(0.5)]
    return out | disabled(off) if off else out


def other_weights(d: Draw) -> Obj:
    out: Obj = {"enabled": weighted(d, d.some(SCORERS, 1, 3))}
    if d.chance(0.4):
        out |= disabled([n["name"] for n in out["enabled"]])
    return out
