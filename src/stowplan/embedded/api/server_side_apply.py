"""Server-side apply: a client sends the fields that it wants, and owns them from then on.

What it applied before and no longer does is removed, unless somebody else owns it. What somebody else owns and it wants
to change is a conflict, unless it takes it by force.
"""

from __future__ import annotations

from typing import Any

from stowplan.embedded.api import decoding, versions
from stowplan.embedded.api.field_ownership import BEFORE
from stowplan.embedded.api.request_options import RequestOptions
from stowplan.embedded.api.verbs import Api
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError, apply_conflict, bad_request, invalid, invalid_value, not_found
from stowplan.embedded.ownership import applying, managers
from stowplan.embedded.ownership.comparison import Comparison, compared, element_of, parts_of, paths_of
from stowplan.embedded.ownership.field_paths import Paths, shown, valued
from stowplan.embedded.ownership.managers import APPLY, UPDATE, Manager
from stowplan.embedded.ownership.shapes import KEYED, OBJECT, BuiltinShape, FieldShape
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.timestamps import stamp


class ServerSideApply:
    def __init__(self, api: Api) -> None:
        self._api = api

    def apply(
        self, resource: ServedResource, namespace: str, name: str, raw: Any, options: RequestOptions,
        *, force: bool = False, subresource: str = "",
    ) -> tuple[Document, bool]:  # fmt: skip
        """Apply a configuration. Return the object, and whether it is new."""
        config = _config(resource, namespace, name, raw)
        shape = self._api.ownership.shape(resource)
        where = f"{namespace}/{name}" if resource.namespaced else f"/{name}"
        for problem in _undeclared(config, shape, ""):
            kind = f"{resource.api_version}, Kind={resource.kind}"
            raise ApiError(400, "", f"failed to create typed patch object ({where}; {kind}): {problem}")
        manager = Manager(options.manager, APPLY, resource.api_version, subresource)
        applied = self._api.ownership.owned(resource, paths_of(config, shape), subresource)
        live = self._api.store.get(resource.collection, resource.key(namespace, name))
        if live is None:
            if subresource:
                raise not_found(resource, name)
            options.owners = managers.written({manager: applied}, (), stamp(options.now))
            return self._api.create(resource, namespace, config, options), True
        return self._change(resource, live, config, manager, applied, options, force=force), False

    def _change(
        self, resource: ServedResource, live: Document, config: Document, manager: Manager, applied: Paths,
        options: RequestOptions, *, force: bool,
    ) -> Document:  # fmt: skip
        shape, subresource = self._api.ownership.shape(resource), manager.subresource
        owners = self._owners(resource, live)
        others = frozenset[tuple[str, ...]]().union(*(paths for each, paths in owners.items() if each != manager))
        served = versions.as_served(resource, live)
        new = applying.merged(served, config, shape)
        dropped = owners.get(manager, frozenset()) - applied
        new = applying.pruned(new, shape, dropped, applied | others)
        if new["metadata"].get("uid") != live["metadata"]["uid"]:
            cause = invalid_value("metadata.uid", new["metadata"].get("uid"), "field is immutable")
            raise invalid(resource, live["metadata"]["name"], [cause])
        decoded = decoding.decoded(resource, new, options, self._api.definitions)
        found = self._found(resource, live, decoded, subresource)
        conflicts = managers.conflicts(owners, manager, found)
        if conflicts and not force:
            causes = [(f"conflict with {each.manager.shown()}", shown(each.path)) for each in conflicts]
            raise apply_conflict(managers.message(conflicts), causes)
        after = managers.after_apply(owners, manager, applied, found)
        options.owners = managers.written(after, live["metadata"].get("managedFields", ()), stamp(options.now))
        namespace, name = live["metadata"].get("namespace", ""), live["metadata"]["name"]
        return self._api.update(resource, namespace, name, new, options, subresource)

    def _found(self, resource: ServedResource, live: Document, new: Document, subresource: str) -> Comparison:
        owned, found = self._api.ownership.owned, compared(live, new, self._api.ownership.shape(resource))
        return Comparison(owned(resource, found.changed, subresource), owned(resource, found.removed, subresource))

    def _owners(self, resource: ServedResource, live: Document) -> dict[Manager, Paths]:
        """The owners of an object. All fields of one that has none belong to who was there before the first apply."""
        found = managers.read(live["metadata"].get("managedFields", ()))
        if found:
            return found
        return {Manager(BEFORE, UPDATE, resource.api_version): self._api.ownership.all_of(resource, live)}


def _config(resource: ServedResource, namespace: str, name: str, raw: Any) -> Document:
    """The configuration with the name of the path. Raises 400 for what cannot be applied."""
    if not isinstance(raw, dict):
        raise bad_request("error decoding YAML: the configuration is no object")
    for key in ("apiVersion", "kind"):
        if not raw.get(key):
            raise bad_request(f"invalid object type: /, Kind=: {key} is missing")
    if (raw["apiVersion"], raw["kind"]) != (resource.api_version, resource.kind):
        wanted = f"{resource.api_version}, Kind={resource.kind}"
        raise bad_request(f"invalid object type: {raw['apiVersion']}, Kind={raw['kind']}: expected {wanted}")
    metadata = raw.get("metadata", {})
    if not isinstance(metadata, dict):
        raise decoding.cannot_be_handled(resource, "metadata is no object")
    if metadata.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    if metadata.get("name") not in (None, "", name):
        raise bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")
    if resource.namespaced and metadata.get("namespace") not in (None, "", namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    where = {"namespace": namespace} if resource.namespaced else {}
    return {**raw, "metadata": {**metadata, "name": name, **where}}


def _undeclared(value: Any, shape: FieldShape, path: str) -> list[str]:
    """The first field that the kind does not have, or the first list with a value twice."""
    parts = parts_of(value, shape)
    if parts is None:
        return []
    if isinstance(value, list) and len(parts) < len(value):
        seen = [element_of(item, shape) if shape.kind == KEYED else valued(item) for item in value]
        twice = next(element for number, element in enumerate(seen) if element in seen[:number])
        return [f"{path}: duplicate entries for key {shown((twice,))}"]
    for element, (child, below) in parts.items():
        here = f"{path}{shown((element,))}"
        closed = isinstance(shape, BuiltinShape) and shape.kind == OBJECT and shape.type[:2] != "{}"
        if closed and isinstance(shape, BuiltinShape) and shape.type != "any" and not shape.declares(element[2:]):
            return [f"{here}: field not declared in schema"]
        if found := _undeclared(child, below, here):
            return found
    return []
