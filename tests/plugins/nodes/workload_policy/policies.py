"""WorkloadPolicies for tests, with nodes and pods that they are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stowplan.objects import kinds
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.workload_policies import WorkloadPolicy
from stowplan.objects.workloads import Deployment, ReplicaSet, StatefulSet
from stowplan.testing.builders import a_node, a_pod

SLASH, DOT = "workload-policy/kosmos.io", "workload-policy.kosmos.io"
APP = {"matchLabels": {"app": "x"}}
OWNERS = {"ReplicaSet": ReplicaSet, "Deployment": Deployment, "StatefulSet": StatefulSet}


def a_policy(
    domains: Mapping[str, int] | Mapping[str, str] | None = None, *, name: str = "policy", namespace: str = "default",
    generation: int = 1, **spec: Any,
) -> WorkloadPolicy:  # fmt: skip
    """Zones a and b with two pods each, of those with `app: x`; `spec` takes any field in the API's spelling."""
    listed = [{"name": each, "replicas": number} for each, number in (domains or {"a": 2, "b": 2}).items()]
    given = {"topologyKey": "zone", "labelSelector": APP, "allocationPolicy": listed, **spec}
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-of-{name}", "generation": generation}
    return kinds.convert(WorkloadPolicy, {"metadata": metadata, "spec": given})


def a_member(name: str = "incoming", *, policy: str = "policy", key: str = SLASH, **keywords: Any) -> Pod:
    """A pod that names a policy, which selects it."""
    labels = {"app": "x", **({key: policy} if policy else {}), **keywords.pop("labels", {})}
    return a_pod(name, labels=labels, **keywords)


def zoned(*names: str, **keywords: Any) -> list[Node]:
    """Nodes whose zone is the first letter of their name; of `-` and what follows there is no zone."""
    return [a_node(name, labels={} if name[0] == "-" else {"zone": name[0]}, **keywords) for name in names]


def placed(*nodes: str, **keywords: Any) -> list[Pod]:
    """Pods of the policy on these nodes."""
    return [a_member(f"p{number}", node=node, **keywords) for number, node in enumerate(nodes)]


def an_owner(
    kind: str, name: str, *, policy: str = "", key: str = SLASH, of: tuple[str, str] | None = None,
    namespace: str = "default",
) -> Any:  # fmt: skip
    """A ReplicaSet, Deployment or StatefulSet, perhaps with a policy's label, perhaps owned itself."""
    owners = [] if of is None else [reference(*of)]
    metadata = {
        "name": name, "namespace": namespace, "uid": f"uid-of-{name}", "labels": {key: policy} if policy else {},
        "ownerReferences": owners,
    }  # fmt: skip
    return kinds.convert(OWNERS[kind], {"metadata": metadata})


def reference(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-of-{name}", "controller": True}
