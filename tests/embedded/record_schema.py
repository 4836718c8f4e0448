"""Reads the fields of every served kind from a real kube-apiserver and writes
`src/stowplan/embedded/schema/builtin_types.json`.

    python -m tests.embedded.record_schema

Names, types, defaults and patch keys are facts about the API; the sentences that describe them are left behind.
One line per type; a field is "type =default ~strategy:key @list:keys !", where all but the type may be missing:

    []core.v1.Container ~merge:name @map:name !    a list, merged by name, required
    []string @set                          a list whose items are owned one by one (a list is atomic otherwise)
    meta.v1.LabelSelector @atomic          an object that has one owner
    {}string                               a map
    core.v1.PodSpec ={}                    an object that is always there, though it may be empty
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.controlplane.api import Api
from tests.controlplane.plane import ControlPlane

TARGET = Path(__file__).parents[2] / "src" / "stowplan" / "embedded" / "schema" / "builtin_types.json"

SERVED = {
    "v1": "Binding ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod "
    "ReplicationController ResourceQuota Secret Service ServiceAccount",
    "apiextensions.k8s.io/v1": "CustomResourceDefinition",
    "apps/v1": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "authentication.k8s.io/v1": "SelfSubjectReview TokenRequest TokenReview",
    "authorization.k8s.io/v1": "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview "
    "SubjectAccessReview",
    "autoscaling/v1": "Scale",
    "autoscaling/v2": "HorizontalPodAutoscaler",
    "batch/v1": "CronJob Job",
    "coordination.k8s.io/v1": "Lease",
    "discovery.k8s.io/v1": "EndpointSlice",
    "events.k8s.io/v1": "Event",
    "networking.k8s.io/v1": "Ingress IngressClass NetworkPolicy",
    "policy/v1": "Eviction PodDisruptionBudget",
    "rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "resource.k8s.io/v1": "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
    "scheduling.k8s.io/v1": "PriorityClass",
    "storage.k8s.io/v1": "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment",
}
# Kinds that are no resource of their own stand in the documents of those that have them as a subresource.
FOUND_IN = {"authentication.k8s.io/v1": "v1", "autoscaling/v1": "apps/v1", "policy/v1": "v1"}
PREFIXES = ("io.k8s.api.", "io.k8s.apimachinery.pkg.apis.", "io.k8s.apiextensions-apiserver.pkg.apis.")
FORMATS = {"byte": "bytes", "date-time": "time", "int32": "int32", "int64": "int64"}
OPAQUE = {"Quantity": "quantity", "IntOrString": "int|string", "MicroTime": "microtime", "Time": "time"}


class Reader:
    """Collects types, beginning with the kinds and following what they refer to."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.types: dict[str, dict[str, str]] = {}
        self.kinds: dict[str, str] = {}

    def read(self, version: str, kinds: list[str]) -> None:
        schemas = self._schemas(version) | (self._schemas(FOUND_IN[version]) if version in FOUND_IN else {})
        for kind in kinds:
            self.kinds[f"{version}/{kind}"] = short(self._follow(schemas, _name_of(schemas, version, kind)))

    def _schemas(self, version: str) -> dict[str, Any]:
        path = f"/openapi/v3/{'apis' if '/' in version else 'api'}/{version}"
        found: dict[str, Any] = self._api.must("GET", path)["components"]["schemas"]
        return found

    def _follow(self, schemas: dict[str, Any], name: str) -> str:
        waiting = [name]
        while waiting:
            full = waiting.pop()
            if short(full) in self.types:
                continue
            required = schemas[full].get("required", ())
            fields = schemas[full].get("properties", {})
            self.types[short(full)] = {
                field: _written(schemas, found, field in required, waiting) for field, found in fields.items()
            }
        return name


def _name_of(schemas: dict[str, Any], version: str, kind: str) -> str:
    for name, schema in schemas.items():
        for known in schema.get("x-kubernetes-group-version-kind", ()):
            full = f"{known['group']}/{known['version']}".lstrip("/")
            if (full, known["kind"]) == (version, kind) and name.endswith(f".{kind}"):
                return name
    raise LookupError(f"{version} {kind} is in none of the documents")


def short(name: str) -> str:
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    return name


def _written(schemas: dict[str, Any], field: dict[str, Any], required: bool, waiting: list[str]) -> str:
    words = [_type(schemas, field, waiting)]
    if "default" in field:
        words.append("=" + json.dumps(field["default"]))
    if strategy := field.get("x-kubernetes-patch-strategy"):
        key = field.get("x-kubernetes-patch-merge-key", "")
        words.append(f"~{strategy}:{key}" if key else f"~{strategy}")
    if owned := _owned(schemas, field):
        words.append(f"@{owned}")
    return " ".join([*words, "!"] if required else words)


def _owned(schemas: dict[str, Any], field: dict[str, Any]) -> str:
    """How server-side apply divides a value among its owners, where it is not as usual."""
    (referred,) = field.get("allOf", [field])
    found = {**schemas.get(referred.get("$ref", "").rsplit("/", 1)[-1], {}), **field}
    if (kind := field.get("x-kubernetes-list-type", "atomic")) != "atomic":
        return ":".join([kind, *filter(None, [",".join(field.get("x-kubernetes-list-map-keys", ()))])])
    return "atomic" if found.get("x-kubernetes-map-type") == "atomic" else ""


def _type(schemas: dict[str, Any], field: dict[str, Any], waiting: list[str]) -> str:
    (referred,) = field.get("allOf", [field])
    if "$ref" in referred:
        return _referred(schemas, referred["$ref"].rsplit("/", 1)[-1], waiting)
    match field.get("type"):
        case "array":
            return "[]" + _type(schemas, field["items"], waiting)
        case "object" if "additionalProperties" in field:
            return "{}" + _type(schemas, field["additionalProperties"], waiting)
        case "string" | "integer" as plain:
            return FORMATS.get(field.get("format", ""), "int64" if plain == "integer" else plain)
        case "boolean" | "number" as plain:
            return str(plain)
        case _:
            return "any"


def _referred(schemas: dict[str, Any], name: str, waiting: list[str]) -> str:
    last = name.rsplit(".", 1)[-1]
    if last in OPAQUE:
        return OPAQUE[last]
    if "properties" not in schemas[name] or last == "JSONSchemaProps":  # which refers to itself
        return "any"
    waiting.append(name)
    return short(name)


def main() -> None:
    with ControlPlane(controller_manager=False, kwok=False) as plane:
        reader = Reader(plane.api())
        for version, kinds in SERVED.items():
            reader.read(version, kinds.split())
        lines = [f"  {json.dumps(name)}: {json.dumps(fields)}" for name, fields in sorted(reader.types.items())]
        kinds = json.dumps(reader.kinds, indent=2).replace("\n", "\n ")
        body = ",\n".join(lines)
        text = f'{{\n "kubernetes": "{plane.version}",\n "kinds": {kinds},\n "types": {{\n{body}\n }}\n}}\n'
    TARGET.write_text(text)


if __name__ == "__main__":
    main()
