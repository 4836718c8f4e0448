"""The diagnosis of any pod that waits: with its group if it is in one, with its policy, or as a Spark application."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import replace
from typing import Any

import msgspec

from stowplan.columns.trial import without_pods
from stowplan.diagnosis import failing_plugins, ranking
from stowplan.diagnosis.diagnosis import Diagnosis
from stowplan.diagnosis.groups.diagnosis import GroupDiagnosis, diagnose_group
from stowplan.diagnosis.search import POOL_LABEL, diagnose
from stowplan.diagnosis.special_remedies import SpecialRemedies, special_remedies
from stowplan.engine.scheduler import Scheduler
from stowplan.framework.decision import Candidate
from stowplan.framework.profile import Profile
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod


def diagnose_any(
    scheduler: Scheduler,
    pod: Pod,
    *,
    profiles: Mapping[str, Profile] | None = None,
    templates: Mapping[str, Node] | None = None,
    pool_label: str = POOL_LABEL,
    most_tries: int | None = None,
    groups: MutableMapping[str, GroupDiagnosis] | None = None,
) -> Diagnosis:
    """Say what keeps a pod from a node, and what would help: a pod of a group together with its group.

    A pod that has a node is looked at as if it had none. Nothing in the scheduler changes.

    profiles     those that the pod could ask for, by scheduler name
    templates    nodes that could be added, by name
    pool_label   nodes with the same value of this label serve as templates of their pool
    most_tries   of changes, in each of the searches; None: their own bounds
    groups       diagnoses of groups by name, if the caller keeps them for the next member; new ones are entered
    """
    bounds: dict[str, Any] = {} if most_tries is None else {"most_tries": most_tries}
    unit = scheduler.queue.find(pod.uid)
    if unit is not None and unit.group and not unit.broken:
        known = {} if groups is None else groups
        if unit.group not in known:
            known[unit.group] = diagnose_group(
                scheduler, unit.group, templates=templates, pool_label=pool_label, **bounds
            )
        return of_member(known[unit.group], pod)
    state, every = scheduler.state, {**scheduler.profiles, **(profiles or {})}
    with without_pods(state, [pod.uid] if pod.uid in state.pods else []):
        unbound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))
        profile = scheduler.profiles.get(pod.scheduler_name)
        alone = diagnose(
            unbound, state, profile, profiles=profiles, templates=templates, pool_label=pool_label,
            others=(other for unit in scheduler.queue.units.values() for other in unit.pods.values()), **bounds,
        )  # fmt: skip
        every = failing_plugins.working(every, pod.scheduler_name, failing_plugins.names_in(alone))
        special = special_remedies(unbound, state, every, templates=templates, pool_label=pool_label, **bounds)
    return joined(alone, special)


def joined(alone: Diagnosis, special: SpecialRemedies) -> Diagnosis:
    """Return a pod's diagnosis with what its policy or its application needs."""
    bounded = "; ".join(filter(None, (alone.bounded, special.bounded)))
    if not special.remedies:
        return replace(alone, bounded=bounded)
    known = {each.code for each in special.remedies}
    every = [*special.remedies, *(each for each in alone.remedies if each.code not in known)]
    return replace(alone, remedies=tuple(sorted(every, key=ranking.order)), never="", bounded=bounded)


def of_member(found: GroupDiagnosis, pod: Pod) -> Diagnosis:
    """Return what a group's diagnosis says about one of its pods."""
    own = next((each for each in found.causes if pod.key in each.members), next(iter(found.causes), None))
    preemption = None
    if found.preemption is not None:
        nodes = found.preemption.nodes
        node = nodes.get(pod.uid) or next(iter(nodes.values()))
        preemption = Candidate(node, found.preemption.victims, 0)
    return Diagnosis(
        found.group_causes if own is None else (*found.group_causes, *own.pod_causes),
        () if own is None else own.groups,
        preemption,
        tuple(replace(each, node=each.nodes.get(pod.key, each.node)) for each in found.remedies),
        found.waits,
        found.never,
        found.bounded,
    )
