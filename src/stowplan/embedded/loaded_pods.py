"""Creates the pods of a dump. Of pods that are alike the first goes through the API, and the others are copies of it.

What the API makes of a new spec depends on nothing else of the pod but its namespace, and what it makes of labels,
annotations and owners on nothing else at all. The pods of one template have one spec but for the node, and mostly the
same metadata but for the name. So a copy with another name, node and status is what the API would have made, at a
fraction of the cost. Copies share what they have in common: a stored document is never changed.

A pod is not copied where LimitRanges or quotas apply: a quota is charged for each pod.
"""

from __future__ import annotations

import random
from typing import Any, TypeAlias

import msgspec

from stowplan.embedded.api import decoding, lifecycle
from stowplan.embedded.api.request_options import RequestOptions
from stowplan.embedded.api.verbs import Api
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError
from stowplan.embedded.schema import typed
from stowplan.embedded.validation import metadata as metadata_rules

MOST = 4096  # of each: specs, metadata and statuses that are kept
_STATUS = "core.v1.PodStatus"

Template: TypeAlias = tuple[bytes, bool, bool]
"""Namespace and spec as JSON, whether the pod has a node, and whether it has a status."""


class LoadedPods:
    """The pods of one load. Nothing else may change meanwhile what the API makes of new pods."""

    def __init__(self, api: Api, options: RequestOptions) -> None:
        resource = api.catalogue.find("", "v1", "pods")
        assert resource is not None
        self._api, self._resource, self._options = api, resource, options
        self._first: dict[Template, Document] = {}
        self._metadata: dict[bytes, Document] = {}  # without name and uid
        self._statuses: dict[bytes, Document] = {}
        self._limited: dict[str, bool] = {}  # by namespace
        self._unused = random.Random(0)  # of uids that are replaced

    def create(self, namespace: str, pod: Document) -> Document | None:
        """Create a pod that has its status from the start. Return None if its status is of the wrong type.

        Raises ApiError if the API refuses the pod.
        """
        given = pod.get("status")
        if given and not isinstance(given, dict):
            return None
        try:
            status = self._status(given) if given else None
        except typed.WrongTypeError:
            return None
        template = _template(namespace, pod)
        first = self._first.get(template) if template else None
        metadata = self._metadata_of(namespace, pod["metadata"]) if first is not None else None
        if first is not None and metadata is not None:
            return self._copy(first, metadata, pod["spec"].get("nodeName"), status)
        created = self._api.create(self._resource, namespace, _bare(pod, template), self._options, status)
        if template and len(self._first) < MOST and not self._is_limited(namespace):
            self._first[template] = created
        return created

    def _copy(self, first: Document, metadata: Document, node: str | None, status: Document | None) -> Document:
        copy = {**first, "metadata": metadata}
        if node:
            copy["spec"] = {**first["spec"], "nodeName": node}
        if status is not None:
            copy["status"] = status
        key = self._resource.key(metadata["namespace"], metadata["name"])
        return self._api.store.put(self._resource.collection, key, copy).document

    def _metadata_of(self, namespace: str, given: Document) -> Document | None:
        """What the API makes of some metadata. None if it refuses them, or makes up the name."""
        name = given.get("name")
        if not isinstance(name, str) or not self._is_free(namespace, name):
            return None
        text = _json({**given, "name": ""})
        found = self._metadata.get(text)
        if found is None:
            found = self._checked(namespace, given if text and b"null" not in text else typed.without_nulls(given))
            if found is None:
                return None
            if text and len(self._metadata) < MOST:
                self._metadata[text] = found
        return {**found, "name": name, "uid": lifecycle.new_uid(self._api.generator)}

    def _checked(self, namespace: str, given: Document) -> Document | None:
        api, options = self._api, self._options
        try:
            document = decoding.decoded(self._resource, {"metadata": given}, options, api.definitions)
        except ApiError:
            return None
        lifecycle.set_metadata(self._resource, document, namespace, options.now, self._unused)
        refused = next(metadata_rules.check(self._resource, document), None)
        return None if refused is not None else document["metadata"]

    def _is_free(self, namespace: str, name: str) -> bool:
        """True for a valid name that no pod has; the API says what is wrong with another one."""
        if next(metadata_rules.check_name("metadata.name", name), None) is not None:
            return False
        return self._api.store.stored(self._resource.collection, self._resource.key(namespace, name)) is None

    def _is_limited(self, namespace: str) -> bool:
        found = self._limited.get(namespace)
        if found is None:
            found = self._limited[namespace] = self._api.limits.apply_to(namespace)
        return found

    def _status(self, given: Document) -> Document:
        """The decoded status. Raises WrongTypeError."""
        text = _json(given)
        found = self._statuses.get(text) if text else None
        if found is None:
            found = _decoded_status(given)
            if text and len(self._statuses) < MOST:
                self._statuses[text] = found
        return found


def _template(namespace: str, pod: Document) -> Template | None:
    """What a pod has in common with others of one template; None for one whose spec is none."""
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return None
    node = spec.get("nodeName")
    if node and isinstance(node, str):
        spec = {key: value for key, value in spec.items() if key != "nodeName"}
    text = _json((namespace, spec))
    return (text, bool(node), bool(pod.get("status"))) if text else None


def _bare(pod: Document, template: Template | None) -> Document:
    """The pod without status and nulls. A spec that has none is not walked through."""
    found = {key: value for key, value in pod.items() if key not in ("spec", "status")}
    if "spec" in pod:
        has_nulls = template is None or b"null" in template[0]
        found["spec"] = typed.without_nulls(pod["spec"]) if has_nulls else pod["spec"]
    return {**found, "metadata": typed.without_nulls(pod["metadata"])}


def _json(value: Any) -> bytes:
    """The value as JSON, in the order that it has; empty for one that JSON does not have."""
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return b""


def _decoded_status(found: Document) -> Document:
    """kubectl writes nulls into the conditions of a pod; only if there are others the status is copied."""
    conditions = found.get("conditions")
    if isinstance(conditions, list) and all(isinstance(each, dict) for each in conditions):
        kept = [{key: value for key, value in each.items() if value is not None} for each in conditions]
        found = {**found, "conditions": kept}
    try:
        return typed.decoded(_STATUS, found)
    except typed.WrongTypeError:
        return typed.decoded(_STATUS, typed.without_nulls(found))
