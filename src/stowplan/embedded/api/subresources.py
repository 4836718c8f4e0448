"""The subresources `binding`, `eviction`, `scale` and `finalize`."""

from __future__ import annotations

from typing import Any

import msgspec

from stowplan.embedded.api import decoding, selectors
from stowplan.embedded.api.eviction_budgets import EvictionBudgets
from stowplan.embedded.api.request_options import DeleteOptions, RequestOptions
from stowplan.embedded.api.verbs import Api
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError, StatusCause, bad_request, conflict, invalid, invalid_value, success
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.schema import typed
from stowplan.embedded.timestamps import stamp

_TOPOLOGY = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
_BINDING, _SCALE, _EVICTION = "core.v1.Binding", "autoscaling.v1.Scale", "policy.v1.Eviction"


class Subresources:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._budgets = EvictionBudgets(api)

    def bind(self, resource: ServedResource, namespace: str, name: str, raw: Any, options: RequestOptions) -> Document:
        """Bind a pod to a node. Raises 409 if the pod is bound already or has another uid."""
        binding = _decoded(_BINDING, "Binding", raw)
        metadata = binding["metadata"]
        if metadata.get("name") not in (None, "", name):
            raise bad_request("name in URL does not match name in Binding object")
        node = binding["target"].get("name", "")
        if not node:
            cause = StatusCause("target.name", "Required value", "FieldValueRequired")
            raise invalid(_ResourceName("", "bindings", "Binding"), name, [cause])
        pod = self._api.get(resource, namespace, name)
        self._check_bindable(resource, pod, metadata.get("uid"))
        bound = _bound(pod, node, metadata, options.now)
        if labels := _topology_labels(self._api.store.get("nodes", node)):
            bound["metadata"]["labels"] = {**bound["metadata"].get("labels", {}), **labels}
        self._api.write(resource, bound, options)
        return success(201)

    def _check_bindable(self, resource: ServedResource, pod: Document, uid: str | None) -> None:
        name, binding = pod["metadata"]["name"], _ResourceName("", "pods/binding", "Binding")
        if uid not in (None, "", pod["metadata"]["uid"]):
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {pod['metadata']['uid']}"
            raise conflict(resource, name, why)
        if "deletionTimestamp" in pod["metadata"]:
            raise conflict(binding, name, f"pod {name} is being deleted, cannot be assigned to a host")
        if taken := pod["spec"].get("nodeName"):
            raise conflict(binding, name, f'pod {name} is already assigned to node "{taken}"')
        if pod["spec"].get("schedulingGates"):
            raise conflict(binding, name, f"pod {name} has non-empty .spec.schedulingGates")

    def evict(self, resource: ServedResource, namespace: str, name: str, raw: Any, options: RequestOptions) -> Document:
        """Delete a pod. Raises 429 if a disruption budget protects it."""
        eviction = _decoded(_EVICTION, "Eviction", raw)
        if eviction["metadata"].get("name") not in (None, "", name):
            raise bad_request("name in URL does not match name in Eviction object")
        pod = self._api.get(resource, namespace, name)
        delete_options = _delete_options(raw.get("deleteOptions") or {})
        if self._budgets.apply_to(pod):
            self._budgets.consume(pod, options)
            if not options.dry_run:
                pod = self._set_disruption_target(resource, pod, options)
        self._api.delete(resource, namespace, name, delete_options, options)
        return success(201)

    def _set_disruption_target(self, resource: ServedResource, pod: Document, options: RequestOptions) -> Document:
        condition = {
            "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastTransitionTime": stamp(options.now),
        }  # fmt: skip
        status = pod.get("status", {})
        others = [each for each in status.get("conditions", ()) if each["type"] != "DisruptionTarget"]
        return self._api.write(resource, {**pod, "status": {**status, "conditions": [*others, condition]}}, options)

    def scale(self, resource: ServedResource, namespace: str, name: str) -> Document:
        document = self._api.get(resource, namespace, name)
        metadata = document["metadata"]
        spec, status = document.get("spec", {}), document.get("status", {})
        scale: Document = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {key: metadata[key] for key in _SCALE_METADATA if key in metadata},
            "spec": {"replicas": spec.get("replicas", 0)} if spec.get("replicas") else {},
            "status": {"replicas": status.get("replicas", 0)},
        }
        if selector := selectors.text_of(spec.get("selector") or {}):
            scale["status"]["selector"] = selector
        return scale

    def rescale(
        self, resource: ServedResource, namespace: str, name: str, raw: Any, options: RequestOptions
    ) -> Document:
        scale = _decoded(_SCALE, "Scale", raw)
        if scale["metadata"].get("name") not in (None, "", name):
            raise bad_request("the name of the object does not match the name on the URL")
        replicas = scale["spec"].get("replicas", 0)
        if replicas < 0:
            cause = invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
            raise invalid(_ResourceName("autoscaling", "scales", "Scale"), name, [cause])
        document = self._api.get(resource, namespace, name)
        version = scale["metadata"].get("resourceVersion")
        if version not in (None, "", document["metadata"]["resourceVersion"]):
            raise conflict(resource, name)
        new = {**document, "spec": {**document["spec"], "replicas": replicas}}
        self._api.replace(resource, document, new, options, manager_of="scale")
        return self.scale(resource, namespace, name)

    def finalize(self, resource: ServedResource, name: str, raw: Any, options: RequestOptions) -> Document:
        """Replace the spec of a namespace, which holds its finalizers."""
        new = decoding.decoded(resource, raw, options, self._api.definitions)
        if new["metadata"].get("name") != name:
            raise bad_request("the name of the object does not match the name on the URL")
        old = self._api.get(resource, "", name)
        return self._api.write(resource, {**old, "spec": new.get("spec", {})}, options)


class _ResourceName:
    """The names of a resource that is not in the catalogue, for error messages."""

    def __init__(self, group: str, plural: str, kind: str) -> None:
        self.group, self.plural, self.kind = group, plural, kind


_SCALE_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def _decoded(type_name: str, kind: str, raw: Any) -> Document:
    if not isinstance(raw, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {kind})")
    if raw.get("kind") not in (None, "", kind):
        raise bad_request(f'{raw["kind"]} in version "v1" cannot be handled as a {kind}: unknown conversion')
    try:
        return typed.decoded(type_name, raw)
    except typed.WrongTypeError as error:
        raise bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {error}') from None


def _delete_options(raw: Any) -> DeleteOptions:
    try:
        return msgspec.convert(raw, DeleteOptions)
    except msgspec.ValidationError as error:
        raise ApiError(400, "BadRequest", f"deleteOptions: {error}") from None


def _bound(pod: Document, node: str, binding: Document, now: float) -> Document:
    metadata = dict(pod["metadata"])
    for name in ("labels", "annotations"):
        if binding.get(name):
            metadata[name] = {**metadata.get(name, {}), **binding[name]}
    status = dict(pod.get("status", {}))
    status.pop("nominatedNodeName", None)  # a bound pod needs it no more (ClearingNominatedNodeNameAfterBinding)
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(now)}
    others = [each for each in status.get("conditions", ()) if each["type"] != "PodScheduled"]
    status["conditions"] = [*others, condition]
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeName": node}, "status": status}


def _topology_labels(node: Document | None) -> dict[str, str]:
    """The zone and region labels that a pod gets from its node (PodTopologyLabels)."""
    labels = node["metadata"].get("labels", {}) if node else {}
    return {key: labels[key] for key in _TOPOLOGY if key in labels}
