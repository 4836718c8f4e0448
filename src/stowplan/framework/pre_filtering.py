"""Pre-filters: before any node is looked at, a plugin may refuse the pod, or limit the search to some nodes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.decision import SKIP, UNRESOLVABLE, Only, RejectPod, Verdict
from stowplan.framework.interfaces import PreFilterPlugin
from stowplan.framework.plugin_calls import call, wrong
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.pods import Pod
from stowplan.objects.shape import Shape

MOST_PLANS = 1024
NO_NODES = Verdict("", UNRESOLVABLE, ("no nodes available to schedule pods",))


@dataclass(slots=True)
class PreFilterResult:
    """The answers of a profile's pre-filters about one pod.

    called       the plugins that were called; after a final refusal no other plugin is
    skipped      the plugins whose filter has nothing to do
    names        the nodes that the search is limited to; None: all nodes
    limited_by   the plugins that limited the search
    refused      why the pod as a whole is refused, if it is
    """

    called: tuple[str, ...] = ()
    skipped: set[str] = field(default_factory=set)
    names: frozenset[str] | None = None
    limited_by: list[str] = field(default_factory=list)
    refused: Verdict | None = None


@dataclass(frozen=True, slots=True)
class ShapePlan:
    """What pre-filters answer to every pod of a shape, or of all shapes that differ in their requests or volumes alone.

    asked     the plugins that must be asked for each pod, and their places
    skipped   the plugins whose filter has nothing to do for such pods
    """

    asked: tuple[tuple[int, EnabledPlugin[PreFilterPlugin]], ...]
    skipped: frozenset[str] = frozenset()


def pre_filter(pod: Pod, cluster: Cluster, profile: Profile) -> PreFilterResult:
    """Call every pre-filter, in order, unless its answer is known by the pod's shape. The first refusal that evictions
    cannot resolve is final.
    """
    key = _plan_key(pod.shape, profile)
    plan = profile.shape_plans.get(key) or _planned(pod, cluster, profile, key)
    result = PreFilterResult(profile.pre_filter_names, set(plan.skipped))
    for at, enabled in plan.asked:
        answer = call(enabled, enabled.plugin.pre_filter, pod, cluster)
        if answer is None:
            continue
        if answer is SKIP:
            result.skipped.add(enabled.name)
        elif isinstance(answer, RejectPod):
            result.refused = Verdict(enabled.name, answer.code, answer.reasons)
            if not answer.resolvable:
                result.names, result.called = None, result.called[: at + 1]
                return result
        elif isinstance(answer, Only):
            result.limited_by.append(enabled.name)
            result.names = answer.names if result.names is None else result.names & answer.names
            if not result.names:
                result.refused = Verdict("", UNRESOLVABLE, (_no_node_satisfies(result.limited_by),))
                result.called = result.called[: at + 1]
                return result
        else:
            raise wrong(enabled, enabled.plugin.pre_filter, answer, "None, SKIP, Only or RejectPod was due")
    return result


def _plan_key(shape: Shape, profile: Profile) -> Hashable:
    """What pods have in common that share a plan."""
    bare = shape.bare or shape
    alike = bare.unsized if bare.unsized is not None and profile.pre_filters_ignore_requests else bare
    return alike.key if shape.bare is None else (alike.key,)


def _planned(pod: Pod, cluster: Cluster, profile: Profile, key: Hashable) -> ShapePlan:
    """Find out which pre-filters answer None or SKIP to every pod of this shape, and note it for the next one.

    Pods with claims are hardly ever of one shape. Those that differ in nothing but their volumes share a plan, in which
    every plugin that may look at volumes is asked. Where no answer depends on requests, pods that differ in nothing but
    these share it, too.
    """
    has_volumes = pod.shape.bare is not None
    asked: list[tuple[int, EnabledPlugin[PreFilterPlugin]]] = []
    skipped: set[str] = set()
    for at, enabled in enumerate(profile.pre_filters):
        by_shape = getattr(enabled.plugin, "pre_filters_by_shape", False)
        if has_volumes and not getattr(enabled.plugin, "ignores_volumes", False):
            by_shape = False
        elif callable(by_shape):
            by_shape = call(enabled, by_shape, pod)
        answer = call(enabled, enabled.plugin.pre_filter, pod, cluster) if by_shape else pod
        if answer is SKIP:
            skipped.add(enabled.name)
        elif answer is not None:
            asked.append((at, enabled))
    if len(profile.shape_plans) >= MOST_PLANS:
        profile.shape_plans.clear()
    plan = profile.shape_plans[key] = ShapePlan(tuple(asked), frozenset(skipped))
    return plan


def _no_node_satisfies(plugins: list[str]) -> str:
    if len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously"
