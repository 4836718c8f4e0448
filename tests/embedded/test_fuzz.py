"""Thousands of odd requests: each is answered as Kubernetes would, and none of them with 500."""

from __future__ import annotations

import copy
import http.client
import json
import random
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import yaml

from stowplan.embedded.resources import BUILT_IN
from tests.embedded import kubectl_manifests as script
from tests.embedded.controllers.workloads import FAST, JOB, SET
from tests.embedded.running import served

KINDS = [yaml.safe_load(text) for text in (*script.WEB.split("---"), script.LONE, script.DEFINITION, script.WIDGET,
                                           JOB, SET, FAST)] + [
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4", "pods": "10"}}},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}},
    {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "np"},
     "spec": {"podSelector": {}, "egress": [{"ports": [{"port": 443}], "to": [{"podSelector": {}}]}]}},
    {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "pvc"},
     "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"},
     "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/"}}},
    {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}},
    {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}},
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p"}, "value": 3},
    {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "ds"},
     "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
         "containers": [{"name": "c", "image": "x"}]}}}},
    {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "cj"}, "spec": {
        "schedule": "@every 1s", "timeZone": "UTC", "concurrencyPolicy": "Replace", "startingDeadlineSeconds": 9,
        "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}}}}, "status": {"active": [{}]}},
    {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "rq"}, "spec": {"hard": {"pods": "50"}}},
    {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "lr"},
     "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}]}},
    {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": {
        "scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 3, "minReplicas": 1, "metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization",
                                                                        "averageUtilization": 5}}}],
        "behavior": {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 5}]}}}},
    {"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": "ic"},
     "spec": {"controller": "example.io/x", "parameters": {"kind": "K", "name": "n"}}},
    {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}, "spec": {"rules": [
        {"host": "a.example", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {
            "service": {"name": "s", "port": {"number": 80}}}}]}}]}, "status": {"loadBalancer": {"ingress": [{}]}}},
    {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "ep"},
     "subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]},
    {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "es"}, "addressType": "IPv4",
     "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 80}]},
    *(
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": "r"},
         "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["x"]}]}
        for kind in ("Role", "ClusterRole")
    ),
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
     "metadata": {"name": "x", "labels": {"a": "b"}},
     "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}},
                                                  {"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}},
    *(
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": "b"},
         "roleRef": {"kind": "ClusterRole", "name": "r"},
         "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"},
                      {"kind": "User", "name": "u"}]}
        for kind in ("RoleBinding", "ClusterRoleBinding")
    ),
    {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "cr"}, "data": {}, "revision": 3},
    *(
        {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "metadata": {"name": "r"},
         "spec": {"user": "u", field: {"verb": "get", "path": "/x", "resource": "pods", "namespace": "default"}}}
        for kind in ("SubjectAccessReview", "LocalSubjectAccessReview", "SelfSubjectAccessReview")
        for field in ("resourceAttributes", "nonResourceAttributes")
    ),
    {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "metadata": {"name": "r"},
     "spec": {"namespace": "default"}},
    {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": {"name": "t"},
     "spec": {"token": "x", "audiences": ["a"]}},
    {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {"name": "s"}},
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa"}, "secrets": [{"name": "s"}]},
    {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {"name": "sa"},
     "spec": {"audiences": ["a"], "expirationSeconds": 900,
              "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "lone"}}},
    *(
        {"apiVersion": version, "kind": kind, "metadata": {"name": "rs"}, "spec": {
            "replicas": 1, "selector": selector, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
                "containers": [{"name": "c", "image": "x"}]}}}}
        for version, kind, selector in (("v1", "ReplicationController", {"a": "b"}),
                                        ("apps/v1", "ReplicaSet", {"matchLabels": {"a": "b"}}))
    ),
    {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "d"},
     "spec": {"podInfoOnMount": True}},
    {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n"},
     "spec": {"drivers": [{"name": "d", "nodeID": "n", "allocatable": {"count": 3}}]}},
    {"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "metadata": {"name": "csc"},
     "storageClassName": "fast", "capacity": "1Gi", "nodeTopology": {"matchLabels": {"a": "b"}}},
    {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "va"},
     "spec": {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "dc"},
     "spec": {"selectors": [{"cel": {"expression": "true"}}]}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "rc"},
     "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "dc"}}]}}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "rct"},
     "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "dc"}}]}}}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "rsl"},
     "spec": {"driver": "d", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
              "devices": [{"name": "gpu-0"}]}},
    {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "R", "action": "A",
     "type": "Normal", "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "x",
     "reportingInstance": "x", "regarding": {"kind": "Pod", "namespace": "default", "name": "lone"}},
]  # fmt: skip
PLURALS = {
    "NetworkPolicy": "networkpolicies", "StorageClass": "storageclasses", "PriorityClass": "priorityclasses",
    "PodDisruptionBudget": "poddisruptionbudgets", "Ingress": "ingresses", "IngressClass": "ingressclasses",
    "Endpoints": "endpoints", "CSIStorageCapacity": "csistoragecapacities", "DeviceClass": "deviceclasses",
}  # fmt: skip
CLUSTER_WIDE = (
    "Node", "Namespace", "PersistentVolume", "StorageClass", "PriorityClass", "CustomResourceDefinition", "ClusterRole",
    "ClusterRoleBinding", "IngressClass", "SubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview",
    "TokenReview", "SelfSubjectReview", "CSIDriver", "CSINode", "VolumeAttachment", "DeviceClass", "ResourceSlice",
)  # fmt: skip
JUNK: list[Any] = [
    None, 0, -1, 1 << 40, 1.5, True, "", "x", "ä\n", "A" * 300, "5%", "-1", [], {}, [None], [[]], {"a": None},
    {"": ""}, [{}], "2020-01-01T00:00:00Z", "n", {"matchLabels": {"a": 1}}, [{"name": "c"}], "$patch",
    {"$patch": "delete"}, {"$retainKeys": 3}, "100", "1Gi",
]  # fmt: skip
MEDIA = [
    "application/json", "application/json", "application/json", "application/yaml", "text/plain", "",
    "application/vnd.kubernetes.protobuf", "application/json; charset=utf-8",
]  # fmt: skip
PATCHES = [
    "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json",
    "application/apply-patch+yaml", "application/json",
]  # fmt: skip
ACCEPTS = [
    "", "application/json", "*/*", "application/json;as=Table;v=v1;g=meta.k8s.io", "application/yaml", "x/y",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", ";;=,=", "application/json;as",
]  # fmt: skip
SENDERS = ["", "Bearer", "Bearer x", "Bearer a.b.c", "Bearer ä", "Basic eDp4", "Bearer \xff"]
IMPERSONATIONS = ["Impersonate-User", "Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-a%2Fb"]
QUERIES = {
    "labelSelector": ["a=b", "a in (b", "!a", "a>1", "ä", "a=b,c"],
    "fieldSelector": ["metadata.name=x", "spec.nodeName=n", "nope=1", "metadata.name"],
    "limit": ["1", "0", "-5", "x", "99999999999999999999"],
    "continue": ["x", "eyJsaXN0IjoxLCJzdGFydCI6MX0", "e30"],
    "resourceVersion": ["0", "1", "x", "-1", "999999999", "²"],
    "resourceVersionMatch": ["NotOlderThan", "Exact", "x"],
    "watch": ["1", "x", ""],
    "sendInitialEvents": ["true", "x"],
    "timeoutSeconds": ["1", "x"],
    "fieldManager": ["one", "two", "x" * 200],
    "force": ["true", "false"],
    "dryRun": ["All", "x"],
    "fieldValidation": ["Strict", "Ignore", "x"],
    "gracePeriodSeconds": ["0", "x", "-3"],
    "propagationPolicy": ["Foreground", "Orphan", "Background", "x"],
    "includeObject": ["None", "Object", "x"],
    "pretty": ["true"],
}


