"""Every verb on every kind, without HTTP. A verb changes the store, or raises the `ApiError` that refuses the request.

HTTP clients and controllers use the same verbs, so the same defaults and checks apply to both. Documents that come in
have the form of their resource, documents that are returned the form of the store (`versions`).
"""

from __future__ import annotations

import random
from typing import Any

from stowplan.embedded import admission, validation
from stowplan.embedded.admission.context import AdmissionContext
from stowplan.embedded.api import decoding, lifecycle
from stowplan.embedded.api.field_ownership import FieldOwnership
from stowplan.embedded.api.namespace_limits import NamespaceLimits
from stowplan.embedded.api.request_options import DeleteOptions, RequestOptions
from stowplan.embedded.authorization.escalation import EscalationGuard
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import (  # fmt: skip
    ApiError,
    StatusCause,
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

SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_NAME_ATTEMPTS = 8  # to generate a name that is free


class Api:
    """`generator` draws uids, generated names and addresses."""

    def __init__(self, store: DocumentStore | None = None, generator: random.Random | None = None) -> None:
        self.store = DocumentStore() if store is None else store
        self.catalogue = ResourceCatalogue()
        self.definitions = Definitions(self.catalogue)
        self.ownership = FieldOwnership(self.definitions)
        self.generator = generator or random.Random()
        self.store.listeners.append(self._follow_definitions)
        self.limits = NamespaceLimits(self.store)
        self.escalation: EscalationGuard | None = None  # None: everybody may grant everything
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

    def create(
        self,
        resource: ServedResource,
        namespace: str,
        raw: Any,
        options: RequestOptions,
        status: Document | None = None,
    ) -> Document:
        """Create an object, and return it as it is stored.

        `status`: the one that it has from the start, decoded already; no client may give one.
        """
        document = decoding.decoded(resource, raw, options, self.definitions)
        metadata = document["metadata"]
        _check_namespace_matches(resource, metadata, namespace)
        if metadata.get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        if resource.namespaced:
            self._check_namespace(resource, namespace, metadata.get("name", ""))
        generated = not metadata.get("name") and bool(metadata.get("generateName"))
        self._prepare(resource, document, namespace, options)
        if status is not None:
            document["status"] = status
        if owners := self.ownership.created(resource, document, options):
            metadata["managedFields"] = owners
        return self._add(resource, namespace, document, options, generated=generated)

    def _prepare(self, resource: ServedResource, document: Document, namespace: str, options: RequestOptions) -> None:
        """Turn the document of a client into the document that is stored."""
        lifecycle.set_metadata(resource, document, namespace, options.now, self.generator)
        collection = resource.collection
        if "status" in resource.subresources and collection not in admission.KEEPS_STATUS:
            document.pop("status", None)
            if not resource.custom:
                document["status"] = {}
        if collection in admission.DEFAULTS:
            admission.DEFAULTS[collection](document)
        self.limits.complete(resource, document)
        if self.escalation is not None:
            self.escalation.check(resource, document, options.user)
        self._raise_if_invalid(resource, document, self._problems(resource, document))
        if collection in admission.ADMIT:
            admission.ADMIT[collection](document, AdmissionContext(self.store, self.generator, options))

    def _add(
        self, resource: ServedResource, namespace: str, document: Document, options: RequestOptions, *, generated: bool
    ) -> Document:
        metadata = document["metadata"]
        charges = self.limits.admitted(resource, document)
        for _ in range(_NAME_ATTEMPTS):
            key = resource.key(namespace, metadata["name"])
            if self.store.stored(resource.collection, key) is None:
                if not options.dry_run:
                    self.limits.charge(charges)
                    self.store.put(resource.collection, key, document)
                return document
            if not generated:
                break
            metadata["name"] = lifecycle.generated_name(metadata["generateName"], self.generator)
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

    def _problems(self, resource: ServedResource, document: Document, old: Document | None = None) -> list[StatusCause]:
        found = validation.problems(resource, document, old)
        if resource.custom:
            found += self.definitions.version_of(resource).causes(document)
        return found

    def _raise_if_invalid(self, resource: ServedResource, document: Document, causes: list[StatusCause]) -> None:
        if causes:
            raise invalid(resource, document["metadata"].get("name", ""), causes)

    # -- changing

    def update(
        self,
        resource: ServedResource,
        namespace: str,
        name: str,
        raw: Any,
        options: RequestOptions,
        subresource: str = "",
    ) -> Document:
        """Update an object, and return it. `subresource` is "" or "status"."""
        new = decoding.decoded(resource, raw, options, self.definitions)
        _check_namespace_matches(resource, new["metadata"], namespace)
        found = new["metadata"].get("name", "")
        if found != name:
            raise bad_request(f"the name of the object ({found}) does not match the name on the URL ({name})")
        old = self.get(resource, namespace, name)
        lifecycle.check_update(resource, old, new)
        options.given_owners = raw["metadata"].get("managedFields")
        return self.replace(resource, old, new, options, subresource)

    def replace(
        self, resource: ServedResource, old: Document, new: Document, options: RequestOptions, subresource: str = "",
        manager_of: str = "",
    ) -> Document:  # fmt: skip
        """Replace `old` by `new`, except for the fields that an update cannot change. `new` is decoded already.

        `manager_of` is the subresource that field managers are told of, if it is another one.
        """
        if resource.collection in admission.DEFAULTS and not subresource:
            admission.DEFAULTS[resource.collection](new)
        document = lifecycle.carry_over(resource, old, new, subresource)
        if subresource == "status" and resource.collection in admission.STATUS:
            document = admission.STATUS[resource.collection](document, old)
        owners = self.ownership.updated(resource, old, document, options, manager_of or subresource)
        if owners != old["metadata"].get("managedFields", []):
            document = {**document, "metadata": lifecycle.with_owners(document["metadata"], owners)}
        if document == old:
            return old
        if self.escalation is not None:
            self.escalation.check(resource, document, options.user, old)
        if subresource != "status" or resource.custom:
            self._raise_if_invalid(resource, document, self._problems(resource, document, old))
        else:
            self._raise_if_invalid(resource, document, validation.status_problems(resource, document, old))
        charges = self.limits.admitted(resource, document, old) if not subresource else []
        if not options.dry_run:
            self.limits.charge(charges)
        return self.write(resource, document, options)

    def write(self, resource: ServedResource, document: Document, options: RequestOptions) -> Document:
        """Store a document that was checked. A terminating object without finalizers or grace period is removed."""
        key = resource.key(document["metadata"].get("namespace", ""), document["metadata"]["name"])
        if options.dry_run:
            return document
        document = {**document, "metadata": dict(document["metadata"])}
        if lifecycle.is_removable(document):
            return self.store.remove(resource.collection, key).document
        return self.store.put(resource.collection, key, document).document

    # -- deleting

    def delete(
        self,
        resource: ServedResource,
        namespace: str,
        name: str,
        delete_options: DeleteOptions,
        options: RequestOptions,
    ) -> tuple[Document, bool]:
        """Delete an object. Return the response and whether it is the object (terminating) or a Status (removed)."""
        lifecycle.check_options(delete_options)
        document = self.get(resource, namespace, name)
        if resource.collection == "namespaces" and name in SYSTEM_NAMESPACES[:3]:
            raise forbidden(resource, name, "this namespace may not be deleted")
        lifecycle.check_preconditions(resource, document, delete_options)
        propagation = lifecycle.propagation_policy(resource, delete_options)
        if propagation != "Background" and not self.store.owned_by(document["metadata"]["uid"]):
            propagation = "Background"  # there are no dependents
        terminating = lifecycle.with_deletion(
            document,
            options.now,
            _grace(resource, document, delete_options),
            lifecycle.finalizers_for(document, propagation),
        )
        if resource.collection == "namespaces":
            terminating["status"] = {**terminating.get("status", {}), "phase": "Terminating"}
        if lifecycle.is_removable(terminating):
            if not options.dry_run:
                self._remove(resource, resource.key(namespace, name), terminating)
            about = {"name": name, "group": resource.group, "kind": resource.plural, "uid": document["metadata"]["uid"]}
            return success(details={key: value for key, value in about.items() if value}), False
        return (document if terminating == document else self.write(resource, terminating, options)), True

    def _remove(self, resource: ServedResource, key: str, terminating: Document) -> None:
        """Remove an object. Watches of a pod see it terminating first, then deleted."""
        if resource.collection == "pods":
            self.store.put(resource.collection, key, {**terminating, "metadata": dict(terminating["metadata"])})
        self.store.remove(resource.collection, key)

    def _follow_definitions(self, change: StoreChange) -> None:
        """Serve a kind while its definition exists."""
        if change.collection != custom_resources.COLLECTION:
            return
        if change.now is not None:
            if change.before is None or change.before["spec"] != change.now["spec"]:
                self.definitions.install(change.now)
        else:
            self.store.drop(self.definitions.remove(change.document))


def _check_namespace_matches(resource: ServedResource, metadata: Document, namespace: str) -> None:
    if resource.namespaced and metadata.get("namespace") not in (None, "", namespace):
        why = "the namespace of the provided object does not match the namespace sent on the request"
        raise ApiError(400, "BadRequest", why)


def _grace(resource: ServedResource, document: Document, delete_options: DeleteOptions) -> int:
    """The grace period in seconds: 0 for other kinds than pods, and for a pod that does not run."""
    if resource.collection != "pods":
        return 0
    if not document["spec"].get("nodeName") or document.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    given = delete_options.grace_period_seconds
    period = document["spec"].get("terminationGracePeriodSeconds", 30) if given is None else given
    before = document["metadata"].get("deletionGracePeriodSeconds")
    return max(period if before is None else min(period, before), 0)
