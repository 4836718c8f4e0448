"""Templates: what a stream creates by name. Pods, PodTemplates, and workloads that make pods.

    templates = Templates()
    templates.add(document)                          # by metadata.name
    templates.made("web", "web-7", namespace="shop") # a document for the API server

A Pod, or a PodTemplate, becomes `count` pods; a Deployment, ReplicaSet or StatefulSet one object with so many replicas,
a Job one object with so many completions in parallel. Their controllers make the pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stowplan.framework.config.document import suggestion
from stowplan.objects.errors import ConfigError
from stowplan.simulation.pod_outcome import OWNER

Document = dict[str, Any]

WORKLOADS = {
    "Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1",
    "ReplicationController": "v1",
}  # fmt: skip
PODS = ("Pod", "PodTemplate")
KINDS = (*PODS, *WORKLOADS)
_CONTAINER = {"name": "main", "image": "simulated"}


class Templates:
    """Templates by name. `scheduler_names`: the profiles of the run; a pod for another one can never get a node.

    templates = Templates(("default-scheduler",))
    templates.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "small"}, ...})
    """

    def __init__(self, scheduler_names: tuple[str, ...] = ()) -> None:
        self._found: dict[str, Document] = {}
        self._scheduler_names = scheduler_names
        self.scheduler_name = next(iter(scheduler_names), "default-scheduler")  # of pods without a template
        self._plain: Document = {
            "kind": "Pod",
            "spec": {"schedulerName": self.scheduler_name, "containers": [_CONTAINER]},
        }

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def add(self, document: Mapping[str, Any], *, file: str = "", path: str = "") -> None:
        """Take in a template. Raises ConfigError for a kind that is none, for a second one of a name, and for pods that
        no profile of the run serves.
        """
        kind, metadata = document.get("kind"), document.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        where = path or f"{kind} {name or ''}".strip()
        if kind not in KINDS:
            raise ConfigError(f"found {kind}, expected one of {', '.join(KINDS)}", file=file, path=where)
        if not isinstance(name, str) or not name:
            raise ConfigError("a template needs metadata.name", file=file, path=where)
        if name in self._found:
            raise ConfigError(f"the name {name} appears twice", file=file, path=where)
        _check_metadata(document, file, where)
        self._check_scheduler(document, file, where)
        self._found[name] = dict(document)

    def _check_scheduler(self, document: Mapping[str, Any], file: str, where: str) -> None:
        spec = pod_spec(document)
        if not isinstance(spec, dict):
            raise ConfigError("found no spec of a pod", file=file, path=where)
        check_scheduler(spec, self._scheduler_names, file, where)

    def made(
        self, name: str, created: str, *, namespace: str = "default", count: int = 1, owner: str = "",
        requests: Mapping[str, str] | None = None,
    ) -> Iterator[Document]:  # fmt: skip
        """Yield the documents for `count` pods of a template; their names start with `created`.

        Without a name of a template: plain pods with one container.
        """
        template = self._found.get(name) if name else self._plain
        if template is None:
            known = ", ".join(sorted(self._found)) or "none"
            remedy = suggestion(name, self._found) or f"known templates: {known}"
            raise ConfigError(f"no template is named {name!r}", remedy=remedy)
        if template["kind"] in WORKLOADS:
            yield _workload(template, created, namespace, count, owner, requests or {})
            return
        for number in range(count):
            yield _pod(template, f"{created}-{number}" if count > 1 else created, namespace, owner, requests or {})


def pod_spec(document: Mapping[str, Any]) -> Any:
    """Return the spec of the pods of a template; None if it has none."""
    if document.get("kind") == "Pod":
        return document.get("spec")
    inner = document if document.get("kind") == "PodTemplate" else document.get("spec")
    found = inner.get("template") if isinstance(inner, dict) else None
    return found.get("spec") if isinstance(found, dict) else None


def _check_metadata(document: Mapping[str, Any], file: str, where: str) -> None:
    """Raise ConfigError for labels or annotations, of a template or of its pods, that are no mappings."""
    parts = [document, document.get("template"), document.get("spec")]
    parts += [each.get("template") for each in parts if isinstance(each, dict)]
    for part in parts:
        metadata = part.get("metadata") if isinstance(part, dict) else None
        if metadata is not None and not isinstance(metadata, dict):
            raise ConfigError(f"metadata is {metadata!r}, expected a mapping", file=file, path=where)
        for name in ("labels", "annotations"):
            found = (metadata or {}).get(name)
            if found is not None and not isinstance(found, dict):
                raise ConfigError(f"metadata.{name} is {found!r}, expected a mapping", file=file, path=where)


def check_scheduler(spec: Mapping[str, Any], scheduler_names: tuple[str, ...], file: str, where: str) -> None:
    """Raise ConfigError for a pod that no profile of the run serves."""
    scheduler = spec.get("schedulerName") or "default-scheduler"
    if scheduler_names and scheduler not in scheduler_names:
        remedy = f"use one of {', '.join(scheduler_names)}, or give a --config with a profile for it"
        raise ConfigError(f"no profile has the schedulerName {scheduler!r}", file=file, path=where, remedy=remedy)


def _pod(template: Document, name: str, namespace: str, owner: str, requests: Mapping[str, str]) -> Document:
    inner = template if template["kind"] == "Pod" else template["template"]
    metadata = _metadata(inner.get("metadata") or {}, name, namespace, owner)
    spec = {key: value for key, value in inner["spec"].items() if key != "nodeName"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": with_requests(spec, requests)}


def _workload(
    template: Document, name: str, namespace: str, count: int, owner: str, requests: Mapping[str, str]
) -> Document:
    kind, spec = template["kind"], dict(template["spec"])
    if kind == "Job":
        spec |= {"completions": count, "parallelism": spec.get("parallelism", count)}
    else:
        spec["replicas"] = count
    inner = dict(spec["template"])
    if owner:
        inner["metadata"] = _owned(inner.get("metadata") or {}, owner)
    inner["spec"] = with_requests(inner["spec"], requests)
    metadata = _metadata(template["metadata"], name, namespace, "")
    version = template.get("apiVersion") or WORKLOADS[kind]
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {**spec, "template": inner}}


def _metadata(found: Document, name: str, namespace: str, owner: str) -> Document:
    kept = {key: found[key] for key in ("labels", "annotations") if found.get(key)}
    return _owned({**kept, "name": name, "namespace": namespace}, owner)


def _owned(metadata: Document, owner: str) -> Document:
    return {**metadata, "annotations": {**(metadata.get("annotations") or {}), OWNER: owner}} if owner else metadata


def with_requests(spec: Document, requests: Mapping[str, str]) -> Document:
    """Return the spec of a pod whose first container requests these amounts, beside what it requests anyway.

    A limit of another resource than cpu and memory must be the same as the request, so it is set, too.
    """
    containers = spec.get("containers")
    if not requests or not isinstance(containers, list) or not containers or not isinstance(containers[0], dict):
        return spec  # without a container the server says what is missing
    first, *others = containers
    resources = first.get("resources") or {}
    if not isinstance(resources, dict) or not all(isinstance(each, dict) for each in resources.values() if each):
        return spec
    resources = dict(resources)
    resources["requests"] = {**(resources.get("requests") or {}), **requests}
    extended = {name: amount for name, amount in requests.items() if "/" in name}
    kept = {name: amount for name, amount in (resources.get("limits") or {}).items() if name not in requests}
    if limits := {**kept, **extended}:
        resources["limits"] = limits
    else:
        resources.pop("limits", None)
    return {**spec, "containers": [{**first, "resources": resources}, *others]}
