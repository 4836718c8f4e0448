"""The other objects that plugins read (claims, services, budgets …), by kind and key."""

from __future__ import annotations

from typing import TypeVar, cast

from stowplan.columns.index import SelectorIndex
from stowplan.objects import selectors
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import PodDisruptionBudget, Service

AnyObject = TypeVar("AnyObject", bound=Object)


class Store:
    def __init__(self) -> None:
        self.version = 0  # grows with every change
        self._kinds: dict[type[Object], dict[str, Object]] = {}
        self._services: SelectorIndex[str] = SelectorIndex()

    def put(self, found: Object) -> Object | None:
        """Keep an object; the answer is the one it replaces."""
        self.version += 1
        kind = self._kinds.setdefault(type(found), {})
        before = kind.get(found.key)
        self._unfile(before)
        kind[found.key] = found  # in the place of the one before, if any: the order of objects may decide a tie
        if isinstance(found, Service) and found.spec.selector:
            self._services.add(selectors.from_labels(found.spec.selector), found.key)
        return before

    def remove(self, found: Object) -> Object | None:
        self.version += 1
        before = self._kinds.get(type(found), {}).pop(found.key, None)
        self._unfile(before)
        return before

    def _unfile(self, before: Object | None) -> None:
        if isinstance(before, Service) and before.spec.selector:
            self._services.remove(selectors.from_labels(before.spec.selector), before.key)

    def get(self, kind: type[AnyObject], key: str) -> AnyObject | None:
        return cast("AnyObject | None", self._kinds.get(kind, {}).get(key))

    def every(self, kind: type[AnyObject]) -> dict[str, AnyObject]:
        """All objects of a kind by key, in the order they came; not to be changed."""
        return cast("dict[str, AnyObject]", self._kinds.get(kind, {}))

    def services_of(self, pod: Pod) -> list[Service]:
        """The services that select this pod."""
        services = self.every(Service)
        found = (services[key] for key in self._services.candidates(pod.labels))
        return [
            service
            for service in found
            if service.namespace == pod.namespace and service.spec.selector.items() <= pod.labels.items()
        ]

    def budgets(self) -> list[PodDisruptionBudget]:
        return list(self.every(PodDisruptionBudget).values())
