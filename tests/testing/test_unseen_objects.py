"""An object that no plugin can see is refused at once, with the reason: most often there are two classes of a kind."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.objects.custom_resources import CustomResource
from stowplan.objects.meta import Object, ObjectMeta
from stowplan.testing import World, a_pod, a_profile_of, check_plugin


def a_kind() -> type[Object]:
    """Return a new class: each call is one more import of the same file."""

    class LicensePool(Object, frozen=True):
        seats: int = 0

    return LicensePool


class Seats:
    def __init__(self, kind: type[Object]) -> None:
        self.reads = (CustomResource(kind, group="example.com", version="v1", plural="licensepools"),)

    def filter(self, pod: Any, nodes: Any) -> Any:
        return ()


def a_pool(kind: type[Object]) -> Object:
    return kind(metadata=ObjectMeta(name="cad", namespace="default"))


MINE, OTHER = a_kind(), a_kind()
IDLE = {"filter": "it rejects nothing"}
TWINS = f"{__name__}.LicensePool (of default/cad) is another class than {__name__}.LicensePool"


def test_an_object_of_the_plugins_own_class_is_seen() -> None:
    world = World(profiles={"default-scheduler": a_profile_of(Seats(MINE))})
    world.submit(a_pool(MINE))
    world.delete(a_pool(MINE))
    assert world.objects == {}
    assert check_plugin(Seats(MINE), objects=[a_pool(MINE)], idle=IDLE, clusters=2) == []


def test_an_object_of_the_twin_of_a_class_is_refused() -> None:
    world = World(profiles={"default-scheduler": a_profile_of(Seats(MINE))})
    for refuse in (world.submit, world.delete):
        with pytest.raises(TypeError) as caught:
            refuse(a_pool(OTHER))
        assert str(caught.value).startswith(TWINS)
        assert str(caught.value).endswith("import it from the module that the configuration loads")
    with pytest.raises(TypeError, match="is another class than"):
        check_plugin(Seats(MINE), objects=[a_pool(OTHER)])


def test_an_object_that_nobody_brings_is_refused() -> None:
    with pytest.raises(TypeError, match=r"is no known kind, and no plugin brings it; list a CustomResource"):
        World().submit(a_pool(MINE))
    with pytest.raises(TypeError, match="'web' is no object"):
        World().submit("web")  # type: ignore[arg-type]


def test_nothing_is_submitted_if_one_object_is_refused() -> None:
    world = World()
    with pytest.raises(TypeError):
        world.submit(a_pod(), a_pool(MINE))
    assert world.objects == {}
