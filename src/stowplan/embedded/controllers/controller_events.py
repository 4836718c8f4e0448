"""Writes the events of controllers: a repeated one is counted, and many similar ones are combined.

What is known of an event goes when the event goes (after an hour, or with its namespace).
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from stowplan.embedded.api.request_options import RequestOptions
from stowplan.embedded.api.verbs import Api
from stowplan.embedded.controllers.actions import RecordEvent
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.store import StoreChange
from stowplan.embedded.timestamps import stamp

EVENTS = "events"
_MAX_SIMILAR = 10  # events with the same reason about one object before they are combined
_SIMILAR_WITHIN = 600.0  # seconds
_COMBINED = "(combined from similar events): "

Subject: TypeAlias = tuple[str, str, str]
"""The object (by its uid; if it has none, by namespace and name), the reason and the component."""


class SimilarEvents(msgspec.Struct):
    """The events about one subject.

    count   how many there were since a time
    names   the name of each event in the store, by its message; "" is that of the combined ones
    """

    since: float
    count: int = 0
    names: dict[str, str] = msgspec.field(default_factory=dict)


class ControllerEvents:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._last = 0
        self._similar: dict[Subject, SimilarEvents] = {}
        self._origins: dict[str, tuple[Subject, str]] = {}  # subject and message of each event, by its key
        api.store.listeners.append(self._forget)

    def __len__(self) -> int:
        """How many events and subjects are known."""
        return len(self._similar) + len(self._origins)

    def record(self, event: RecordEvent, message: str, now: float) -> None:
        """Create an event, or count a repeated one. Many similar events are combined into one."""
        subject = _subject(event)
        similar = self._similar.get(subject) or SimilarEvents(now)
        if now - similar.since > _SIMILAR_WITHIN:
            similar.count, similar.since = 0, now
        similar.count += 1
        text = message
        if similar.count > _MAX_SIMILAR:
            text, message = "", f"{_COMBINED}{message}"
        namespace = event.about["metadata"].get("namespace", "default")
        known = similar.names.get(text)
        stored = self._api.store.get(EVENTS, f"{namespace}/{known}") if known else None
        if stored is not None:
            more = {"count": stored.get("count", 1) + 1, "lastTimestamp": stamp(now), "message": message}
            self._api.write(self._resource, {**stored, **more}, RequestOptions(now))
        elif name := self._create(event, namespace, message, now):
            self._similar[subject] = similar
            similar.names[text] = name
            self._origins[f"{namespace}/{name}"] = subject, text

    @property
    def _resource(self) -> ServedResource:
        found = self._api.catalogue.by_collection(EVENTS)
        assert found is not None
        return found

    def _create(self, event: RecordEvent, namespace: str, message: str, now: float) -> str:
        """Return the name of the new event; "" if it was refused."""
        about = event.about
        metadata = about["metadata"]
        reference = {"kind": about["kind"], "apiVersion": about["apiVersion"], "name": metadata["name"]}
        reference |= {name: metadata[name] for name in ("uid", "resourceVersion", "namespace") if name in metadata}
        self._last = max(int(now * 1e9), self._last + 1)  # names sort in the order of the events
        name = f"{metadata['name']}.{self._last:016x}"
        document: Document = {
            "metadata": {"name": name, "namespace": namespace}, "involvedObject": reference, "reason": event.reason,
            "message": message, "source": {"component": event.component}, "reportingComponent": event.component,
            "firstTimestamp": stamp(now), "lastTimestamp": stamp(now), "count": 1, "type": event.type,
        }  # fmt: skip
        try:
            self._api.create(self._resource, namespace, document, RequestOptions(now, "Ignore"))
        except ApiError:  # the namespace is terminating
            return ""
        return name

    def _forget(self, change: StoreChange) -> None:
        if change.collection != EVENTS or change.now is not None or change.key not in self._origins:
            return
        subject, text = self._origins.pop(change.key)
        names = self._similar[subject].names
        del names[text]
        if not names:
            del self._similar[subject]


def _subject(event: RecordEvent) -> Subject:
    metadata = event.about["metadata"]
    return metadata.get("uid") or f"{metadata.get('namespace', '')}/{metadata['name']}", event.reason, event.component
