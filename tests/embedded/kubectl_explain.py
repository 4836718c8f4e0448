"""`kubectl explain` in the embedded cluster and in a real one. The sentences differ, the fields do not."""

from __future__ import annotations

from tests.embedded.kubectl_features import Step

EXPLAIN = (
    Step("explain a kind", "explain pods"),
    Step("a field that is an object", "explain pod.spec.affinity.podAntiAffinity"),
    Step("a list of objects", "explain pod.spec.tolerations"),
    Step("a field that is plain", "explain pod.spec.priorityClassName"),
    Step("a map", "explain node.status.allocatable"),
    Step("all fields below", "explain deployment.spec.strategy --recursive"),
    Step("all fields of a kind", "explain poddisruptionbudget --recursive"),
    Step("by its group", "explain statefulsets --api-version=apps/v1"),
    Step("a kind of storage", "explain pvc.spec.resources"),
    Step("a quota", "explain resourcequota.spec"),
    Step("a budget's spec", "explain pdb.spec"),
    Step("a priority class", "explain priorityclass"),
    Step("a field that there is not", "explain pod.spec.nope", fails=True),
    Step("a kind that there is not", "explain nopes", fails=True),
)
