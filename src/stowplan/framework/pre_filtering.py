"""Pre-filters: before any node is looked at, a plugin may refuse the pod, or limit the search to some nodes."""

from __future__ import annotations

from dataclasses import dataclass, field

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.decision import SKIP, UNRESOLVABLE, Only, RejectPod, Verdict
from stowplan.framework.plugin_calls import call, wrong
from stowplan.framework.profile import Profile
from stowplan.objects.pods import Pod

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

    called: list[str] = field(default_factory=list)
    skipped: set[str] = field(default_factory=set)
    names: frozenset[str] | None = None
    limited_by: list[str] = field(default_factory=list)
    refused: Verdict | None = None


def pre_filter(pod: Pod, cluster: Cluster, profile: Profile) -> PreFilterResult:
    """Call every pre-filter, in order. The first refusal that evictions cannot resolve is final."""
    result = PreFilterResult()
    for enabled in profile.pre_filters:
        result.called.append(enabled.name)
        answer = call(enabled, enabled.plugin.pre_filter, pod, cluster)
        if answer is None:
            continue
        if answer is SKIP:
            result.skipped.add(enabled.name)
        elif isinstance(answer, RejectPod):
            result.refused = Verdict(enabled.name, answer.code, answer.reasons)
            if not answer.resolvable:
                result.names = None
                return result
        elif isinstance(answer, Only):
            result.limited_by.append(enabled.name)
            result.names = answer.names if result.names is None else result.names & answer.names
            if not result.names:
                result.refused = Verdict("", UNRESOLVABLE, (_no_node_satisfies(result.limited_by),))
                return result
        else:
            raise wrong(enabled, enabled.plugin.pre_filter, answer, "None, SKIP, Only or RejectPod was due")
    return result


def _no_node_satisfies(plugins: list[str]) -> str:
    if len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously"
