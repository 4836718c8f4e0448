"""`stowplan explain POD`: where a pod would go as things stand, and why not elsewhere. It changes nothing.

A pod that has a node already is looked at as if it had none, beside all the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml
from rich.console import Console
from rich.table import Table

from stowplan.apps import gathering, pages, wiring
from stowplan.columns.state import ClusterState
from stowplan.columns.views import Cluster
from stowplan.framework.evaluate import schedule_one
from stowplan.framework.profile import Profile
from stowplan.framework.verdict import Decision
from stowplan.objects.changes import Put
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.objects.priority import prioritised
from stowplan.objects.workloads import PriorityClass

NEAREST = 5


def run(
    name: str,
    namespace: str,
    *,
    files: tuple[Path, ...] = (),
    config: Path | None = None,
    kubeconfig: str = "",
    context: str = "",
    output: str = "table",
) -> int:
    """0 if the pod has a place, 1 if it has none."""
    _, profiles = wiring.read_configuration(config) if config is not None else wiring.defaults()
    if files:
        objects, _ = gathering.from_files(files)
    else:
        wanted = frozenset[str]().union(*(profile.reads for profile in profiles.values()))
        objects = gathering.from_cluster(wanted, kubeconfig=kubeconfig, context=context)
    decision, state, bound_to = explained(objects, f"{namespace}/{name}", profiles)
    if output == "table":
        show(Console(highlight=False, markup=False), decision, state, bound_to)
    else:
        document = pages.shown(decision) | {"boundTo": bound_to}
        text = msgspec.json.encode(document) if output == "json" else yaml.safe_dump(msgspec.to_builtins(document))
        Console(soft_wrap=True, highlight=False, markup=False).print(text.decode() if isinstance(text, bytes) else text)
    return 0 if decision.node is not None else 1


def explained(objects: Iterable[Object], key: str, profiles: dict[str, Profile]) -> tuple[Decision, ClusterState, str]:
    """The decision about a pod among these objects, the cluster without it, and the node it has already."""
    state, pod = ClusterState(), None
    for each in objects:
        if isinstance(each, Pod) and each.key == key:
            pod = each
        else:
            state.apply(Put(each))
    if pod is None:
        raise ConfigError(f"there is no pod {key}", remedy="name it as it is, and its namespace by -n")
    unbound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))
    if unbound.spec.priority is None:
        unbound = prioritised(unbound, state.store.every(PriorityClass))
    profile = profiles.get(pod.scheduler_name, next(iter(profiles.values())))
    return schedule_one(unbound, state, profile), state, pod.node_name


# -- for people


def show(console: Console, decision: Decision, state: ClusterState, bound_to: str) -> None:
    if bound_to:
        console.print(f"{decision.pod.key} is on {bound_to}; this is how it would be decided now.")
    if decision.gated is not None:
        console.print(f"{decision.pod.key} is held back: {', '.join(decision.gated.reasons)}")
        return
    if decision.node is None:
        console.print(decision.full_message)
        for line in nearest(decision, state):
            console.print(f"  {line}")
    else:
        console.print(_won(decision))
        console.print(_scores(decision))
    if decision.trail.verdicts:
        console.print(_rejections(decision))


def _won(decision: Decision) -> str:
    totals = sorted(decision.trail.totals.tolist(), reverse=True)
    ahead = totals[0] - totals[1] if len(totals) > 1 else None
    how = "the only node left" if ahead is None else f"{ahead} ahead" if ahead else "drawn among the best"
    feasible = f"{len(totals)} of {len(decision.trail.names)} nodes feasible"
    return f"{decision.pod.key} goes to {decision.node} ({how}; {feasible})"


def _scores(decision: Decision) -> Table:
    weights = {name: weight for name, (weight, _) in decision.trail.scores.items()}
    table = Table("node", "total", *(f"{name} ×{weight}" for name, weight in weights.items()))
    rows = sorted(decision.trail.scored(), key=lambda row: (-row[2], row[0] != decision.node, row[0]))
    for name, each, total in rows[:20]:
        table.add_row(name, str(total), *(str(each[plugin]) for plugin in weights))
    if len(rows) > 20:
        table.caption = f"and {len(rows) - 20} more; -o json has all"
    return table


def _rejections(decision: Decision) -> Table:
    table = Table("node", "rejected by", "because")
    refused = [(name, verdict) for name, verdict in decision.trail.rejections() if verdict is not None]
    for name, verdict in refused[:50]:
        table.add_row(name, verdict.plugin, ", ".join(verdict.reasons))
    if len(refused) > 50:
        table.caption = f"and {len(refused) - 50} more; -o json has all"
    return table


def nearest(decision: Decision, state: ClusterState) -> Iterator[str]:
    """The nodes that lack least of what the pod asks for, those that nothing but resources speaks against."""
    nodes = Cluster(state).nodes
    lacking: list[tuple[float, str]] = []
    for at, (name, verdict) in enumerate(decision.trail.rejections()):
        if verdict is not None and verdict.plugin == "NodeResourcesFit":
            short = dict(_short(decision.pod, nodes, at))
            share = max((amount / decision.pod.request[what] for what, amount in short.items()), default=0.0)
            lacking.append((share, f"{name} lacks {', '.join(_amount(*each) for each in short.items()) or 'room'}"))
    return (text for _, text in sorted(lacking)[:NEAREST])


def _short(pod: Pod, nodes: Any, at: int) -> Iterator[tuple[str, int]]:
    for resource, wanted in pod.request.items():
        missing = int(wanted) - int(nodes.free[resource][at])
        if wanted and missing > 0:
            yield resource, missing


def _amount(resource: str, missing: int) -> str:
    if resource == "cpu":
        return f"{missing}m cpu" if missing % 1000 else f"{missing // 1000} cpu"
    if resource in ("memory", "ephemeral-storage"):
        return f"{-(-missing // 2**20)}Mi {resource}"
    return f"{missing} {resource}"
