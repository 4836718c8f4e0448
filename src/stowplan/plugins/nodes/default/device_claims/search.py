"""The search for devices on one node: kube-scheduler's, without its detours.

Depth first, the first solution counts: claim by claim, request by request, device by device in the order of the node's
pools. Within one request each device lies after the one before; each new request starts over.

kube-scheduler tries every subset of devices before it gives up. Two things make that needless, and change no answer:

    counting    a request for more devices than there are candidates fails at once
    alike       where a device led nowhere, another one that the question cannot tell from it leads nowhere either

An expression that fails ends the decision only if kube-scheduler would have evaluated it, so the search reads the
answers in its order.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from stowplan.columns.devices.pools import CounterAmounts
from stowplan.objects.resource_claims import MOST_RESULTS
from stowplan.plugins.nodes.default.device_claims.capacities import CapacityAmount
from stowplan.plugins.nodes.default.device_claims.constraint_state import ConstraintState
from stowplan.plugins.nodes.default.device_claims.questions import (
    EXACT_COUNT,
    ClaimQuestion,
    DeviceQuestion,
    FatalError,
    OneRequest,
    Trait,
)

Counters: TypeAlias = tuple[tuple[tuple[str, str], int], ...]

MOST_STEPS = 300_000  # after these the node counts as one for which kube-scheduler ran out of time


class TooManyDevicesError(Exception):
    """The claim would have more devices than its status can name. An alternative may need fewer."""


class OutOfTimeError(Exception):
    """The search took too many steps."""


class ConstraintError(Exception):
    """A request for all devices cannot have the one at this place."""

    def __init__(self, request: OneRequest, place: int) -> None:
        super().__init__(request.name)
        self.request, self.place = request, place


class SearchedNode(NamedTuple):
    """What the search must know of a node; equal for nodes with the same answer.

    traits      the number of each device's trait
    taken       whether each device is taken as a whole
    shares      what shares of each device consume already; None without shares
    pools       which of `counters` each device consumes; -1 for none
    consumed    how much of these it consumes
    counters    by pool: what is left
    """

    traits: tuple[int, ...]
    taken: tuple[bool, ...]
    shares: tuple[tuple[tuple[str, int], ...] | None, ...]
    pools: tuple[int, ...]
    consumed: tuple[Counters, ...]
    counters: tuple[Counters, ...]


@dataclass(frozen=True, slots=True)
class Pick:
    """A device for a request, by its place; `shared`: what a share takes, None for the whole device."""

    request: OneRequest
    place: int
    shared: dict[str, CapacityAmount] | None = None


@dataclass(slots=True)
class Found:
    """The devices of each claim, and which alternative was chosen of each list, by claim and request."""

    picks: list[list[Pick]] = field(default_factory=list)
    chosen: dict[tuple[int, int], int] = field(default_factory=dict)


class DeviceSearch:
    def __init__(self, question: DeviceQuestion, node: SearchedNode) -> None:
        self._question, self._node = question, node
        self._all: dict[int, list[int]] = {}  # the devices of each request for all of them, by its number
        self._traits: list[Trait] = [question.traits[number] for number in node.traits]
        self._size = len(self._traits)
        self._chosen_by: dict[int, list[int]] = {}  # claims by place, of devices chosen as a whole
        self._shared: dict[int, dict[str, int]] = {}  # what shares chosen here take, by place
        self._share_counts: dict[int, int] = {}
        self._counters: list[CounterAmounts] = [dict(left) for left in node.counters]
        self._constraints = [
            [ConstraintState(constraint) for constraint in claim.constraints] for claim in question.claims
        ]
        self.found = Found([[] for _ in question.claims])
        self.steps = 0

    def run(self, broken: str = "") -> Found | None:
        """Return the first solution; None if there is none. `broken`: why there is no telling what all devices are."""
        for claim in self._question.claims:
            self._prepare(claim, broken)
        if self._is_hopeless():
            return None
        try:
            done = self._claim(0)
        except TooManyDevicesError:
            return None
        return self.found if done else None

    def _prepare(self, claim: ClaimQuestion, broken: str) -> None:
        least = 0
        for request in claim.requests:
            least += min(self._number(option, broken) for option in request.options)
        if least > MOST_RESULTS:
            problem = f": number of requested devices {least} exceeds the claim limit of {MOST_RESULTS}"
            raise FatalError(problem, claim.claim)

    def _number(self, request: OneRequest, broken: str) -> int:
        """Return how many devices a request is for."""
        if request.spec.allocation_mode == EXACT_COUNT:
            return request.spec.count
        where = f", request {request.name}: "
        if not request.takes_all:
            raise FatalError(f"{where}unsupported count mode {request.spec.allocation_mode}", request.claim)
        if broken:
            raise FatalError(f"{where}asks for all devices, but resource pool {broken}", request.claim)
        places = []
        for place, trait in enumerate(self._traits):
            matches = trait.matches[request.number]
            if isinstance(matches, str):
                raise self._question.failure(request, matches)
            if matches and self._has_room(request, place):
                places.append(place)
        self._all[request.number] = places
        return len(places)

    def _is_hopeless(self) -> bool:
        """True if there are too few devices, whatever constraints say: for one request, or for all together.

        Where an expression fails, a share may be had, or an alternative, only the search itself can tell.
        """
        question = self._question
        if question.has_lists or question.takes_all or any(each.admin_access for each in question.all_requests):
            return False
        if any(trait.shareable or any(isinstance(each, str) for each in trait.matches) for trait in self._traits):
            return False
        free = [trait for trait, taken in zip(self._traits, self._node.taken, strict=True) if not taken]
        for request in question.all_requests:
            at = request.number
            if sum(trait.matches[at] is True and trait.tolerated[at] for trait in free) < request.spec.count:
                return True
        wanted = sum(request.spec.count for request in question.all_requests)
        return sum(any(trait.matches) for trait in free) < wanted

    # -- claims and requests

    def _claim(self, claim: int) -> bool:
        if claim >= len(self._question.claims):
            return True
        return self._request(self._question.claims[claim], 0)

    def _request(self, claim: ClaimQuestion, at: int) -> bool:
        """Find devices for the requests of a claim from here on, then for the other claims."""
        if at >= len(claim.requests):
            try:
                return self._claim(claim.claim + 1)
            except TooManyDevicesError:
                return False
        request = claim.requests[at]
        if not request.is_list:
            return self._devices(claim, at, request.options[0], 0, 0)
        every_too_many = True
        for number, option in enumerate(request.options):
            try:
                done = self._devices(claim, at, option, 0, 0)
            except TooManyDevicesError:
                continue
            every_too_many = False
            if done:
                self.found.chosen[claim.claim, at] = number
                return True
        if every_too_many:
            raise TooManyDevicesError
        return False

    def _devices(self, claim: ClaimQuestion, at: int, request: OneRequest, had: int, start: int) -> bool:
        """Find the rest of a request's devices, from a place on; it has some already."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise OutOfTimeError
        needed = len(self._all[request.number]) if request.takes_all else request.spec.count
        if request.takes_all and not needed:
            return False
        if had >= needed:
            return self._request(claim, at + 1)
        if len(self.found.picks[claim.claim]) + needed - had > MOST_RESULTS:
            raise TooManyDevicesError
        if request.takes_all:
            place = self._all[request.number][had]
            if not self._take(claim, request, place, must=True):
                return False
            return self._go_on(claim, at, request, had, 0, place)
        if not self._enough(request, needed - had, start):
            return False
        failed: set[Hashable] = set()
        for place in range(start, self._size):
            if not self._is_candidate(request, place):
                continue
            alike = self._alike(place)
            if alike in failed or not self._take(claim, request, place, must=False):
                continue
            if self._go_on(claim, at, request, had, place + 1, place):
                return True
            failed.add(alike)
        return False

    def _go_on(self, claim: ClaimQuestion, at: int, request: OneRequest, had: int, start: int, place: int) -> bool:
        """Look for the rest, now that a device is taken; without success it is given back."""
        try:
            done = self._devices(claim, at, request, had + 1, start)
        except TooManyDevicesError:
            self._give_back(claim, request, place)
            raise
        if not done:
            self._give_back(claim, request, place)
        return done

    # -- one device

    def _is_in_use(self, request: OneRequest, place: int) -> bool:
        chosen_by = self._chosen_by.get(place)
        if request.admin_access:
            return chosen_by is not None and request.claim in chosen_by
        return self._node.taken[place] or bool(chosen_by)

    def _is_candidate(self, request: OneRequest, place: int) -> bool:
        """True if the device is free, selected, and has the capacity."""
        if self._is_in_use(request, place):
            return False
        matches = self._traits[place].matches[request.number]
        if matches is True:
            return self._has_room(request, place)
        if matches is False:
            return False
        raise self._question.failure(request, matches)

    def _enough(self, request: OneRequest, needed: int, start: int) -> bool:
        """True if there are enough candidates from a place on, whatever constraints say."""
        for place in range(start, self._size):
            if self._is_candidate(request, place) and self._traits[place].tolerated[request.number]:
                needed -= 1
                if not needed:
                    return True
        return False

    def _has_room(self, request: OneRequest, place: int) -> bool:
        trait = self._traits[place]
        wanted = trait.amounts[request.number]
        if wanted is None:
            return False
        shares, chosen = self._node.shares[place], self._shared.get(place)
        if shares is None and chosen is None:
            return True
        taken = dict(shares or ())
        return all(
            taken.get(name, 0) + (chosen or {}).get(name, 0) + amount.nanos <= amount.most
            for name, amount in wanted.items()
        )

    def _take(self, claim: ClaimQuestion, request: OneRequest, place: int, *, must: bool) -> bool:
        """Take a device if counters, taints and constraints allow it. `must`: there is no other to take instead."""
        trait, shareable = self._traits[place], self._traits[place].shareable
        if must and self._is_in_use(request, place):
            return False
        counted = trait.counters and not (shareable and self._has_shares(place))
        if counted and not self._count(place):
            return False
        problem = not trait.tolerated[request.number] or not self._add(claim, request, place, must=must)
        if not problem and must and not self._has_room(request, place):
            self._remove(claim, request)
            problem = True
        if problem:
            if counted:
                self._uncount(place)
            return False
        if shareable:
            self._share(place, trait.amounts[request.number] or {}, +1)
        else:
            self._chosen_by.setdefault(place, []).append(claim.claim)
        picks = self.found.picks[claim.claim]
        picks.append(Pick(request, place, (trait.amounts[request.number] or {}) if shareable else None))
        return True

    def _give_back(self, claim: ClaimQuestion, request: OneRequest, place: int) -> None:
        trait = self._traits[place]
        self._remove(claim, request)
        if trait.shareable:
            self._share(place, trait.amounts[request.number] or {}, -1)
        else:
            self._chosen_by[place].remove(claim.claim)
        if trait.counters and not (trait.shareable and self._has_shares(place)):
            self._uncount(place)
        self.found.picks[claim.claim].pop()

    def _has_shares(self, place: int) -> bool:
        return self._node.shares[place] is not None or self._share_counts.get(place, 0) > 0

    def _share(self, place: int, amounts: dict[str, CapacityAmount], sign: int) -> None:
        taken = self._shared.setdefault(place, {})
        for name, amount in amounts.items():
            taken[name] = taken.get(name, 0) + sign * amount.nanos
        self._share_counts[place] = self._share_counts.get(place, 0) + sign

    def _alike(self, place: int) -> Hashable:
        """Return the same for devices of which the rest of the search cannot tell one from the other."""
        node, shared = self._node, self._shared.get(place)
        pool = node.pools[place] if node.pools else -1
        now = tuple(sorted(shared.items())) if shared else None
        return node.traits[place], pool, node.taken[place], node.shares[place], now, self._was(place)

    def _was(self, place: int) -> tuple[int, ...]:
        return tuple(self._chosen_by.get(place, ()))

    # -- counters

    def _count(self, place: int) -> bool:
        """Take the device's counters; False if there are not enough of one in its pool."""
        left = self._counters[self._node.pools[place]]
        for name, amount in self._node.consumed[place]:
            left[name] -= amount
        if all(amount >= 0 for amount in left.values()):
            return True
        self._uncount(place)
        return False

    def _uncount(self, place: int) -> None:
        left = self._counters[self._node.pools[place]]
        for name, amount in self._node.consumed[place]:
            left[name] += amount

    # -- constraints

    def _add(self, claim: ClaimQuestion, request: OneRequest, place: int, *, must: bool) -> bool:
        states, attributes = self._constraints[claim.claim], self._traits[place].attributes
        for number, state in enumerate(states):
            if not state.add(request, attributes[state.constraint.number]):
                if must:
                    raise ConstraintError(request, place)
                for before in states[:number]:
                    before.remove(request)
                return False
        return True

    def _remove(self, claim: ClaimQuestion, request: OneRequest) -> None:
        for state in self._constraints[claim.claim]:
            state.remove(request)
