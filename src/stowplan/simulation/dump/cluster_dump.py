"""A dump of a cluster: which of its objects are in it, what of each, and under which names.

dump = ClusterDump(documents)
dump.plain()                    # the documents of a List that kubectl and everything of ours reads
dump.anonymised(key)            # the same with names replaced; the key must be random, or secret
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import msgspec

from stowplan.kube.resources import ApiResource
from stowplan.objects import kinds
from stowplan.objects.applications import NAMES, POD_GROUP
from stowplan.simulation.dump.contents import CONTENTS, PLAIN_ONLY
from stowplan.simulation.dump.fields import Document, Treatment, dumped
from stowplan.simulation.dump.substitutes import Substitutes
from stowplan.simulation.dump.treatments import Anonymised, AsTheyAre

LEASE_NAMESPACE = "kube-system"  # where the leases of schedulers are
GROUPED = (POD_GROUP, *NAMES)
COMPARISONS = ("Gt", "Lt")
EVENT = CONTENTS["Event"]
PLAIN = {CONTENTS[name] for name in PLAIN_ONLY}
Json = dict[str, Any]
Told = Callable[[], None]


class ClusterDump:
    """The objects that decisions depend on. `left_out`: how many objects of each kind are not in the dump.

    {"apiVersion": "v1", "kind": "List", "items": ClusterDump(documents).anonymised(key)}
    """

    def __init__(
        self,
        documents: Iterable[Document],
        keep: Collection[str] = (),
        brought: Collection[ApiResource] = (),
    ) -> None:
        """`keep`: annotations that stay, and for `anonymised` words that are not replaced. `brought`: the resources
        that plugins bring.
        """
        self._keep, self._brought = keep, brought
        self.left_out: Counter[str] = Counter()
        self._documents: list[tuple[type[msgspec.Struct], Document]] = []
        plain = AsTheyAre(keep)
        events: list[Document] = []
        for document in documents:
            kind = kinds.name_of(document)
            if kind == "Event":
                events.append(document)
            elif (found := self._type_of(kind, document)) is None or not _is_needed(kind, document):
                self.left_out[str(document.get("kind", ""))] += 1
            else:
                self._documents.append((found, dumped(found, document, plain)))
        self._use_images()
        self._add_events(events, plain)

    def _type_of(self, kind: str, document: Document) -> type[msgspec.Struct] | None:
        """Return the type that has the fields of a document; None for one that nobody reads."""
        found = next((each for each in self._brought if each.matches(document)), None)
        return CONTENTS.get(kind) if found is None else found.object_type

    def __len__(self) -> int:
        return len(self._documents)

    def plain(self) -> list[Json]:
        return [dict(document) for _, document in self._documents]

    def anonymised(self, key: bytes, on_document: Told = lambda: None) -> list[Json]:
        """Return the documents with substitutes for names. Kinds with names in sentences or expressions are missing."""
        every = [document for _, document in self._documents]
        substitutes = Substitutes(key, keep=self._keep, compared=compared(every), numbered=set(numbered(every)))
        treatment: Treatment = Anonymised(substitutes, self._keep)
        found = []
        for kind, document in self._documents:
            if kind not in PLAIN:
                found.append(dumped(kind, document, treatment))
            on_document()
        return found

    def _use_images(self) -> None:
        """Leave out the images of nodes that no pod uses: they are the largest part of most nodes."""
        used = {image for _, document in self._documents for image in _texts_at(document, ("image", "reference"))}
        used |= {f"{image}:latest" for image in used}
        for kind, document in self._documents:
            status = document.get("status")
            images = status.get("images") if kind is CONTENTS["Node"] and isinstance(status, dict) else None
            if isinstance(images, list):
                named = [each for each in images if isinstance(each, dict) and isinstance(each.get("names"), list)]
                kept = [{**each, "names": [name for name in each["names"] if name in used]} for each in named]
                status["images"] = [each for each in kept if each["names"]]  # type: ignore[index]

    def _add_events(self, events: Iterable[Document], plain: Treatment) -> None:
        """Add the events of pods that wait for a node."""
        waiting = {
            (_metadata(document).get("namespace"), _metadata(document).get("name"))
            for kind, document in self._documents
            if kind is CONTENTS["Pod"] and not _part(document, "spec").get("nodeName")
        }
        for event in events:
            about = event.get("regarding") or event.get("involvedObject")
            regards_waiting = (
                isinstance(about, dict)
                and about.get("kind") == "Pod"
                and (about.get("namespace"), about.get("name")) in waiting
            )
            if regards_waiting:
                self._documents.append((EVENT, dumped(EVENT, event, plain)))
            else:
                self.left_out["Event"] += 1


def compared(documents: Iterable[Document]) -> set[str]:
    """Return the values of labels and taints that some pod compares by Gt or Lt."""
    listed = list(documents)
    keys, found = set(), set()
    for condition in _mappings(listed):
        if condition.get("operator") in COMPARISONS:
            keys.add(condition.get("key"))
            found |= {each for each in (condition.get("value"), *_list(condition.get("values"))) if _is_text(each)}
    if not keys:
        return set()
    for each in _mappings(listed):
        if each.get("key") in keys and _is_text(each.get("value")):
            found.add(each["value"])
        labels = each.get("labels")
        if isinstance(labels, dict):
            found |= {value for key, value in labels.items() if key in keys and _is_text(value)}
    return found


def numbered(documents: Iterable[Document]) -> Iterator[str]:
    """Yield the names whose pods, or whose pods' claims, end with an ordinal."""
    for document in documents:
        kind, name, spec = document.get("kind"), _name(document), _part(document, "spec")
        if kind == "StatefulSet":
            yield name
            yield from (f"{_name(claim)}-{name}" for claim in _dicts(spec.get("volumeClaimTemplates")))
        elif kind == "Job" and spec.get("completionMode") == "Indexed":
            yield name
        elif kind == "Pod":
            owners = _dicts(_metadata(document).get("ownerReferences"))
            yield from (str(each.get("name")) for each in owners if each.get("kind") == "StatefulSet")


def _is_needed(kind: str, document: Document) -> bool:
    metadata = _metadata(document)
    if kind == "Lease":
        return metadata.get("namespace") == LEASE_NAMESPACE
    if kind != "Pod" or _part(document, "status").get("phase") not in ("Succeeded", "Failed"):
        return True
    owners, labels = _dicts(metadata.get("ownerReferences")), _part(metadata, "labels")
    of_job = any(each.get("kind") == "Job" for each in owners)
    return of_job or any(key in labels for key in GROUPED)  # a Job, or a group, counts its pods that have ended


def _texts_at(value: Any, names: tuple[str, ...]) -> Iterator[str]:
    for each in _mappings([value]):
        yield from (text for name in names if isinstance(text := each.get(name), str))


def _mappings(values: list[Any]) -> Iterator[Document]:
    """Yield every mapping within these values."""
    left = list(values)
    while left:
        value = left.pop()
        if isinstance(value, dict):
            yield value
            left.extend(each for each in value.values() if isinstance(each, dict | list))
        else:
            left.extend(each for each in value if isinstance(each, dict | list))


def _metadata(document: Document) -> Document:
    return _part(document, "metadata")


def _part(document: Document, name: str) -> Document:
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def _name(document: Document) -> str:
    return str(_metadata(document).get("name"))


def _dicts(value: Any) -> list[Document]:
    return [each for each in _list(value) if isinstance(each, dict)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
