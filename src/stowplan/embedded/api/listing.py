"""Lists of matching objects, page by page. All pages of a list show the state at the time of its first page.

Stored documents are never changed, so a list that continues is a list of references. Only the latest few are kept; for
an older one the response is 410, as in Kubernetes after a compaction of etcd. Who may list one thing could try to
continue a list of another: so a list continues only for the collection, namespace and selectors that it is of.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Callable
from typing import Annotated, TypeAlias

import msgspec

from stowplan.embedded.api import lifecycle, selectors
from stowplan.embedded.api.verbs import Api
from stowplan.embedded.change_log import Stored
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import bad_request, expired, version_too_large
from stowplan.embedded.numbers import natural
from stowplan.embedded.resources import ServedResource

Matches: TypeAlias = Callable[[Document], bool]

_MAX_CONTINUED = 64
_HIGHEST = (1 << 63) - 1  # more digits than a version can have are told as this one


class ListOptions(msgspec.Struct, frozen=True):
    """The parameters of a list or a watch."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""
    limit: int = 0
    token: str = ""
    version: str = ""


class ListPage(msgspec.Struct, frozen=True):
    items: list[Stored]
    version: int
    token: str = ""
    remaining: int = 0

    def metadata(self) -> Document:
        found: Document = {"resourceVersion": str(self.version)}
        if self.token:
            found |= {"continue": self.token, "remainingItemCount": self.remaining}
        return found


class _ListScope(msgspec.Struct, frozen=True):
    """What a list is of."""

    collection: str
    namespace: str
    labels: str
    fields: str


class _KeptList(msgspec.Struct, frozen=True):
    """A list of which not all pages were sent."""

    scope: _ListScope
    items: list[Stored]
    version: int


class _Place(msgspec.Struct, frozen=True, rename={"kept": "list"}):
    """What a continue token says: the id of a kept list, and the first item of the next page."""

    kept: str
    start: Annotated[int, msgspec.Meta(ge=0)]
    v: str = "meta.k8s.io/v1"


class Lister:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._kept: OrderedDict[str, _KeptList] = OrderedDict()

    def matcher(self, resource: ServedResource, options: ListOptions) -> Matches | None:
        more = self._api.definitions.version_of(resource).fields if resource.custom else ()
        by_field = selectors.fields(options.fields, resource.collection, more)
        return selectors.matcher(selectors.labels(options.labels), by_field)

    def page(self, resource: ServedResource, options: ListOptions) -> ListPage:
        scope = _ListScope(resource.collection, options.namespace, options.labels, options.fields)
        if options.token:
            place = _read(options.token)
            kept = self._kept.get(place.kept)
            if kept is None or kept.scope != scope:
                raise expired(
                    "The provided continue parameter is too old to display a consistent list result. You can start a "
                    "new list without the continue parameter, or use the continue token in this response to retrieve "
                    "the remainder of the results."
                )
            return self._cut(kept, place.start, options.limit, place.kept)
        self.check_version(options.version)
        new = _KeptList(scope, self.matching(resource, options), self._api.store.version)
        return self._cut(new, 0, options.limit)

    def matching(self, resource: ServedResource, options: ListOptions) -> list[Stored]:
        matches = self.matcher(resource, options)
        if matches is None:
            return self._api.store.all(resource.collection, options.namespace)
        found = self._indexed(resource, options)
        if found is None:
            found = self._api.store.all(resource.collection, options.namespace)
        return [stored for stored in found if matches(stored.document)]

    def _indexed(self, resource: ServedResource, options: ListOptions) -> list[Stored] | None:
        """The candidates from an index; None if no index helps."""
        collection = self._api.store.collection(resource.collection)
        for field in selectors.fields(options.fields, resource.collection):
            found = collection.find(field.key, field.values[0]) if field.operator == "In" else None
            if found is not None:
                inside = [
                    stored
                    for stored in found
                    if not options.namespace or stored.document["metadata"].get("namespace") == options.namespace
                ]
                return sorted(inside, key=lambda stored: _order(stored.document))
        return None

    def check_version(self, text: str) -> int:
        """The resource version of a request as a number; 0 if there is none."""
        if not text:
            return 0
        if not text.isascii() or not text.isdigit():
            problem = f'strconv.ParseUint: parsing "{text}": invalid syntax'
            raise bad_request(f'invalid resource version: resourceVersion: Invalid value: "{text}": {problem}')
        wanted = natural(text, _HIGHEST)
        if wanted > self._api.store.version:
            raise version_too_large(wanted, self._api.store.version)
        return wanted

    def _cut(self, found: _KeptList, start: int, limit: int, key: str = "") -> ListPage:
        """One page. The list is kept, under its id, if there are more pages."""
        end = start + limit if limit > 0 else len(found.items)
        if end >= len(found.items):
            self._kept.pop(key, None)
            return ListPage(found.items[start:], found.version)
        if not key:
            key = lifecycle.new_uid(self._api.generator)
            self._kept[key] = found
            if len(self._kept) > _MAX_CONTINUED:
                self._kept.popitem(last=False)
        return ListPage(found.items[start:end], found.version, _token(_Place(key, end)), len(found.items) - end)


def _order(document: Document) -> tuple[str, str]:
    return document["metadata"].get("namespace", ""), document["metadata"]["name"]


def _token(place: _Place) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def _read(token: str) -> _Place:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)), type=_Place)
    except (ValueError, msgspec.DecodeError):
        raise bad_request("invalid continue token: continue key is not valid") from None