class Fuzzer:
    def __init__(self, seed: int) -> None:
        self.generator = random.Random(seed)

    def mutated(self, document: Any, depth: int = 0) -> Any:
        """Some part of it replaced, removed, or doubled."""
        if depth > 8 or self.generator.random() < 0.15:
            return copy.deepcopy(self.generator.choice(JUNK))
        if isinstance(document, dict) and document:
            key = self.generator.choice(list(document))
            if self.generator.random() < 0.1:
                return {name: value for name, value in document.items() if name != key}
            if self.generator.random() < 0.1:
                return {
                    **document,
                    self.generator.choice(["status", "extra", "metadata", key]): self.generator.choice(JUNK),
                }
            return {**document, key: self.mutated(document[key], depth + 1)}
        if isinstance(document, list) and document:
            return [self.mutated(document[0], depth + 1), *document]
        return copy.deepcopy(self.generator.choice(JUNK))

    def base(self) -> dict[str, Any]:
        found: dict[str, Any] = copy.deepcopy(self.generator.choice(KINDS))
        if self.generator.random() < 0.5:
            found["metadata"]["name"] = self.generator.choice(["x", "y", "z", "n"])
        return found

    def document(self, base: dict[str, Any]) -> Any:
        found: Any = base
        for _ in range(self.generator.choice([0, 0, 1, 1, 2, 4])):
            found = self.mutated(found)
        return found

    def path(self, kind: dict[str, Any], method: str) -> str:
        namespace = self.generator.choice(["default"] * 20 + ["none", "ns"])
        name = kind["metadata"]["name"]
        known = name if self.generator.random() < 0.8 else self.generator.choice(["x", "y", "z", "n", "ä", "a/b"])
        below = self.generator.choice(["", "", "", "", "", "/status", "/status", "/scale", "/nope"])
        if kind["kind"] in ("Pod", "Namespace") and self.generator.random() < 0.3:
            below = self.generator.choice(["/binding", "/eviction", "/finalize"])
        tail = "" if self.generator.random() < (0.9 if method == "POST" else 0.1) else f"/{known}{below}"
        odd = ["/", "/api", "/apis", "/openapi/v3", "/openapi/v3/api/v1", "/version", "/apis//", "//", "/api/v1//pods"]
        return self.generator.choice(odd) if self.generator.random() < 0.04 else self.collection(kind, namespace) + tail

    def query(self, method: str) -> str:
        names = [name for name in QUERIES if self.generator.random() < 0.07]
        found = {name: self.generator.choice(QUERIES[name]) for name in names}
        if "watch" in found and method == "GET":
            found["timeoutSeconds"] = "1"
            found["resourceVersion"] = self.generator.choice(["x", "999999999"])  # those that are answered at once
        return urlencode(found)

    def beginning(self) -> Iterator[tuple[str, str, bytes, dict[str, str]]]:
        """Something of everything, so that there is something to break."""
        for kind in KINDS:
            for name in (kind["metadata"]["name"], "x", "y", "n"):
                document = {**kind, "metadata": {**kind["metadata"], "name": name}}
                yield (
                    "POST",
                    self.collection(kind, "default"),
                    json.dumps(document).encode(),
                    {"Content-Type": MEDIA[0]},
                )

    def collection(self, kind: dict[str, Any], namespace: str) -> str:
        if kind["kind"] == "TokenRequest":
            return f"/api/v1/namespaces/{namespace}/serviceaccounts/{kind['metadata']['name']}/token"
        version = str(kind["apiVersion"])
        plural = PLURALS.get(kind["kind"], kind["kind"].lower() + "s")
        within = "" if kind["kind"] in CLUSTER_WIDE else f"/namespaces/{namespace}"
        return (f"/apis/{version}" if "/" in version else f"/api/{version}") + f"{within}/{plural}"

    def sender(self, token: str) -> dict[str, str]:
        """Headers of authentication, of the administrator more often than not."""
        found = {"Authorization": self.generator.choice([f"Bearer {token}"] * 8 + SENDERS)}
        if self.generator.random() < 0.2:
            found |= {self.generator.choice(IMPERSONATIONS): self.generator.choice(["x", "ä", "\xff", "system:node:n"])}
        return found

    def request(self) -> tuple[str, str, bytes, dict[str, str]]:
        base = self.base()
        document = self.document(base)
        method = self.generator.choice(
            ["POST"] * 5 + ["PUT", "PUT", "PATCH", "PATCH", "PATCH", "GET", "GET", "DELETE", "PROPFIND"]
        )
        kind = self.generator.choice(PATCHES if method == "PATCH" else MEDIA)
        body: Any = document
        if kind == "application/json-patch+json":
            operation = self.generator.choice(["add", "remove", "replace", "test", "move", "copy", "nope"])
            pointer = self.generator.choice(
                ["/metadata/labels", "/spec/replicas", "/spec/containers/0", "", "/x/y", "x", "/spec"]
            )
            value = self.generator.choice(JUNK)
            body = [{"op": operation, "path": pointer, "from": "/metadata/name", "value": value}]
        data = json.dumps(body).encode() if body is not None and method not in ("GET",) else b""
        if self.generator.random() < 0.04:
            data = data[: self.generator.randrange(len(data) + 1)] + self.generator.randbytes(3)
        path = quote(self.path(base, method), safe="/")
        query = self.query(method)
        headers = {
            "Content-Type": kind,
            "Accept": self.generator.choice(ACCEPTS) if self.generator.random() < 0.2 else "",
        }
        return method, f"{path}?{query}" if query else path, data, headers


