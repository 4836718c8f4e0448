"""Every verb on every kind, without HTTP: what a request does to the store, or the `ApiError` that it is refused
with.

HTTP clients and our own controllers come in by the same door, so both get the same defaults, checks and refusals.
Documents that come in are in the form of the resource (`views`), documents that go out in the form of the store.
"""

from __future__ import annotations

import random
from typing import Any, TypeAlias

from stowplan.embedded import admission, validation
from stowplan.embedded.admission.context import AdmissionContext
from stowplan.embedded.api import decoding, lifecycle
from stowplan.embedded.api.request_options import DeleteOptions, RequestOptions
from stowplan.embedded.errors import (  # fmt: skip
    ApiError,
    Cause,
    already_exists,
    bad_request,
    forbidden,
    invalid,
    not_found,
    success,
)
from stowplan.embedded.resources import ResourceCatalogue, ServedResource
from stowplan.embedded.schema import custom_resources
from stowplan.embedded.schema.custom_resources import Definitions
from stowplan.embedded.store import DocumentStore, StoreChange

Document: TypeAlias = dict[str, Any]

PERMANENT = ("default", "kube-system", "kube-public", "kube-node-lease")
_TRIES = 8  # to find a name that is free


class Api:
    """`draw` is where uids, names and addresses come from."""

    def __init__(self, store: DocumentStore | None = None, draw: random.Random | None = None) -> None:
        self.store = DocumentStore() if store is None else store
        self.catalogue = ResourceCatalogue()
        self.definitions = Definitions(self.catalogue)
        self.draw = draw or random.Random()
        self.store.listeners.append(self._follow_definitions)
        pods = self.store.collection("pods")
        pods.index("spec.nodeName", lambda pod: str(pod["spec"].get("nodeName", "")))
        about = self.store.collection("events")
        about.index("involvedObject.uid", lambda event: str(event["involvedObject"].get("uid", "")))

    # -- reading

    def get(self, resource: ServedResource, namespace: str, name: str) -> Document:
        found = self.store.get(resource.collection, resource.key(namespace, name))
        if found is None:
            raise not_found(resource, name)
        return found

    # -- creating

    def create(self, resource: ServedResource, namespace: str, raw: Any, asked: RequestOptions) -> Document:
        """A new object, as it is stored."""
        document = decoding.document(resource, raw, asked, self.definitions)
        metadata = document["metadata"]
        _check_namespace_matches(resource, metadata, namespace)
        if metadata.get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        if resource.namespaced:
            self._check_namespace(resource, namespace, metadata.get("name", ""))
        generated = not metadata.get("name") and bool(metadata.get("generateName"))
        self._prepare(resource, document, namespace, asked)
        return self._add(resource, namespace, document, asked, generated=generated)

    def _prepare(self, resource: ServedResource, document: Document, namespace: str, asked: RequestOptions) -> None:
        """From what a client wrote to what will be stored."""
        lifecycle.begin(resource, document, namespace, asked.now, self.draw)
        collection = resource.collection
        if "status" in resource.subresources and collection not in admission.KEEPS_STATUS:
            document.pop("status", None)
            if not resource.custom:
                document["status"] = {}
        if collection in admission.DEFAULTS:
            admission.DEFAULTS[collection](document)
        self._refuse(resource, document, self._problems(resource, document))
        if collection in admission.ADMIT:
            admission.ADMIT[collection](document, AdmissionContext(self.store, self.draw, asked))

    def _add(
        self, resource: ServedResource, namespace: str, document: Document, asked: RequestOptions, *, generated: bool
    ) -> Document:
        metadata = document["metadata"]
        for _ in range(_TRIES):
            key = resource.key(namespace, metadata["name"])
            if self.store.stored(resource.collection, key) is None:
                if not asked.dry_run:
                    self.store.put(resource.collection, key, document)
                return document
            if not generated:
                break
            metadata["name"] = lifecycle.generated_name(metadata["generateName"], self.draw)
        raise already_exists(resource, metadata["name"])

    def _check_namespace(self, resource: ServedResource, namespace: str, name: str) -> None:
        found = self.store.get("namespaces", namespace)
        if found is None:
            namespaces = self.catalogue.find("", "v1", "namespaces")
            assert namespaces is not None
            raise not_found(namespaces, namespace)
        if "deletionTimestamp" in found["metadata"]:
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = {"reason": "NamespaceTerminating", "message": f"namespace {namespace} is being terminated"}
            raise forbidden(resource, name, why, [{**cause, "field": "metadata.namespace"}])

    def _problems(self, resource: ServedResource, document: Document, old: Document | None = None) -> list[Cause]:
        found = validation.problems(resource, document, old)
        if resource.custom:
            found += self.definitions.structure(resource).causes(document)
        return found

    def _refuse(self, resource: ServedResource, document: Document, causes: list[Cause]) -> None:
        if causes:
            raise invalid(resource, document["metadata"].get("name", ""), causes)

    # -- changing

    def update(
        self,
        resource: ServedResource,
        namespace: str,
        name: str,
        raw: Any,
        asked: RequestOptions,
        subresource: str = "",
    ) -> Document:
        """The object as it is afterwards; `subresource` is "" or "status"."""
        new = decoding.document(resource, raw, asked, self.definitions)
        _check_namespace_matches(resource, new["metadata"], namespace)
        found = new["metadata"].get("name", "")
        if found != name:
            raise bad_request(f"the name of the object ({found}) does not match the name on the URL ({name})")
        old = self.get(resource, namespace, name)
        lifecycle.check_update(resource, old, new)
        return self.replace(resource, old, new, asked, subresource)

    def replace(
        self, resource: ServedResource, old: Document, new: Document, asked: RequestOptions, subresource: str = ""
    ) -> Document:
        """Puts `new` in the place of `old`, apart from what cannot be changed; `new` has been shaped already."""
        if resource.collection in admission.DEFAULTS and not subresource:
            admission.DEFAULTS[resource.collection](new)
        document = lifecycle.carry_over(resource, old, new, subresource)
        if document == old:
            return old
        if subresource != "status" or resource.custom:
            self._refuse(resource, document, self._problems(resource, document, old))
        return self.write(resource, document, asked)

    def write(self, resource: ServedResource, document: Document, asked: RequestOptions) -> Document:
        """Stores what has been checked; a deleted object that nothing holds any longer ends here."""
        key = resource.key(document["metadata"].get("namespace", ""), document["metadata"]["name"])
        if asked.dry_run:
            return document
        document = {**document, "metadata": dict(document["metadata"])}
        if lifecycle.ended(document):
            return self.store.remove(resource.collection, key).document
        return self.store.put(resource.collection, key, document).document

    # -- deleting

    def delete(
        self, resource: ServedResource, namespace: str, name: str, options: DeleteOptions, asked: RequestOptions
    ) -> tuple[Document, bool]:
        """What the client is told, and whether that is the object (it will go later) or a Status (it is gone)."""
        lifecycle.check_options(options)
        document = self.get(resource, namespace, name)
        if resource.collection == "namespaces" and name in PERMANENT[:3]:
            raise forbidden(resource, name, "this namespace may not be deleted")
        lifecycle.check_preconditions(resource, document, options)
        chosen = lifecycle.policy(resource, options)
        if chosen != "Background" and not self.store.owned_by(document["metadata"]["uid"]):
            chosen = "Background"  # nobody to keep or to wait for
        leaving = lifecycle.leaving(
            document, asked.now, _grace(resource, document, options), lifecycle.finalizers_for(document, chosen)
        )
        if resource.collection == "namespaces":
            leaving["status"] = {**leaving.get("status", {}), "phase": "Terminating"}
        if lifecycle.ended(leaving):
            if not asked.dry_run:
                self._end(resource, resource.key(namespace, name), leaving)
            about = {"name": name, "group": resource.group, "kind": resource.plural, "uid": document["metadata"]["uid"]}
            return success(details={key: value for key, value in about.items() if value}), False
        return (document if leaving == document else self.write(resource, leaving, asked)), True

    def _end(self, resource: ServedResource, key: str, leaving: Document) -> None:
        """At once; but a pod goes in two steps, which whoever watches is told of."""
        if resource.collection == "pods":
            self.store.put(resource.collection, key, {**leaving, "metadata": dict(leaving["metadata"])})
        self.store.remove(resource.collection, key)

    def _follow_definitions(self, happened: StoreChange) -> None:
        """Kinds come and go with their definitions."""
        if happened.collection != custom_resources.COLLECTION:
            return
        if happened.now is not None:
            if happened.before is None or happened.before["spec"] != happened.now["spec"]:
                self.definitions.install(happened.now)
        else:
            self.store.drop(self.definitions.remove(happened.document))


def _check_namespace_matches(resource: ServedResource, metadata: Document, namespace: str) -> None:
    if resource.namespaced and metadata.get("namespace") not in (None, "", namespace):
        why = "the namespace of the provided object does not match the namespace sent on the request"
        raise ApiError(400, "BadRequest", why)


def _grace(resource: ServedResource, document: Document, options: DeleteOptions) -> int:
    """Seconds that a pod gets to end itself: none unless it runs somewhere."""
    if resource.collection != "pods":
        return 0
    if not document["spec"].get("nodeName") or document.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    given = options.grace_period_seconds
    wanted = document["spec"].get("terminationGracePeriodSeconds", 30) if given is None else given
    already = document["metadata"].get("deletionGracePeriodSeconds")
    return max(wanted if already is None else min(wanted, already), 0)
