"""What plugins declare to read, to bring and to write: mistakes are named, with what would be right."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from stowplan.framework import declared_kinds
from stowplan.framework.interfaces import Wake
from stowplan.objects.actions import Create, Delete, Patch, PodRef, RequestEviction, Write, status_patch
from stowplan.objects.custom_resources import CustomResource
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import ApiValue, Object, ObjectMeta

KNOWN = ("Pod", "Node", "Deployment")


class Spec(ApiValue, frozen=True):
    pods: int = 0


class TeamBudget(Object, frozen=True):
    spec: Spec = Spec()


class Deployment(Object, frozen=True):
    """Its name is taken."""


class Odd(Object, frozen=True):
    pair: "tuple[set[list[Missing]], int]" = ()  # type: ignore[name-defined, assignment] # noqa: F821, UP037


def brought(found: Any = TeamBudget, /, **changes: Any) -> CustomResource:
    fields = {"group": "example.com", "version": "v1", "plural": "teambudgets"} | changes
    return CustomResource(found, **fields)


class Declares:
    """A plugin that declares this."""

    def __init__(self, *reads: Any, writes: Any = None) -> None:
        self.reads = reads
        if writes is not None:
            self.writes = writes


def check(*plugins: Any) -> dict[str, declared_kinds.Brought]:
    return declared_kinds.check([(f"P{number}", plugin) for number, plugin in enumerate(plugins)], KNOWN)


@pytest.mark.parametrize(
    ("reads", "said"),
    [
        pytest.param(
            ("Unicorn",),
            r'plugin P0 declares reads = \("Unicorn",\), but kind Unicorn is unknown; known kinds: Deployment, Node,',
            id="an unknown kind",
        ),
        pytest.param((TeamBudget,), "plugin P0 .* neither a name nor a CustomResource; .*CustomResource", id="a type"),
        pytest.param(
            (brought(Deployment),),
            'plugin P0 brings a type Deployment, .* known already; .*kind="Deployment"',
            id="taken",
        ),
        pytest.param((brought(dict),), "plugin P0 .* of type <class 'dict'>; .*Object, frozen=True", id="no Object"),
        pytest.param((brought("Budget"),), "plugin P0 .* of type 'Budget'; .*a class of your own", id="no type at all"),
        pytest.param((brought(Object),), "plugin P0 .* of type .*Object'>; .*a class of your own", id="Object itself"),
        pytest.param((brought(Odd),), "plugin P0: CustomResource Odd: objects cannot be decoded .*Missing", id="odd"),
        pytest.param((brought(group=""),), "P0: CustomResource TeamBudget: group is ''; .*API group", id="no group"),
        pytest.param((brought(group="Example.com"),), "group is 'Example.com'; .*example.com", id="an odd group"),
        pytest.param((brought(plural="TeamBudgets"),), "plural is 'TeamBudgets'; .*lower case", id="capitals"),
        pytest.param((brought(plural="a/status"),), "plural is 'a/status'", id="a subresource"),
        pytest.param((brought(plural=""),), "plural is ''", id="no plural"),
        pytest.param((brought(version=""),), "version is ''; .*\"v1\" for example", id="no version"),
        pytest.param((brought(version=()),), r"version is \(\); name at least one", id="none of several versions"),
        pytest.param((brought(version="example.com/v1"),), "version is 'example.com/v1'", id="with the group"),
        pytest.param((brought(kind="team budget"),), "kind is 'team budget'; .*spec.names.kind", id="an odd kind"),
        pytest.param((brought(namespaced="yes"),), "namespaced is 'yes'; choose True or False", id="an odd scope"),
        pytest.param(
            (brought(writes=("update",)),),
            "writes has 'update'; choose from status, create, patch, delete",
            id="a verb",
        ),
        pytest.param((brought(writes="status"),), r"writes is 'status'; .*writes=\(\"status\",\)", id="no tuple"),
    ],
)
def test_what_cannot_be_read(reads: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check(Declares(*reads))


def test_reads_must_be_a_list() -> None:
    class Text:
        reads = "Namespace"

    with pytest.raises(ConfigError, match="plugin P0 declares reads = 'Namespace'; list names"):
        check(Text())


@pytest.mark.parametrize(
    ("writes", "said"),
    [
        pytest.param(("Deployment",), 'plugin P0 declares writes = .*; .*"Deployment": \\("patch",\\)', id="no words"),
        pytest.param({"Unicorn": ("patch",)}, "kind Unicorn is unknown; known kinds: .*TeamBudget", id="unknown"),
        pytest.param({"Pod": ("bind",)}, r"plugin P0: writes\[\"Pod\"\]: writes has 'bind'; choose from", id="a word"),
        pytest.param({"Node": ("evict",)}, "writes has 'evict'; choose from .*delete$", id="a node cannot be evicted"),
    ],
)
def test_what_cannot_be_written(writes: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check(Declares(brought(), writes=writes))


def test_a_kind_to_reconcile_must_be_known() -> None:
    class Reconciles(Declares):
        reconciles = ("TeamBudget", "TeamBudgets")

    with pytest.raises(ConfigError, match=r'plugin P0 declares reconciles = \("TeamBudgets",\), .*known kinds: .*Team'):
        check(Reconciles(brought()))


class Waits(Declares):
    def wakes_on(self) -> Iterator[Wake]:
        yield Wake("Node", ("Add",))
        yield Wake("AssignedPod", ("Delete",))
        yield Wake("TeamBudget", ("Add",))


class HasEvents(Declares):
    def cluster_events(self, *_: Any) -> tuple[()]:
        return ()


class Raises(Declares):
    def wakes_on(self) -> Iterator[Wake]:
        raise KeyError("oops")


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        pytest.param([Waits(brought())], 0, id="it brings the kind"),
        pytest.param([Waits(), Declares(brought())], 0, id="another one brings it"),
        pytest.param([Waits()], 1, id="nobody does"),
        pytest.param([Waits(), HasEvents()], 0, id="a plugin has events of its own"),
        pytest.param([Raises()], 0, id="it raises"),
    ],
)
def test_a_kind_that_is_waited_for_and_not_read_is_noted(plugins: list[Any], expected: int) -> None:
    notes = list(declared_kinds.unread_wakes((f"P{number}", each) for number, each in enumerate(plugins)))
    assert len(notes) == expected
    assert all(note.startswith("plugin P0 wakes on TeamBudget, which no plugin reads") for note in notes)


def another_type() -> type[Object]:
    class TeamBudget(Object, frozen=True):
        """Of the same name."""

    return TeamBudget


@pytest.mark.parametrize(
    ("other", "said"),
    [
        pytest.param(
            brought(another_type()), "P0 and P1 both bring a kind TeamBudget, but different types", id="types"
        ),
        pytest.param(
            brought(group="other.com"), "teambudgets.example.com/v1 .* and teambudgets.other.com/v1", id="groups"
        ),
        pytest.param(brought(plural="budgets"), "and budgets.example.com/v1", id="plurals"),
        pytest.param(brought(namespaced=False), "namespaced.* and .*cluster-wide", id="scopes"),
    ],
)
def test_two_plugins_that_differ(other: CustomResource, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check(Declares(brought()), Declares(other))


def test_two_plugins_may_bring_the_same() -> None:
    found = check(Declares("Pod", brought(writes=("status",))), Declares(brought()), Declares("Node"))
    assert {name: each.plugins for name, each in found.items()} == {"TeamBudget": ("P0", "P1")}
    assert check(Declares("Deployment")) == {}


def test_a_known_kind_may_be_read_by_a_type_of_its_own() -> None:
    class WholeDeployment(Object, frozen=True):
        """All of it."""

    found = check(Declares(brought(WholeDeployment, group="apps", plural="deployments", kind="Deployment")))
    assert found["WholeDeployment"].resource.api_kind == "Deployment"


# -- writes


class Writer:
    reads = (brought(writes=("status", "create")), "Deployment")
    writes: ClassVar = {"Deployment": ("patch",)}


BUDGET = TeamBudget(metadata=ObjectMeta(name="web", namespace="default", resource_version="7"))
CONTENT: dict[str, Any] = {"spec": {"pods": 1}}


@pytest.mark.parametrize(
    ("action", "said"),
    [
        pytest.param(status_patch(BUDGET, {"used": 1}), "", id="the status"),
        pytest.param(Create(kind="TeamBudget", key="default/web", body=CONTENT), "", id="a new object"),
        pytest.param(Patch(kind="Deployment", key="default/web", body=CONTENT), "", id="a known kind"),
        pytest.param(
            Patch(kind="TeamBudget", key="default/web", body=CONTENT),
            'patches TeamBudget default/web, .*; add "patch" to the writes of its CustomResource TeamBudget',
            id="more than the status",
        ),
        pytest.param(
            Patch(kind="TeamBudget", key="default/web", body=[{"op": "remove", "path": "/status"}]),
            'add "patch" to the writes of its CustomResource',
            id="a JSON patch goes to the object itself",
        ),
        pytest.param(
            Delete(kind="TeamBudget", key="default/web", uid="u", resource_version="1"),
            'deletes TeamBudget default/web, .*; add "delete" to the writes of its CustomResource TeamBudget',
            id="a deletion",
        ),
        pytest.param(
            Patch(kind="Deployment", key="default/web", body={"status": {}}),
            'patches the status of Deployment default/web, .*; add "status" to its writes\\["Deployment"\\]',
            id="the status of a known kind",
        ),
        pytest.param(
            RequestEviction(pod=PodRef("default", "web", "u"), message="m"),
            'evicts Pod default/web, which it does not declare; add "evict" to its writes\\["Pod"\\]',
            id="an eviction",
        ),
        pytest.param(
            Patch(kind="Pod", key="default/web", body=CONTENT), 'add "patch" to its writes\\["Pod"\\]', id="pods"
        ),
    ],
)
def test_writes_that_are_declared_or_not(action: Write, said: str) -> None:
    found = declared_kinds.undeclared(Writer(), action)
    assert re.search(said, found) if said else not found, found


@pytest.mark.parametrize("order", [1, -1])
def test_instances_of_one_plugin_may_declare_different_kinds(order: int) -> None:
    plugins = [("P", Declares(brought())), ("P", Declares())][::order]
    assert declared_kinds.check(plugins, KNOWN)["TeamBudget"].plugins == ("P",)
    wrong = [("P", Declares("Unicorn")), ("P", Declares())][::order]
    with pytest.raises(ConfigError, match="kind Unicorn is unknown"):
        declared_kinds.check(wrong, KNOWN)


def test_instances_of_one_plugin_bring_one_type() -> None:
    plugins = [("P", Declares(brought())), ("P", Declares(brought(another_type())))]
    with pytest.raises(ConfigError, match="plugin P brings a kind TeamBudget twice, but different types"):
        declared_kinds.check(plugins, KNOWN)


def test_a_note_about_two_instances_comes_once() -> None:
    class Waits(Declares):
        def wakes_on(self) -> Iterator[Wake]:
            yield Wake("Deployment", ("Add",))

    assert len(list(declared_kinds.unread_wakes([("P", Waits()), ("P", Waits())]))) == 1
    assert not list(declared_kinds.unread_wakes([("P", Waits("Deployment")), ("P", Waits())]))
