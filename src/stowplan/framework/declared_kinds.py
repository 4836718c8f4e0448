"""What plugins declare about kinds of objects: which ones they read, which ones they bring, and which ones they write.

    reads = ("Namespace", CustomResource(TeamBudget, group="example.com", version="v1", plural="teambudgets",
                                         writes=("status",)))
    writes = {"Deployment": ("patch",)}    # kinds that the plugin does not bring itself

The declarations are the truth about a plugin's rights: what it reads is watched, and a write that it did not declare is
refused before it is sent. `check` finds mistakes in a configuration's plugins before any of them is called.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from stowplan.framework.cluster_event import ASSIGNED, UNSCHEDULED
from stowplan.objects import kinds
from stowplan.objects.actions import Write, written_part
from stowplan.objects.custom_resources import WRITES, CustomResource
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object

DOING = {
    "status": "patches the status of", "create": "creates", "patch": "patches", "delete": "deletes", "evict": "evicts",
}  # fmt: skip
_label = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")  # DNS-1035, as the API server checks plurals and versions
_group = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class Brought(NamedTuple):
    """A custom resource, and the plugins that bring it."""

    resource: CustomResource
    plugins: tuple[str, ...]


# -- what one plugin declares


def resources_of(plugin: Any) -> list[CustomResource]:
    """Return the custom resources that a plugin brings."""
    return [each for each in getattr(plugin, "reads", ()) if isinstance(each, CustomResource)]


def reads_of(plugin: Any) -> list[str]:
    """Return the names of the kinds that a plugin reads besides pods and nodes."""
    return [each.name if isinstance(each, CustomResource) else each for each in getattr(plugin, "reads", ())]


def writes_of(plugin: Any) -> dict[str, frozenset[str]]:
    """Return what a plugin writes, by the name of the kind; the words are the keys of `DOING`."""
    found = {kind: frozenset(words) for kind, words in getattr(plugin, "writes", {}).items()}
    for each in resources_of(plugin):
        found[each.name] = found.get(each.name, frozenset()) | frozenset(each.writes)
    return found


def undeclared(plugin: Any, action: Write) -> str:
    """Return what is wrong with a write that the plugin did not declare; empty if it did."""
    part = written_part(action)
    if part in writes_of(plugin).get(action.kind, ()):
        return ""
    brings = any(each.name == action.kind for each in resources_of(plugin))
    where = f"the writes of its CustomResource {action.kind}" if brings else f'its writes["{action.kind}"]'
    what = DOING[part]
    return f'{what} {action.kind} {action.key}, which it does not declare; add "{part}" to {where}'


# -- objects that a test gives


def check_objects(objects: Iterable[object], plugins: Iterable[Any]) -> None:
    """Raise TypeError for an object that nobody can see: its type is not known, and none of the plugins brings it."""
    known = [*kinds.KINDS.values(), *(each.object_type for plugin in plugins for each in resources_of(plugin))]
    for each in objects:
        if type(each) not in known:
            raise TypeError(_stranger(each, known))


def _stranger(found: object, known: Iterable[type[Object]]) -> str:
    kind = type(found)
    if not isinstance(found, Object):
        return f"{found!r} is no object; a Pod, a Node or another subclass of Object was due"
    its = f"{kind.__module__}.{kind.__name__}"
    for twin in known:
        if twin.__name__ == kind.__name__:
            problem = f"{its} (of {found.key}) is another class than {twin.__module__}.{twin.__name__}"
            return f"{problem}, which plugins read; import it from the module that the configuration loads"
    problem = f"{its} (of {found.key}) is no known kind, and no plugin brings it"
    return f"{problem}; list a CustomResource of it in the reads of a plugin that is enabled"


# -- what the plugins of a configuration declare


def check(plugins: Iterable[tuple[str, Any]], known: Collection[str]) -> dict[str, Brought]:
    """Return the custom resources that these plugins, given by name, bring. `known`: the kinds that need no plugin.

    Each profile has an instance of its own, so a name may come more than once, and with other declarations.

    Raises ConfigError for a declaration that cannot be right.
    """
    listed, found = list(plugins), dict[str, Brought]()
    for name, plugin in listed:
        for resource in _checked_reads(name, getattr(plugin, "reads", ()), known):
            _check_resource(name, resource, known)
            before = found.get(resource.name)
            if before is not None:
                _check_same(before, name, resource)
            others = () if before is None else before.plugins
            found[resource.name] = Brought(resource, tuple(dict.fromkeys((*others, name))))
    for name, plugin in listed:
        _check_writes(name, getattr(plugin, "writes", {}), {*known, *found})
        _check_names(name, "reconciles", getattr(plugin, "reconciles", ()), {*known, *found})
    return found


def unread_wakes(plugins: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """Yield a note for each kind that a plugin waits for and nobody reads: changes of such a kind are not seen."""
    listed, told = list(plugins), set[tuple[str, str]]()
    if any(hasattr(plugin, "cluster_events") for _, plugin in listed):
        return  # such a plugin has events of its own
    seen = {"Pod", "Node", ASSIGNED, UNSCHEDULED, "*"}.union(*(reads_of(plugin) for _, plugin in listed))
    for name, plugin in listed:
        try:
            kinds_of_wakes = {wake.resource for wake in plugin.wakes_on()} if hasattr(plugin, "wakes_on") else set()
        except Exception:  # the engine reports it when it asks
            continue
        for kind in sorted(kinds_of_wakes - seen):
            if (name, kind) in told:
                continue
            told.add((name, kind))
            yield f"plugin {name} wakes on {kind}, which no plugin reads, so that never happens; add it to its reads"


def _checked_reads(plugin: str, declared: object, known: Collection[str]) -> list[CustomResource]:
    if not isinstance(declared, tuple | list | set | frozenset):
        remedy = 'list names of kinds and CustomResources: reads = ("Namespace",)'
        raise ConfigError(f"plugin {plugin} declares reads = {declared!r}", remedy=remedy)
    brought = [each for each in declared if isinstance(each, CustomResource)]
    names = [each for each in declared if not isinstance(each, CustomResource)]
    for each in names:
        if not isinstance(each, str):
            problem = f"plugin {plugin} declares reads = (…, {each!r}, …), which is neither a name nor a CustomResource"
            raise ConfigError(problem, remedy="describe a kind of your own by CustomResource(YourType, group=…)")
    _check_names(plugin, "reads", names, known)
    return brought


def _check_names(plugin: str, attribute: str, declared: Iterable[str], known: Collection[str]) -> None:
    for each in declared:
        if each not in known:
            problem = f'plugin {plugin} declares {attribute} = ("{each}",), but kind {each} is unknown'
            remedy = f"known kinds: {', '.join(sorted(known))}; a plugin brings another one by a CustomResource"
            raise ConfigError(problem, remedy=remedy)


def _check_resource(plugin: str, resource: CustomResource, known: Collection[str]) -> None:
    found: object = resource.object_type
    if not isinstance(found, type) or not issubclass(found, Object) or found is Object:
        problem = f"plugin {plugin} brings a CustomResource of type {found!r}"
        raise ConfigError(problem, remedy="give it a class of your own: class TeamBudget(Object, frozen=True)")
    where = f"plugin {plugin}: CustomResource {resource.name}"
    if resource.name in known:
        problem = f"plugin {plugin} brings a type {resource.name}, and {resource.name} is a kind that is known already"
        remedy = f'read it by its name, reads = ("{resource.name}",), or give your class another name'
        raise ConfigError(problem, remedy=f'{remedy} and the CustomResource kind="{resource.name}"')
    for field, right in _texts(resource):
        value: object = getattr(resource, field)
        if not isinstance(value, str) or not right.pattern.fullmatch(value):
            raise ConfigError(f"{field} is {value!r}", path=where, remedy=right.remedy)
    for version in _versions(where, resource.version):
        if not isinstance(version, str) or not _label.fullmatch(version):
            raise ConfigError(f"version is {version!r}", path=where, remedy='write it as in the CRD, "v1" for example')
    if not isinstance(resource.namespaced, bool):
        raise ConfigError(f"namespaced is {resource.namespaced!r}", path=where, remedy="choose True or False")
    _check_words(where, resource.writes)
    _check_type(where, resource.object_type)


class _Right(NamedTuple):
    pattern: re.Pattern[str]
    remedy: str


def _texts(resource: CustomResource) -> Iterable[tuple[str, _Right]]:
    yield "group", _Right(_group, 'name the API group of the CRD, "example.com" for example')
    yield "plural", _Right(_label, 'write it as spec.names.plural of the CRD: in lower case, "teambudgets" for example')
    if resource.kind:
        yield "kind", _Right(re.compile(r"[A-Za-z][A-Za-z0-9]*"), "write it as spec.names.kind of the CRD")


def _versions(where: str, declared: object) -> tuple[object, ...]:
    if isinstance(declared, tuple | list) and declared:
        return tuple(declared)
    if isinstance(declared, str):
        return (declared,)
    raise ConfigError(f"version is {declared!r}", path=where, remedy='name at least one version, "v1" for example')


def _check_words(where: str, words: object, known: tuple[str, ...] = WRITES) -> None:
    if not isinstance(words, tuple | list | set | frozenset):
        raise ConfigError(f"writes is {words!r}", path=where, remedy='list the words: writes=("status",)')
    for word in words:
        if word not in known:
            remedy = f"choose from {', '.join(known)}"
            raise ConfigError(f"writes has {word!r}", path=where, remedy=remedy)


def _check_type(where: str, found: type[Object]) -> None:
    try:
        kinds.decoder(found)
    except Exception as error:  # msgspec raises whatever it stumbles over in the annotations
        problem = f"objects cannot be decoded into {found.__name__}: {' '.join(str(error).split())}"
        remedy = "use field types that msgspec supports, such as str, int, tuple[str, ...] and ApiValue classes"
        raise ConfigError(problem, path=where, remedy=remedy) from None


def _check_same(before: Brought, plugin: str, resource: CustomResource) -> None:
    first = before.resource
    same = first.object_type is resource.object_type and _address(first) == _address(resource)
    if not same:
        what = (
            "different types"
            if first.object_type is not resource.object_type
            else f"{_told(first)} and {_told(resource)}"
        )
        first_name = before.plugins[0]
        who = f"plugins {first_name} and {plugin} both bring" if first_name != plugin else f"plugin {plugin} brings"
        twice = "" if first_name != plugin else " twice"
        problem = f"{who} a kind {resource.name}{twice}, but {what}"
        raise ConfigError(problem, remedy="import one CustomResource in both plugins, or rename one of the types")


def _address(resource: CustomResource) -> tuple[object, ...]:
    return resource.group, resource.plural, resource.versions, resource.namespaced, resource.api_kind


def _told(resource: CustomResource) -> str:
    scope = "namespaced" if resource.namespaced else "cluster-wide"
    return f"{resource.plural}.{resource.group}/{','.join(resource.versions)} ({resource.api_kind}, {scope})"


def _check_writes(plugin: str, declared: object, known: Collection[str]) -> None:
    if not isinstance(declared, Mapping):
        remedy = 'name the kinds and what is done with them: writes = {"Deployment": ("patch",)}'
        raise ConfigError(f"plugin {plugin} declares writes = {declared!r}", remedy=remedy)
    for kind, words in declared.items():
        if kind not in known:
            problem = f'plugin {plugin} declares writes = {{"{kind}": …}}, but kind {kind} is unknown'
            remedy = f"known kinds: {', '.join(sorted(known))}; a plugin brings another one by a CustomResource"
            raise ConfigError(problem, remedy=remedy)
        _check_words(f'plugin {plugin}: writes["{kind}"]', words, (*WRITES, "evict") if kind == "Pod" else WRITES)
