"""Changes of a WorkloadPolicy, or of how a pod belongs to it, that may let the pod in.

A number of a domain is raised to the smallest that helps, a further domain is listed, or the policy becomes a
preference. A pod that names a policy which does not exist, is invalid or does not select it gets another label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from stowplan.columns.nodes.views import Cluster
from stowplan.diagnosis.edits import Edit, Scale
from stowplan.diagnosis.patches import pointer
from stowplan.diagnosis.proposals import Proposal, proposal
from stowplan.diagnosis.rehearsing import Rehearsing
from stowplan.diagnosis.remedies.free_room import may_go
from stowplan.diagnosis.remedy import DeleteObject, ObjectChange, Operation, PatchObject
from stowplan.objects import selectors
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.objects.workload_policies import METHODS, REBALANCING, TYPES, WorkloadPolicy
from stowplan.plugins.nodes.workload_policy.naming import DOT, OWNERS, SLASH, named_by, policy_name

MOST_DOMAINS = 8  # that are proposed
MOST_PODS = 100  # of the policy, of which one or more are deleted
WORDS = {
    "allocationType": (TYPES, "allocation_type"),
    "allocationMethod": (METHODS, "allocation_method"),
    "scheduleStrategy": (METHODS, "schedule_strategy"),
    "rebalance": (REBALANCING, "rebalance"),
}


class WorkloadPolicyProposals:
    def __init__(self, trying: Rehearsing, pod: Pod) -> None:
        self._trying, self._pod, self._state = trying, pod, trying.state
        name = policy_name(pod, Cluster(trying.state))
        self._name = name if isinstance(name, str) else ""
        self._policies = {
            each.name: each
            for each in trying.state.store.every(WorkloadPolicy).values()
            if each.namespace == pod.namespace
        }
        self._key = f"{pod.namespace}/{self._name}"

    def all(self) -> Iterator[Proposal]:
        if not self._name:
            return
        policy = self._policies.get(self._name)
        yield from self._named()
        if policy is None:
            return
        yield from self._mended(policy)
        yield from self._selected(policy)
        if policy.rule.confines or policy.rule.problems:
            yield from self._preferred(policy)
        yield from self._numbers(policy)
        yield from self._domains(policy)
        yield from self._nodes(policy)
        yield from self._fewer_pods(policy)

    def _edit(self, code: str, text: str, *operations: Operation, scale: Scale | None = None, size: float = 0) -> Edit:
        return Edit(code, text, (PatchObject("WorkloadPolicy", self._key, operations),), size, scale)

    # -- which policy the pod has

    def _named(self) -> Iterator[Proposal]:
        """Another policy for the pod, or none: the label of the pod or of its owner is changed."""
        holder = self._label_holder()
        if holder is None:
            return
        kind, key, label = holder
        path = pointer("metadata", "labels", label)
        known = get_close_matches(self._name, [name for name in self._policies if name != self._name], n=2, cutoff=0.6)
        for name in known if self._name not in self._policies else ():
            text = f"correct the policy {self._name} in the label {label} to {name}"
            yield proposal(Edit("correct-policy", text, (PatchObject(kind, key, (Operation("replace", path, name),)),)))
        operations = [Operation("remove", pointer("metadata", "labels", each)) for each in self._labels_of(kind, key)]
        text = f"remove the label {label}: no policy for {kind} {key}"
        yield proposal(Edit("drop-policy", text, (PatchObject(kind, key, tuple(operations)),)))

    def _label_holder(self) -> tuple[str, str, str] | None:
        """The object whose label names the policy: kind, key and the label."""
        found: Object | None = self._pod
        kind, owner = "Pod", self._pod.controller()
        while found is not None:
            if named_by(found.labels):
                return kind, found.key, SLASH if found.labels.get(SLASH) else DOT
            if owner is None or owner.kind not in OWNERS:
                return None
            kind = owner.kind
            found = self._state.store.named(kind, f"{self._pod.namespace}/{owner.name}")
            owner = None if found is None else found.controller()
        return None

    def _labels_of(self, kind: str, key: str) -> list[str]:
        labels: Mapping[str, Any] = self._trying[kind, key]["metadata"].get("labels", {})
        return [each for each in (SLASH, DOT) if each in labels]

    # -- a policy that is invalid, or does not select the pod

    def _mended(self, policy: WorkloadPolicy) -> Iterator[Proposal]:
        for field, (words, name) in WORDS.items():
            given = getattr(policy.spec, name)
            if given.casefold() not in words:
                nearest = get_close_matches(given.casefold(), [word for word in words if word], n=1, cutoff=0.5)
                value = words[nearest[0]] if nearest else words[""]
                operation = Operation("replace", f"/spec/{field}", value)
                yield proposal(self._edit("mend-policy", f"correct {field} from {given} to {value}", operation))
        for at, each in enumerate(policy.spec.allocation_policy):
            path = pointer("spec", "allocationPolicy", at, "replicas")
            if isinstance(each.replicas, str) and each.share is None:
                yield proposal(self._edit("mend-policy", f"give {each.name} one pod", Operation("replace", path, 1)))
            elif isinstance(each.replicas, int) and each.replicas < 0:
                yield proposal(self._edit("mend-policy", f"give {each.name} no pod", Operation("replace", path, 0)))

    def _selected(self, policy: WorkloadPolicy) -> Iterator[Proposal]:
        given = policy.spec.label_selector
        if given is None or selectors.matches(policy.rule.selector, self._pod.labels):
            return
        wrong = {key: value for key, value in given.match_labels.items() if self._pod.labels.get(key) != value}
        if wrong:
            patch = tuple(Operation("add", pointer("metadata", "labels", key), value) for key, value in wrong.items())
            shown = ", ".join(f"{key}={value}" for key, value in wrong.items())
            change = PatchObject("Pod", self._pod.key, patch)
            yield proposal(Edit("label-pod", f"label the pod {shown}, as the policy selects its pods", (change,)))
        for key in wrong:
            path = pointer("spec", "labelSelector", "matchLabels", key)
            text = f"drop {key}={given.match_labels[key]} from the policy's labelSelector"
            yield proposal(self._edit("policy-selector", text, Operation("remove", path)))
            if key in self._pod.labels:
                value = self._pod.labels[key]
                text = f"let the policy select {key}={value}"
                yield proposal(self._edit("policy-selector", text, Operation("replace", path, value)))

    # -- what the policy demands

    def _preferred(self, policy: WorkloadPolicy) -> Iterator[Proposal]:
        operations = []
        if policy.rule.required:
            operations.append(Operation("add", "/spec/allocationType", "Preferred"))
        if policy.spec.strict_topology:
            operations.append(Operation("add", "/spec/strictTopology", False))
        text = f"let the policy {self._name} be a preference"
        if operations:
            yield Proposal(lambda some: self._edit("prefer-policy", text, *some), tuple(operations))

    def _numbers(self, policy: WorkloadPolicy) -> Iterator[Proposal]:
        most = len(self._state.pods) + 2
        for at, each in enumerate(policy.spec.allocation_policy[:MOST_DOMAINS]):
            if isinstance(each.replicas, int):
                yield proposal(self._with_number(at, each.name, max(most, each.replicas + 1), each.replicas))
            elif each.share is not None:
                others = sum(other.share or 0 for other in policy.spec.allocation_policy if other is not each)
                if 10_000 - others > each.share:
                    yield proposal(self._with_share(at, each.name, 10_000 - others, each.share))

    def _with_number(self, at: int, domain: str, number: int, before: int) -> Edit:
        return self._edit(
            "raise-policy",
            f"raise the number of {domain} in the policy {self._name} from {before} to {number}",
            Operation("replace", pointer("spec", "allocationPolicy", at, "replicas"), number),
            scale=Scale(number, before, -1, lambda other: self._with_number(at, domain, other, before)),
            size=number - before,
        )

    def _with_share(self, at: int, domain: str, share: int, before: int) -> Edit:
        return self._edit(
            "raise-policy",
            f"raise the share of {domain} in the policy {self._name} from {before / 100:g}% to {share / 100:g}%",
            Operation("replace", pointer("spec", "allocationPolicy", at, "replicas"), f"{share / 100:g}%"),
            scale=Scale(share, before, -1, lambda other: self._with_share(at, domain, other, before)),
            size=share - before,
        )

    def _domains(self, policy: WorkloadPolicy) -> Iterator[Proposal]:
        """Domains of nodes that the policy does not list."""
        nodes = [node for node in self._state.table.nodes if node is not None]
        there = dict.fromkeys(node.labels.get(policy.spec.topology_key, "") for node in nodes)
        listed = {each.name for each in policy.spec.allocation_policy}
        for name in [each for each in there if each and each not in listed][:MOST_DOMAINS]:
            if policy.rule.by_shares:
                left = 10_000 - sum(each.share or 0 for each in policy.spec.allocation_policy)
                if left > 0:
                    yield proposal(self._listing(name, f"{left / 100:g}%"))
            else:
                yield proposal(self._listing(name, len(self._state.pods) + 2))

    def _listing(self, domain: str, number: int | str) -> Edit:
        value = {"name": domain, "replicas": number}
        scale = Scale(number, -1, -1, lambda other: self._listing(domain, other)) if isinstance(number, int) else None
        text = f"list {domain} in the policy {self._name} with {number}"
        size = number if isinstance(number, int) else 0
        return self._edit(
            "list-domain", text, Operation("add", "/spec/allocationPolicy/-", value), scale=scale, size=size
        )

    def _nodes(self, policy: WorkloadPolicy) -> Iterator[Proposal]:
        """Nodes without the topology key get the label of a listed domain."""
        key = policy.spec.topology_key
        without = [node.name for node in self._state.table.nodes if node is not None and key not in node.labels]
        for each in policy.spec.allocation_policy[:MOST_DOMAINS] if selectors.is_label_key(key) else ():

            def make(names: tuple[Any, ...], domain: str = each.name) -> Edit:
                operation = Operation("add", pointer("metadata", "labels", key), domain)
                changes = tuple(PatchObject("Node", name, (operation,)) for name in names)
                return Edit("label-node", f"label {', '.join(names)} {key}={domain}", changes, len(names))

            if without:
                yield Proposal(make, tuple(without))

    def _fewer_pods(self, policy: WorkloadPolicy) -> Iterator[Proposal]:
        """Pods of the policy that go: their places are free then."""
        if policy.rule.problems:
            return
        pods = [
            each.pod.key
            for each in self._state.pods.values()
            if each.pod.namespace == self._pod.namespace
            and selectors.matches(policy.rule.selector, each.pod.labels)
            and may_go(each.pod)
        ]

        def make(keys: tuple[Any, ...]) -> Edit:
            changes: tuple[ObjectChange, ...] = tuple(DeleteObject("Pod", key) for key in keys)
            return Edit("scale-down", f"delete {', '.join(keys[:3])} of the policy {self._name}", changes, len(keys))

        if pods:
            yield Proposal(make, tuple(sorted(pods)[:MOST_PODS]))
