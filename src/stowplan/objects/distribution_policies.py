"""Kosmos' DistributionPolicy and ClusterDistributionPolicy: which pods may have which sort of nodes."""

from __future__ import annotations

from stowplan.objects import selectors
from stowplan.objects.meta import ApiValue, Object
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import LabelSelector
from stowplan.objects.taints import Toleration

BY_LABELS, BY_PREFIX, BY_NAME = 1, 2, 3


class PodSelector(ApiValue, frozen=True):
    """Selects pods by their name, the beginning of it, or labels, for the term `policyName`."""

    policy_name: str = ""
    name: str = ""
    name_prefix: str = ""
    label_selector: LabelSelector | None = None

    def rank(self, pod: Pod) -> int:
        """Return how exactly the pod is selected; 0: not at all."""
        if self.name and self.name == pod.name:
            return BY_NAME
        if self.name_prefix and pod.name.startswith(self.name_prefix):
            return BY_PREFIX
        compiled = selectors.compile_selector(self.label_selector)
        return BY_LABELS if compiled and selectors.matches(compiled, pod.labels) else 0


class AdvancedTerm(ApiValue, frozen=True):
    node_name: str = ""
    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()


class PolicyTerm(ApiValue, frozen=True):
    name: str = ""
    node_type: str = "mix"
    advanced_term: AdvancedTerm = AdvancedTerm()


class DistributionSpec(ApiValue, frozen=True):
    resource_selectors: tuple[PodSelector, ...] = ()
    policy_terms: tuple[PolicyTerm, ...] = ()


class DistributionPolicy(Object, frozen=True):
    spec: DistributionSpec = DistributionSpec()


class ClusterDistributionPolicy(Object, frozen=True):
    spec: DistributionSpec = DistributionSpec()
