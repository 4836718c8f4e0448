"""Discovery: groups, versions and resources, one by one or aggregated."""

from __future__ import annotations

from stowplan.embedded.documents import Document
from stowplan.embedded.resources import STATUS, ResourceCatalogue, ServedResource
from stowplan.embedded.schema import builtin_types

AGGREGATED = "APIGroupDiscoveryList"
_BELOW: dict[str, tuple[tuple[str, ...], Document]] = {
    "status": (STATUS, {}),
    "scale": (STATUS, {"group": "autoscaling", "version": "v1", "kind": "Scale"}),
    "binding": (("create",), {"kind": "Binding"}),
    "eviction": (("create",), {"group": "policy", "version": "v1", "kind": "Eviction"}),
    "finalize": (("update",), {}),
    "token": (("create",), {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"}),
}
# `kubectl top` asks for metrics only if the group is there; without resources nothing else sees it.
METRICS, METRICS_VERSION = "metrics.k8s.io", "v1beta1"
_METRICS = {"groupVersion": f"{METRICS}/{METRICS_VERSION}", "version": METRICS_VERSION}
_METRICS_LIST: Document = {"groupVersion": f"{METRICS}/{METRICS_VERSION}", "resources": []}
PATHS = ("/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version")


def answer(path: str, catalogue: ResourceCatalogue, kind: str, address: str) -> Document | None:
    """The response for a path of discovery; None for any other path."""
    parts = path.strip("/").split("/")
    match parts:
        case [""]:
            return {"paths": [*PATHS, *(f"/apis/{group}" for group in catalogue.groups() if group)]}
        case ["version"]:
            return version()
        case ["api"] | ["apis"] if kind == AGGREGATED:
            return _aggregated(
                [group for group in catalogue.groups() if bool(group) == (path[:5] == "/apis")], catalogue
            )
        case ["api"]:
            here = {"clientCIDR": "0.0.0.0/0", "serverAddress": address}
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [here]}
        case ["apis"]:
            groups = [_group(group, catalogue) for group in catalogue.groups() if group]
            groups.append({"name": METRICS, "versions": [_METRICS], "preferredVersion": _METRICS})
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["apis", "metrics.k8s.io", "v1beta1"]:
            return {"kind": "APIResourceList", "apiVersion": "v1", **_METRICS_LIST}
        case ["apis", group] if group in catalogue.groups():
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, catalogue)}
        case ["api", number] if catalogue.serves("", number):
            return _resources("", number, catalogue)
        case ["apis", group, number] if catalogue.serves(group, number):
            return _resources(group, number, catalogue)
        case _:
            return None


def version() -> Document:
    number = builtin_types.version()
    major, minor, *_ = number.split(".")
    return {
        "major": major, "minor": minor, "gitVersion": f"v{number}+stowplan", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "", "platform": "linux/amd64",
    }  # fmt: skip


def _group(group: str, catalogue: ResourceCatalogue) -> Document:
    versions = [{"groupVersion": f"{group}/{each}", "version": each} for each in catalogue.versions(group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resources(group: str, number: str, catalogue: ResourceCatalogue) -> Document:
    listed = [entry for resource in catalogue.served(group, number) for entry in _entries(resource)]
    full = f"{group}/{number}" if group else number
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": full, "resources": listed}


def _entries(resource: ServedResource) -> list[Document]:
    entry: Document = {
        "name": resource.plural, "singularName": resource.singular_name, "namespaced": resource.namespaced,
        "kind": resource.kind, "verbs": list(resource.verbs),
    }  # fmt: skip
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    below = []
    for name in resource.subresources:
        verbs, kind = _BELOW[name]
        one = {"name": f"{resource.plural}/{name}", "singularName": "", "namespaced": resource.namespaced}
        below.append({**one, "kind": resource.kind, **kind, "verbs": list(verbs)})
    return [entry, *below]


def _aggregated(groups: list[str], catalogue: ResourceCatalogue) -> Document:
    items = []
    for group in groups:
        versions = [
            {
                "version": number,
                "resources": [_whole(each) for each in catalogue.served(group, number)],
                "freshness": "Current",
            }
            for number in catalogue.versions(group)
        ]
        items.append({"metadata": {"name": group} if group else {}, "versions": versions})
    if groups != [""]:
        empty = {"version": METRICS_VERSION, "resources": [], "freshness": "Current"}
        items.append({"metadata": {"name": METRICS}, "versions": [empty]})
    return {"kind": AGGREGATED, "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _whole(resource: ServedResource) -> Document:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    entry: Document = {
        "resource": resource.plural, "responseKind": kind, "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular_name, "verbs": list(resource.verbs),
    }  # fmt: skip
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = [
            {"subresource": name, "responseKind": {**kind, **_BELOW[name][1]}, "verbs": list(_BELOW[name][0])}
            for name in resource.subresources
        ]
    return entry
