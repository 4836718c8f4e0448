"""Small plugins for tests of the engine: groups by label, permits that wait, and plugins that record their calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.group import Group
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_profile


class Gangs:
    """Pods with the same label `gang` are a group; the label `min` is its minimum."""

    def group_of(self, pod: Pod, cluster: Cluster) -> Group | None:
        if "gang" not in pod.labels:
            return None
        return Group(f"{pod.namespace}/{pod.labels['gang']}", int(pod.labels["min"]))

    def post_bind(self, *_: Any) -> tuple[()]:
        return ()


class Patience:
    """Pods with the label `patience` wait so many seconds for a permit, which never comes."""

    def permit(self, pod: Pod, node_name: str, cluster: Cluster) -> float | None:
        return float(pod.labels["patience"]) if "patience" in pod.labels else None


class Ledger:
    """Records reservations: a pod may reserve once, and unreserve any number of times."""

    def __init__(self) -> None:
        self.held: set[str] = set()

    def reserve(self, pod: Pod, *_: Any) -> None:
        assert pod.uid not in self.held, f"{pod.name} reserved twice"
        self.held.add(pod.uid)

    def unreserve(self, pod: Pod, *_: Any) -> None:
        self.held.discard(pod.uid)


class Notes:
    """Records its calls, and gives the answers of a test."""

    writes: ClassVar = {"ConfigMap": ("patch",), "PersistentVolumeClaim": ("patch",)}

    def __init__(self, name: str, log: list[str], **answers: Any) -> None:
        self.name, self.log, self.answers = name, log, answers

    def _say(self, point: str) -> Any:
        self.log.append(f"{self.name} {point}")
        answer = self.answers.get(point)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def reserve(self, *_: Any) -> Any:
        return self._say("reserve")

    def unreserve(self, *_: Any) -> None:
        self._say("unreserve")

    def permit(self, *_: Any) -> Any:
        return self._say("permit")

    def pre_bind(self, *_: Any) -> Any:
        return self._say("pre_bind") or ()

    def post_bind(self, *_: Any) -> Any:
        return self._say("post_bind") or ()


def profiles(**at: Iterable[Any]) -> dict[str, Profile]:
    """Return the default profile with more plugins at some points, before the default ones."""
    default = a_profile()
    added = {
        point: tuple(EnabledPlugin(_name(plugin), plugin, 1) for plugin in plugins) for point, plugins in at.items()
    }
    points: Mapping[str, tuple[EnabledPlugin[Any], ...]] = {**default.points}
    merged = {**points, **{point: bounds + points.get(point, ()) for point, bounds in added.items()}}
    return {"default-scheduler": Profile("default-scheduler", merged)}


def _name(plugin: Any) -> str:
    return str(getattr(plugin, "name", type(plugin).__name__))
