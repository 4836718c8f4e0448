"""The diagnosis of one placement: why it does not get its clusters, and the smallest changes after which it does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stowplan.diagnosis import ranking
from stowplan.diagnosis.diagnosis import CauseGroup, NamedCause, Wait
from stowplan.diagnosis.edits import Edits
from stowplan.diagnosis.placement_causes import cluster_groups, placement_causes
from stowplan.diagnosis.placements.hub import TriedHub, satisfied
from stowplan.diagnosis.placements.hub_proposals import HubProposals
from stowplan.diagnosis.placements.proposals import PlacementProposals
from stowplan.diagnosis.proposals import ProposalSearch
from stowplan.diagnosis.remedy import Remedy
from stowplan.framework.placement.choice import PlacementChoice
from stowplan.framework.placement.policy import ClusterPolicy
from stowplan.objects.meta import Object
from stowplan.objects.placements import Placement

MOST_TRIES = 4000
_ALONE = ("predicate-key", "limit-cluster-sets", "correct-cluster-set")  # beside others they would ask for more


@dataclass(frozen=True, slots=True)
class PlacementDiagnosis:
    """What keeps a placement from its clusters, and what would help.

    chosen      the clusters that it gets now
    satisfied   it gets all that it asks for; then there is nothing else to say
    causes      why the placement as a whole does not
    clusters    why clusters are not chosen, the group with the most clusters first
    remedies    the smallest changes that help, the best first; each was tried
    waits       what may help without a change
    never       why nothing of this hub could satisfy the placement; or an empty text
    bounded     what was not searched, because the search stopped at a bound; or an empty text
    """

    chosen: tuple[str, ...] = ()
    satisfied: bool = False
    causes: tuple[NamedCause, ...] = ()
    clusters: tuple[CauseGroup, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    waits: tuple[Wait, ...] = ()
    never: str = ""
    bounded: str = ""


def diagnose_placement(
    placement: Placement,
    objects: Iterable[Object],
    policy: ClusterPolicy,
    now: float,
    *,
    ocm: bool = False,
    hysteresis: int = 0,
    most_tries: int = MOST_TRIES,
) -> PlacementDiagnosis:
    """Say what keeps a placement from its clusters, and what would help. `objects` are those of its hub."""
    hub = TriedHub(placement, objects, policy, now, ocm=ocm, hysteresis=hysteresis)
    choice = hub.choose()
    assert choice is not None, "nothing was changed"
    if satisfied(choice):
        return PlacementDiagnosis(tuple(choice.names), True)
    search = ProposalSearch(hub.satisfied, most_tries)
    proposals = [*PlacementProposals(hub, choice).all(), *HubProposals(hub, choice).all()]
    found = search.run(proposals, [each for each in proposals if each.edit.code not in _ALONE])
    remedies = tuple(_remedy(hub, edits, choice) for edits in sorted(found, key=ranking.rank))
    return PlacementDiagnosis(
        tuple(choice.names),
        causes=placement_causes(choice),
        clusters=cluster_groups(choice, policy),
        remedies=remedies,
        waits=_waits(choice),
        never="" if remedies else _never(hub),
        bounded=search.bounded,
    )


def _remedy(hub: TriedHub, edits: Edits, before: PlacementChoice) -> Remedy:
    choice = hub.choose(edits)
    assert choice is not None, "these edits were tried"
    after, had = choice.names, before.names
    lost = [name for name in had if name not in after]
    also = (f"it would no longer get {', '.join(lost)}",) if lost else ()
    return Remedy(
        ranking.code(edits),
        "; ".join(edit.text for edit in edits),
        hub.changes_of(edits),
        None,
        also=also,
        clusters=tuple(after),
    )


def _waits(choice: PlacementChoice) -> tuple[Wait, ...]:
    if choice.requeue_at is None and choice.changes_at == float("inf"):
        return ()
    return (Wait("time", "its tolerations end, or scores expire: time alone changes what it gets"),)


def _never(hub: TriedHub) -> str:
    """Why nothing could satisfy the placement as it is."""
    if not hub.clusters():
        return "the hub has no cluster"
    foreign = [each.name for each in hub.policy.filters if each.name in hub.policy.third_party]
    return f"a filter of a third party rejects its clusters: {', '.join(foreign)}" if foreign else ""
