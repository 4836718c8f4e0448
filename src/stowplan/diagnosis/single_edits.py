"""Single edits of the pod that open no node alone, but may together with deleted pods or more nodes.

They go as far as they can: a request down to nothing, a constraint made soft. `edits.minimal` makes them smaller.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stowplan.diagnosis.case import IMPOSSIBLE, Case, Offer
from stowplan.diagnosis.edits import Edit, Edits
from stowplan.diagnosis.remedies import claims, lower_request, terms
from stowplan.diagnosis.remedy import PatchObject
from stowplan.framework.plugin_calls import call_list
from stowplan.objects import requests

MOST = 10


def single_edits(case: Case, offers: list[Offer]) -> list[Edits]:
    """Return edits to begin with, each for one thing that is in the way."""
    found: list[Edits] = []
    for edits in (*_claims(case), *_requests(case), *_offered(offers), *_terms(case)):
        if edits not in found:
            found.append(edits)
    return found[:MOST]


def _claims(case: Case) -> Iterator[Edits]:
    if case.found.refused:
        yield from claims.alternatives(case.pod, case.state, case.trying.awaited_claims)


def _requests(case: Case) -> Iterator[Edits]:
    """Yield every request that is lacking anywhere, lowered to what no container asks for."""
    overhead = requests.rounded(requests.read(case.pod.spec.overhead))
    for enabled in case.profile.needs_free_filters:
        for resource, amount in call_list(enabled, enabled.plugin.needs_free, tuple, case.pod):
            least = max(overhead.get(resource, 0), 0)
            if resource != "pods" and amount > least and (case.nodes.free[resource] < amount).any():
                yield (lower_request.lowered(case.pod, resource, least),)


def _offered(offers: list[Offer]) -> Iterator[Edits]:
    """Yield the edits of each offer for the first node that it helps."""
    for offer in offers:
        rows = np.flatnonzero((offer.steps > 0) & (offer.steps < IMPOSSIBLE))
        if len(rows):
            for edit in offer.edits(int(rows[0])):
                if edit.code != lower_request.CODE:
                    yield (edit,)


def _terms(case: Case) -> Iterator[Edits]:
    for edit in terms.every_edit(case):
        yield (edit,)


def joined(left: Edits, right: Edits) -> Edits | None:
    """Return two of these together; None if they are about the same thing."""
    if any(_paths(one) & _paths(other) for one in left for other in right):
        return None
    return (*left, *right)


def _paths(edit: Edit) -> set[tuple[str, str, str]]:
    return {
        (change.kind, change.key, operation.path)
        for change in edit.changes
        if isinstance(change, PatchObject)
        for operation in change.operations
        if not operation.path.endswith("/-")
    }
