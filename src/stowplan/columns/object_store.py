"""Objects other than pods and nodes that plugins read (claims, services, budgets), by kind and key."""

from __future__ import annotations

from typing import Any, TypeVar

from stowplan.columns.pods.selector_index import SelectorIndex
from stowplan.objects import selectors
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import PodDisruptionBudget, Service

AnyObject = TypeVar("AnyObject", bound=Object)
LONGEST_LOG = 1 << 14


class ChangedKeys:
    """The objects of one kind that changed, in the order of their changes: for an index that follows them."""

    __slots__ = ("_log", "end")

    def __init__(self) -> None:
        self._log: list[tuple[str, bool]] = []
        self.end = 1  # a number for the place after the last change

    def add(self, key: str, *, removed: bool) -> None:
        self._log.append((key, removed))
        self.end += 1
        if len(self._log) > LONGEST_LOG:
            del self._log[: LONGEST_LOG // 2]

    def since(self, place: int) -> list[tuple[str, bool]] | None:
        """Return the changes from this place on, with True for removals; None if they are not known any more."""
        number = self.end - place
        return None if place == 0 or number > len(self._log) else self._log[len(self._log) - number :]


class ObjectStore:
    def __init__(self) -> None:
        self.version = 0  # grows with every change
        self._versions: dict[type[Object], int] = {}
        self._kinds: dict[type[Object], dict[str, Any]] = {}
        self._followed: dict[type[Object], ChangedKeys] = {}
        self._services: SelectorIndex[str] = SelectorIndex()
        self._budgets: SelectorIndex[str] = SelectorIndex()
        self._selectors: dict[str, selectors.Selector] = {}  # of budgets, by key

    def put(self, found: Object) -> Object | None:
        """Add an object; return the one that it replaces."""
        self._count(found, removed=False)
        kind = self._kinds.setdefault(type(found), {})
        before = kind.get(found.key)
        self._unindex(before)
        kind[found.key] = found  # keeps the position of the one before: the order of objects may decide a tie
        self._index(found)
        return before

    def remove(self, found: Object) -> Object | None:
        self._count(found, removed=True)
        before: Object | None = self._kinds.get(type(found), {}).pop(found.key, None)
        self._unindex(before)
        return before

    def _index(self, found: Object) -> None:
        """Index services and budgets by the labels they select."""
        if isinstance(found, Service) and found.spec.selector:
            self._services.add(selectors.from_labels(found.spec.selector), found.key)
        elif isinstance(found, PodDisruptionBudget):
            selector = selectors.compile_selector(found.spec.selector)
            if selector:
                self._selectors[found.key] = selector
                self._budgets.add(selector, found.key)

    def _unindex(self, before: Object | None) -> None:
        if isinstance(before, Service) and before.spec.selector:
            self._services.remove(selectors.from_labels(before.spec.selector), before.key)
        elif isinstance(before, PodDisruptionBudget) and before.key in self._selectors:
            self._budgets.remove(self._selectors.pop(before.key), before.key)

    def version_of(self, kind: type[Object]) -> int:
        """Return a number that grows with every change of an object of this kind."""
        return self._versions.get(kind, 0)

    def _count(self, found: Object, *, removed: bool) -> None:
        kind = type(found)
        self.version += 1
        self._versions[kind] = self._versions.get(kind, 0) + 1
        if kind in self._followed:
            self._followed[kind].add(found.key, removed=removed)

    def follow(self, kind: type[Object]) -> ChangedKeys:
        """Return the changes of a kind's objects, which are noted from now on."""
        return self._followed.setdefault(kind, ChangedKeys())

    def get(self, kind: type[AnyObject], key: str) -> AnyObject | None:
        of_kind = self._kinds.get(kind)
        return None if of_kind is None else of_kind.get(key)

    def named(self, kind: str, key: str) -> Object | None:
        """Return an object by the name of its kind."""
        return next((each.get(key) for found, each in self._kinds.items() if found.__name__ == kind), None)

    def every(self, kind: type[AnyObject]) -> dict[str, AnyObject]:
        """Return all objects of a kind by key, in the order of their creation; must not be changed."""
        return self._kinds.get(kind, {})

    def services_of(self, pod: Pod) -> list[Service]:
        """Return the services that select this pod."""
        services = self.every(Service)
        if not services:
            return []
        found = (services[key] for key in self._services.candidates(pod.labels))
        return [
            service
            for service in found
            if service.namespace == pod.namespace and service.spec.selector.items() <= pod.labels.items()
        ]

    def budgets_of(self, pod: Pod) -> list[PodDisruptionBudget]:
        """Return the disruption budgets that select this pod. A budget without conditions selects nothing."""
        if not pod.labels:
            return []
        budgets = self.every(PodDisruptionBudget)
        found = dict.fromkeys(self._budgets.candidates(pod.labels)) if budgets else {}
        chosen = (budgets[key] for key in found if selectors.matches(self._selectors[key], pod.labels))
        return [budget for budget in chosen if budget.namespace == pod.namespace]
