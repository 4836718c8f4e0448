"""Lists of matching objects, page by page. All pages of a list show the state at the time of its first page.

Stored documents are never changed, so a list that continues is a list of references. Only the latest few are kept; for
an older one the response is 410, as in Kubernetes after a compaction of etcd.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from stowplan.embedded.api import selectors
from stowplan.embedded.api.verbs import Api
from stowplan.embedded.change_log import Stored
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import bad_request, expired, version_too_large
from stowplan.embedded.resources import ServedResource

Matches: TypeAlias = Callable[[Document], bool]

_MAX_CONTINUED = 64


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


class Lister:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._numbers = itertools.count(1)
        self._continued: OrderedDict[int, tuple[list[Stored], int]] = OrderedDict()

    def matcher(self, resource: ServedResource, options: ListOptions) -> Matches | None:
        more = self._api.definitions.version_of(resource).fields if resource.custom else ()
        by_field = selectors.fields(options.fields, resource.collection, more)
        return selectors.matcher(selectors.labels(options.labels), by_field)

    def page(self, resource: ServedResource, options: ListOptions) -> ListPage:
        if options.token:
            number, start = _read(options.token)
            if number not in self._continued:
                raise expired(
                    "The provided continue parameter is too old to display a consistent list result. You can start a "
                    "new list without the continue parameter, or use the continue token in this response to retrieve "
                    "the remainder of the results."
                )
            items, version = self._continued[number]
            return self._cut(items, version, start, options.limit, number)
        self.check_version(options.version)
        return self._cut(self.matching(resource, options), self._api.store.version, 0, options.limit, 0)

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
        if int(text) > self._api.store.version:
            raise version_too_large(int(text), self._api.store.version)
        return int(text)

    def _cut(self, items: list[Stored], version: int, start: int, limit: int, number: int) -> ListPage:
        end = start + limit if limit > 0 else len(items)
        if end >= len(items):
            self._continued.pop(number, None)
            return ListPage(items[start:], version)
        if not number:
            number = next(self._numbers)
            self._continued[number] = items, version
            if len(self._continued) > _MAX_CONTINUED:
                self._continued.popitem(last=False)
        return ListPage(items[start:end], version, _token(number, end), len(items) - end)


def _order(document: Document) -> tuple[str, str]:
    return document["metadata"].get("namespace", ""), document["metadata"]["name"]


def _token(number: int, start: int) -> str:
    text = json.dumps({"v": "meta.k8s.io/v1", "list": number, "start": start}).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def _read(token: str) -> tuple[int, int]:
    try:
        found = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return int(found["list"]), max(int(found["start"]), 0)
    except (ValueError, KeyError, TypeError):
        raise bad_request("invalid continue token: continue key is not valid") from None
