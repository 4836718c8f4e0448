"""Which device class stands for an extended resource: by its extendedResourceName, or by the class's own name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stowplan.columns.object_store import ObjectStore
from stowplan.objects import requests
from stowplan.objects.devices import IMPLICIT, DeviceClass


class ClassesOfResources:
    """The classes by extended resource. Of several with the same name the newest counts, then the first by name."""

    def __init__(self, classes: Iterable[DeviceClass]) -> None:
        self._explicit: dict[str, DeviceClass] = {}
        self._by_name = {each.name: each for each in classes}
        for each in self._by_name.values():
            name = each.spec.extended_resource_name
            if name and _takes_precedence(each, self._explicit.get(name)):
                self._explicit[name] = each

    def of(self, resource: str) -> DeviceClass | None:
        found = self._explicit.get(resource)
        if found is None and resource.startswith(IMPLICIT):
            found = self._by_name.get(resource.removeprefix(IMPLICIT))
        return found

    def backed(self, request: Mapping[str, int]) -> list[str]:
        """Return the extended resources of a request that a class stands for, by name."""
        if not self._by_name:
            return []
        wanted = (name for name, amount in request.items() if amount and may_be_backed(name))
        return sorted(name for name in wanted if self.of(name) is not None)


def may_be_backed(resource: str) -> bool:
    """True for names that a device class can stand for."""
    return resource.startswith(IMPLICIT) or requests.is_extended(resource)


def _takes_precedence(one: DeviceClass, other: DeviceClass | None) -> bool:
    if other is None:
        return True
    ones, others = _age(one), _age(other)
    return one.name < other.name if ones == others else ones > others


def _age(found: DeviceClass) -> float:
    """Return when the class was created; one without a time counts as older than all others."""
    created = found.metadata.creation_timestamp
    return float("-inf") if created is None else created.timestamp()


class KeptClasses:
    """The classes of a store, put in order again when one of them changes."""

    def __init__(self, store: ObjectStore) -> None:
        self._store, self._version = store, -1
        self._found = ClassesOfResources(())

    def current(self) -> ClassesOfResources:
        version = self._store.version_of(DeviceClass)
        if version != self._version:
            self._found, self._version = ClassesOfResources(self._store.every(DeviceClass).values()), version
        return self._found
