"""Keeps `metadata.managedFields` of the objects that clients write over HTTP.

Controllers of this process have no name as field managers: what they write stays without an owner. Of kinds that are
written often (pods, nodes, events, leases) only objects that somebody applied have owners.
"""

from __future__ import annotations

from typing import Any

from stowplan.embedded.api.request_options import RequestOptions
from stowplan.embedded.documents import Document
from stowplan.embedded.ownership import managers
from stowplan.embedded.ownership.comparison import compared
from stowplan.embedded.ownership.field_paths import Paths
from stowplan.embedded.ownership.managers import UPDATE, Manager
from stowplan.embedded.ownership.shapes import BuiltinShape, CustomShape, FieldShape
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.schema import typed
from stowplan.embedded.schema.custom_resources import Definitions
from stowplan.embedded.timestamps import stamp

_WRITTEN_OFTEN = ("pods", "nodes", "events", "leases.coordination.k8s.io")
BEFORE = "before-first-apply"


class FieldOwnership:
    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions

    def shape(self, resource: ServedResource) -> FieldShape:
        if resource.custom:
            return CustomShape(self._definitions.version_of(resource).schema, top=True)
        return BuiltinShape(resource.type)

    def owned(self, resource: ServedResource, paths: Paths, subresource: str = "") -> Paths:
        return managers.owned(paths, subresource=subresource, has_status="status" in resource.subresources)

    def created(self, resource: ServedResource, document: Document, options: RequestOptions) -> list[Document]:
        """`managedFields` of a new object."""
        if options.owners is not None:
            return options.owners
        if not options.manager or resource.collection in _WRITTEN_OFTEN:
            return []
        manager = Manager(options.manager, UPDATE, resource.api_version)
        return managers.written({manager: self.all_of(resource, document)}, (), stamp(options.now))

    def all_of(self, resource: ServedResource, document: Document, subresource: str = "") -> Paths:
        """What who wrote the whole document owns: all but what every object of the kind has."""
        nothing: Document = {"metadata": {}} if resource.custom else typed.decoded(resource.type, {})
        return self.owned(resource, compared(nothing, document, self.shape(resource)).changed, subresource)

    def updated(
        self, resource: ServedResource, old: Document, new: Document, options: RequestOptions, subresource: str
    ) -> list[Document]:
        """`managedFields` of a changed object."""
        before: list[Document] = old["metadata"].get("managedFields", [])
        if options.owners is not None:
            return options.owners
        if not options.manager or (resource.collection in _WRITTEN_OFTEN and not before):
            return before
        entries, owners = _chosen(options.given_owners, before)
        found = compared(old, new, self.shape(resource))
        found = type(found)(
            self.owned(resource, found.changed, subresource), self.owned(resource, found.removed, subresource)
        )
        if found.changed or found.removed:
            manager = Manager(options.manager, UPDATE, resource.api_version, subresource)
            owners = managers.after_update(owners, manager, found)
        return managers.written(owners, entries, stamp(options.now))


def _chosen(given: Any, before: list[Document]) -> tuple[list[Document], dict[Manager, Paths]]:
    """The entries that a client sent, if they can be read, else those of the object."""
    if isinstance(given, list):
        try:
            return given, managers.read(given)
        except ValueError:
            pass
    return before, managers.read(before)
