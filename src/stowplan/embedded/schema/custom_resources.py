"""CustomResourceDefinitions: a kind is served while its definition is stored; its objects are deleted with it.

The versions of a kind share their objects without conversion. A definition is established at once.
"""

from __future__ import annotations

from stowplan.embedded.documents import Document
from stowplan.embedded.resources import ALL_VERBS, ResourceCatalogue, ServedResource
from stowplan.embedded.schema.structural import StructuralSchema
from stowplan.embedded.timestamps import stamp

COLLECTION = "customresourcedefinitions.apiextensions.k8s.io"


class CustomResourceVersion(StructuralSchema):
    """One version of a definition: its schema, printer columns, scale subresource and selectable fields."""

    def __init__(self, version: Document) -> None:
        super().__init__(version.get("schema", {}).get("openAPIV3Schema", {}))
        self.columns: list[Document] = version.get("additionalPrinterColumns", [])
        self.scale: Document = version.get("subresources", {}).get("scale") or {}
        fields = [each.get("jsonPath", "") for each in version.get("selectableFields", ())]
        self.fields: tuple[str, ...] = tuple(path.lstrip(".") for path in fields)


class Definitions:
    """Keeps the catalogue in line with the stored definitions."""

    def __init__(self, catalogue: ResourceCatalogue) -> None:
        self._catalogue = catalogue
        self._served: dict[tuple[str, str], CustomResourceVersion] = {}  # by collection and version

    def version_of(self, resource: ServedResource) -> CustomResourceVersion:
        return self._served[resource.collection, resource.version]

    def install(self, definition: Document) -> None:
        self.remove(definition)
        spec = definition["spec"]
        for version in _preferred_first(spec["versions"]):
            if version.get("served"):
                resource = _resource(spec, version)
                self._served[resource.collection, resource.version] = CustomResourceVersion(version)
                self._catalogue.add(resource)

    def remove(self, definition: Document) -> str:
        """Stop serving the versions of a definition, and return the name of the collection of its objects."""
        spec = definition["spec"]
        group, plural = spec["group"], spec["names"]["plural"]
        self._catalogue.remove(group, plural)
        collection = f"{plural}.{group}"
        for key in [key for key in self._served if key[0] == collection]:
            del self._served[key]
        return collection


def _preferred_first(versions: list[Document]) -> list[Document]:
    """Sort versions: v2, v1, v1beta2, v1beta1, v1alpha1, then the others by name."""

    def rank(version: Document) -> tuple[int, int, int, str]:
        name = version["name"]
        digits = "".join(letter if letter.isdigit() else " " for letter in name).split()
        stage = 0 if "beta" not in name and "alpha" not in name else 1 if "beta" in name else 2
        if not name.startswith("v") or not digits:
            return 3, 0, 0, name
        return stage, -int(digits[0]), -int(digits[1]) if len(digits) > 1 else 0, name

    return sorted(versions, key=rank)


def _resource(spec: Document, version: Document) -> ServedResource:
    names, below = spec["names"], version.get("subresources", {})
    return ServedResource(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        subresources=tuple(name for name in ("scale", "status") if name in below),
        verbs=ALL_VERBS,
        singular=names.get("singular", ""),
        list_kind=names.get("listKind", ""),
        custom=True,
    )


def established(definition: Document, now: float) -> Document:
    """The status of an established definition."""
    spec = definition["spec"]
    stored = [version["name"] for version in spec["versions"] if version.get("storage")]
    before = {each["type"]: each for each in definition.get("status", {}).get("conditions", ())}
    conditions = [
        _condition("NamesAccepted", "NoConflicts", "no conflicts found", before, now),
        _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", before, now),
    ]
    known = definition.get("status", {}).get("storedVersions", [])
    versions = known + [name for name in stored if name not in known]
    return {"acceptedNames": spec["names"], "conditions": conditions, "storedVersions": versions}


def _condition(kind: str, reason: str, message: str, before: dict[str, Document], now: float) -> Document:
    since = before[kind]["lastTransitionTime"] if kind in before else stamp(now)
    return {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": since}
