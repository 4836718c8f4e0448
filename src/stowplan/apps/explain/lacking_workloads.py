"""All workloads that cannot create their pods, among those that a cluster shows.

A list of pending pods would not show them: their pods do not exist. Workloads with fewer pods than they should have
are looked at one by one, with `Shortages`; the others cost nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stowplan.apps.explain.kubectl_commands import Owner
from stowplan.apps.explain.shortages import Shortage, Shortages, wanted_pods
from stowplan.apps.explain.targets import WorkloadOwners
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import Deployment, ReplicaSet, StatefulSet


def find(
    objects: Iterable[Object],
    documents: Iterable[tuple[str, Mapping[str, Any]]],
    pods: Iterable[Pod],
    owners: WorkloadOwners,
    shortages: Shortages,
    namespace: str = "",
) -> Iterator[Shortage]:
    """Yield them, each once. `namespace`: only those there; empty for all.

    objects     ReplicaSets and StatefulSets, among others
    documents   workloads of other kinds, each with its kind
    """
    owned: defaultdict[Owner, list[Pod]] = defaultdict(list)
    for pod in pods:
        owner = owners.of(pod)
        if owner is not None:
            owned[owner].append(pod)
    for owner, wanted in (_wanted(objects, namespace) | _of_documents(documents)).items():
        its_pods = owned.get(owner, [])
        if sum(not pod.finished and not pod.terminating for pod in its_pods) < wanted:
            found = shortages.of(owner.kind, owner.key, its_pods)
            if found is not None:
                yield found


def _wanted(objects: Iterable[Object], namespace: str) -> dict[Owner, int]:
    """Return how many pods workloads should have; a Deployment that cannot be seen as many as its ReplicaSets."""
    found: dict[Owner, int] = {}
    seen: dict[Owner, int] = {}
    for each in objects:
        if not isinstance(each, ReplicaSet | StatefulSet | Deployment) or namespace not in ("", each.namespace):
            continue
        above = each.controller()
        number = 1 if each.spec.replicas is None else each.spec.replicas
        if above is None:
            seen[Owner(type(each).__name__, each.key)] = number
        else:
            owner = Owner(above.kind, f"{each.namespace}/{above.name}")
            found[owner] = found.get(owner, 0) + number
    return found | seen


def _of_documents(documents: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[Owner, int]:
    found: dict[Owner, int] = {}
    for kind, document in documents:
        metadata = document.get("metadata") or {}
        found[Owner(kind, f"{metadata.get('namespace')}/{metadata.get('name')}")] = wanted_pods(kind, document)
    return found
