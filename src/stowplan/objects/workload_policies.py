"""Kosmos' WorkloadPolicy: how many pods each domain of a topology key should have.

The numbers are numbers of pods, or percentages of all pods that the policy selects (`apportionment`).

The object keeps what the user wrote, in any of the forms that are in use. `policy.rule` is its meaning, or its
problems: an invalid policy is still an object, and the conditions of its pods report the problems.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property

import msgspec

from stowplan.objects import apportionment, selectors
from stowplan.objects.affinity import PodQuery
from stowplan.objects.meta import CompleteApiValue, Condition, Object
from stowplan.objects.selectors import LabelSelector, Selector

TYPES = {"": "Preferred", "preferred": "Preferred", "require": "Required", "required": "Required"}
METHODS = {"": "Balance", "balance": "Balance", "fill": "Fill"}
REBALANCING = {"": "Never", "never": "Never", "evict": "Evict"}
MOST_DOMAINS = 256  # in a policy; the CRD says so, too
PERCENTAGE = re.compile(r"(\d{1,3})(?:\.(\d{1,2}))?%", re.ASCII)


class Allocation(CompleteApiValue, frozen=True):
    """A domain, by the value of the topology key, and its desired number of pods, or a percentage such as "37.5%"."""

    name: str = ""
    replicas: int | str = 0

    @property
    def share(self) -> int | None:
        """The percentage, in hundredths of a percent; None if it is none."""
        found = PERCENTAGE.fullmatch(self.replicas) if isinstance(self.replicas, str) else None
        return None if found is None else int(found[1]) * 100 + int((found[2] or "").ljust(2, "0"))


class WorkloadPolicySpec(CompleteApiValue, frozen=True):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    allocation_policy: tuple[Allocation, ...] = ()
    allocation_type: str = ""
    allocation_method: str = ""
    schedule_strategy: str = ""
    strict_topology: bool = False
    match_label_keys: tuple[str, ...] = ()
    rebalance: str = ""


class DomainStatus(CompleteApiValue, frozen=True):
    name: str = ""
    desired: int = 0
    current: int = 0
    pending: int = 0


class WorkloadPolicyStatus(CompleteApiValue, frozen=True):
    """Numbers of pods: `current` in listed domains, `elsewhere` on other nodes, `pending` without a node."""

    observed_generation: int = 0
    desired: int = 0
    current: int = 0
    elsewhere: int = 0
    pending: int = 0
    domains: tuple[DomainStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()


class AllocationRule(msgspec.Struct, frozen=True):
    """The meaning of a policy. With `problems` it cannot be used; with `remarks` it can."""

    topology_key: str
    selector: Selector | None
    weights: dict[str, int]  # numbers of pods by domain, or its shares in hundredths of a percent
    by_shares: bool
    type: str
    method: str
    strict_topology: bool
    match_label_keys: tuple[str, ...]
    evicts: bool
    problems: tuple[str, ...]
    remarks: tuple[str, ...]

    def desired(self, pods: int) -> Mapping[str, int]:
        """Return how many pods each domain should have, if there are so many."""
        return apportionment.places_by_shares(self.weights, pods) if self.by_shares else self.weights

    @property
    def required(self) -> bool:
        return self.type == "Required"

    @property
    def fills(self) -> bool:
        return self.method == "Fill"

    @property
    def confines(self) -> bool:
        """True if nodes outside of the listed domains are rejected."""
        return self.required or self.strict_topology


class WorkloadPolicy(Object, frozen=True, dict=True):
    spec: WorkloadPolicySpec = WorkloadPolicySpec()
    status: WorkloadPolicyStatus = WorkloadPolicyStatus()

    @cached_property
    def rule(self) -> AllocationRule:
        spec, selector = self.spec, selectors.compile_selector(self.spec.label_selector)
        by_shares = any(isinstance(each.replicas, str) for each in spec.allocation_policy)
        return AllocationRule(
            topology_key=spec.topology_key,
            selector=selector,
            weights={each.name: _weight(each) for each in spec.allocation_policy},
            by_shares=by_shares,
            type=TYPES.get(spec.allocation_type.casefold(), ""),
            method=METHODS.get((spec.allocation_method or spec.schedule_strategy).casefold(), ""),
            strict_topology=spec.strict_topology,
            match_label_keys=spec.match_label_keys,
            evicts=REBALANCING.get(spec.rebalance.casefold()) == "Evict",
            problems=tuple(_problems(spec, selector)),
            remarks=tuple(_remarks(spec)),
        )

    @cached_property
    def selected(self) -> PodQuery:
        """The pods of the policy."""
        return PodQuery(frozenset((self.namespace,)), self.rule.selector, daemons=False)


def _problems(spec: WorkloadPolicySpec, selector: Selector | None) -> Iterator[str]:
    if not selectors.is_label_key(spec.topology_key):
        yield f"topologyKey {spec.topology_key!r} is not a label key" if spec.topology_key else "topologyKey is empty"
    if spec.label_selector is None:
        yield "labelSelector is missing"
    elif selector is None:
        yield "labelSelector has an invalid condition"
    elif not selector:
        yield "labelSelector is empty and would select every pod"
    yield from _allocation_problems(spec.allocation_policy)
    if spec.allocation_type.casefold() not in TYPES:
        yield f"allocationType {spec.allocation_type!r} is neither Required nor Preferred"
    for field, given in (("allocationMethod", spec.allocation_method), ("scheduleStrategy", spec.schedule_strategy)):
        if given.casefold() not in METHODS:
            yield f"{field} {given!r} is neither Balance nor Fill"
    if spec.rebalance.casefold() not in REBALANCING:
        yield f"rebalance {spec.rebalance!r} is neither Never nor Evict"
    for key in spec.match_label_keys:
        if not selectors.is_label_key(key):
            yield f"matchLabelKeys has {key!r}, which is not a label key"


def _allocation_problems(allocations: tuple[Allocation, ...]) -> Iterator[str]:
    if not allocations:
        yield "allocationPolicy lists no domain"
    if len(allocations) > MOST_DOMAINS:  # with the CRD of an earlier version
        yield f"allocationPolicy lists {len(allocations)} domains; {MOST_DOMAINS} or fewer are right"
        return
    texts = [each for each in allocations if isinstance(each.replicas, str)]
    for each in texts:
        if each.share is None:
            right = 'a number, or a percentage such as "30%" or "37.5%", is right'
            yield f"allocationPolicy has replicas {each.replicas!r} for {each.name!r}; {right}"
    if texts and len(texts) < len(allocations):
        yield "allocationPolicy has both numbers and percentages; choose one of them for all domains"
    if (whole := sum(each.share or 0 for each in texts)) > apportionment.WHOLE:
        yield f"the percentages of allocationPolicy add up to {_percent(whole)}, which is more than 100%"
    for each in allocations:
        if isinstance(each.replicas, int) and each.replicas < 0:
            yield f"allocationPolicy has {each.replicas} replicas for {each.name!r}"
    for name, times in Counter(each.name for each in allocations).items():
        if times > 1:
            yield f"allocationPolicy lists {name!r} {times} times"


def _weight(allocation: Allocation) -> int:
    """Return the number, or the share; 0 for what is a problem."""
    return allocation.replicas if isinstance(allocation.replicas, int) else allocation.share or 0


def _percent(share: int) -> str:
    return f"{share / 100:g}%"


def _remarks(spec: WorkloadPolicySpec) -> Iterator[str]:
    method, strategy = spec.allocation_method, spec.schedule_strategy
    if method and strategy and method.casefold() != strategy.casefold():
        yield f"allocationMethod {method} is used, scheduleStrategy {strategy} is ignored"
    shares = [each.share for each in spec.allocation_policy if each.share is not None]
    if shares and sum(shares) < apportionment.WHOLE:
        yield f"the percentages of allocationPolicy add up to {_percent(sum(shares))} only"
