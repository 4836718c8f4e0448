"""Remedies of a pod that a WorkloadPolicy or the room for an application keeps from its node.

They are proposals that are tried by a rehearsal of the pod, which reserves what it needs; a smaller request, more nodes
and freed room are among them, so that pairs are found as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stowplan.columns.state import ClusterState
from stowplan.diagnosis import deletions, ranking
from stowplan.diagnosis.cluster_proposals import FREE_ROOM, ClusterProposals
from stowplan.diagnosis.edits import Edits
from stowplan.diagnosis.proposals import Proposal, ProposalSearch, proposal
from stowplan.diagnosis.rehearsing import Rehearsing
from stowplan.diagnosis.remedies.lower_request import lowered
from stowplan.diagnosis.remedy import Remedy
from stowplan.diagnosis.reservations import ReservationProposals
from stowplan.diagnosis.search import POOL_LABEL
from stowplan.diagnosis.workload_policies import WorkloadPolicyProposals
from stowplan.framework.profile import Profile
from stowplan.objects import spark
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod

MOST_TRIES = 800
MOST_OF_A_KIND = 3  # remedies with the same code that are shown


@dataclass(frozen=True, slots=True)
class SpecialRemedies:
    """`bounded`: what was not searched, because the search stopped at a bound; or an empty text."""

    remedies: tuple[Remedy, ...] = ()
    bounded: str = ""


def special_remedies(
    pod: Pod,
    state: ClusterState,
    profiles: Mapping[str, Profile],
    *,
    templates: Mapping[str, Node] | None = None,
    pool_label: str = POOL_LABEL,
    most_tries: int = MOST_TRIES,
) -> SpecialRemedies:
    """Return what would help a pod that has a WorkloadPolicy, or is a driver or an executor; nothing for others."""
    trying = Rehearsing(state, profiles, [pod])
    special = [*WorkloadPolicyProposals(trying, pod).all(), *ReservationProposals(trying, pod).all()]
    if not special or trying.runs(()):
        return SpecialRemedies()
    search = ProposalSearch(trying.runs, most_tries)
    others = [*_requests(pod), *ClusterProposals(trying, 1 + _slots(pod), dict(templates or {}), pool_label).all()]
    trying.order.keep_all()
    try:
        sets = [edits for edits in search.run([*special, *others]) if trying.surely_runs(edits)]
        return SpecialRemedies(tuple(_shown(trying, pod, sets)), search.bounded)
    finally:
        trying.order.restore()


def _requests(pod: Pod) -> Iterator[Proposal]:
    for resource, amount in pod.request.items():
        if amount > 0 and resource != "pods":
            yield proposal(lowered(pod, resource, 0))


def _slots(pod: Pod) -> int:
    found = spark.executors(pod)
    return 0 if found is None else found.least


def _shown(trying: Rehearsing, pod: Pod, sets: list[Edits]) -> Iterator[Remedy]:
    codes: dict[str, int] = {}
    for edits in sorted(deletions.variants(sets, trying), key=ranking.rank):
        code = ranking.code(edits)
        codes[code] = codes.get(code, 0) + 1
        if codes[code] <= (1 if code == FREE_ROOM else MOST_OF_A_KIND):
            nodes, changes = trying.where(edits) or {}, trying.changes_of(edits)
            gone, also = deletions.gone(edits, changes), deletions.consequences(edits, nodes, trying)
            text = "; ".join(edit.text for edit in edits)
            yield Remedy(code, text, changes, nodes.get(pod.key), gone, also, ranked_as=ranking.name(edits))