def run(seed: int, requests: int, *, rbac: bool = False) -> dict[int, int]:
    fuzzer, statuses = Fuzzer(seed), dict[int, int]()
    with served(seed=seed, rbac=rbac) as cluster:
        connection: http.client.HTTPConnection
        if rbac:
            trust = ssl.create_default_context(cadata=cluster.certificate.decode())
            connection = http.client.HTTPSConnection(cluster.url.removeprefix("https://"), timeout=120, context=trust)
        else:
            connection = http.client.HTTPConnection(cluster.url.removeprefix("http://"), timeout=120)
        token = yaml.safe_load(cluster.kubeconfig())["users"][0]["user"].get("token", "")
        for method, path, body, headers in (*fuzzer.beginning(), *(fuzzer.request() for _ in range(requests))):
            headers |= fuzzer.sender(token) if rbac else {}
            connection.request(method, path, body, {name: value for name, value in headers.items() if value})
            answer = connection.getresponse()
            text = answer.read()
            statuses[answer.status] = statuses.get(answer.status, 0) + 1
            assert answer.status < 500 or answer.status == 504, (method, path, body, headers, text)
            if answer.status >= 400 and "json" in answer.headers["Content-Type"]:
                assert json.loads(text)["code"] == answer.status
        connection.close()
    return statuses


def test_every_kind_is_in_it() -> None:
    """Custom resources have one for all: the server treats them alike."""
    known = {(str(kind["apiVersion"]), kind["kind"]) for kind in KINDS}
    missing = [resource for resource in BUILT_IN if (resource.api_version, resource.kind) not in known]
    assert missing == []


def test_odd_requests_with_rbac() -> None:
    statuses = run(seed=1, requests=300, rbac=True)
    assert {200, 201, 400, 401, 403, 404, 409, 422} <= statuses.keys()


def test_odd_requests() -> None:
    statuses = run(seed=1, requests=500)
    assert {200, 201, 400, 404, 405, 409, 415, 422} <= statuses.keys()


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 12))
def test_very_many_odd_requests(seed: int) -> None:
    run(seed, requests=1000)
