"""What a scheduler is told of pods that end.

The API server of a `World` has every pod. A scheduler follows those that have not ended: one that ends is told of as
gone, as it was before. If a plugin reads finished members, those are told of as such (`objects.finished_members`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from stowplan.framework.profile import Profile
from stowplan.objects.changes import Gone, Put
from stowplan.objects.finished_members import FinishedMember, finished_member
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod


class PodWatches:
    def __init__(self, profiles: Callable[[], Iterable[Profile]]) -> None:
        self._profiles = profiles
        self._pods: dict[str, Pod] = {}  # the last version that was told, of those that have not ended, by key

    def listed(self, objects: Iterable[Object]) -> Iterator[Put | Gone]:
        """Yield what a scheduler is told when it starts."""
        self._pods.clear()
        for each in objects:
            yield from self.told(Put(each))

    def told(self, change: Put | Gone) -> Iterator[Put | Gone]:
        """Yield what a scheduler is told of a change at the API server."""
        pod = change.object
        if not isinstance(pod, Pod):
            yield change
            return
        before = self._pods.pop(pod.key, None)
        if not pod.finished:
            if isinstance(change, Put):
                self._pods[pod.key] = pod
            yield change
            return
        if before is not None:
            yield Gone(before)
        member = finished_member(pod)
        if member is not None and self._reads_members():
            yield Put(member) if isinstance(change, Put) else Gone(member)

    def _reads_members(self) -> bool:
        return any(FinishedMember.__name__ in profile.reads for profile in self._profiles())
