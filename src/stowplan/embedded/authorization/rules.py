"""The rules of roles: what each allows, which rules cover others, and how Kubernetes writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import msgspec

from stowplan.embedded.authorization.access_request import AccessRequest
from stowplan.embedded.documents import Document

ALL = "*"
MOST_PARTS = 10_000


class TooManyPartsError(Exception):
    """Rules stand for more combinations of their values than can be compared one by one."""


class Rule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """As in a role. A rule has resources or paths ("non-resource URLs"), never both."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")

    def allows(self, request: AccessRequest) -> bool:
        if ALL not in self.verbs and request.verb not in self.verbs:
            return False
        if request.path:
            return any(_path_matches(url, request.path) for url in self.non_resource_urls)
        return (
            (ALL in self.api_groups or request.group in self.api_groups)
            and self._has_resource(request)
            and (not self.resource_names or request.name in self.resource_names)
        )

    def _has_resource(self, request: AccessRequest) -> bool:
        found = self.resources
        if ALL in found or request.full_resource in found:
            return True
        return bool(request.subresource) and f"{ALL}/{request.subresource}" in found

    def covers(self, other: Rule) -> bool:
        """True if this rule alone allows all that the other does, which has resources or paths."""
        if not _all_in(other.verbs, self.verbs):
            return False
        if other.non_resource_urls:
            own = self.non_resource_urls
            return all(any(_path_matches(url, path) for url in own) for path in other.non_resource_urls)
        return (
            _all_in(other.api_groups, self.api_groups)
            and all(self._covers_resource(each) for each in other.resources)
            and self._covers_names(other.resource_names)
        )

    def _covers_resource(self, resource: str) -> bool:
        _, _, subresource = resource.partition("/")
        if ALL in self.resources or resource in self.resources:
            return True
        return bool(subresource) and f"{ALL}/{subresource}" in self.resources

    def _covers_names(self, names: tuple[str, ...]) -> bool:
        return not self.resource_names or (bool(names) and set(names) <= set(self.resource_names))

    def shown(self) -> str:
        """The rule as an error message has it."""
        parts = (
            ("APIGroups", self.api_groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.non_resource_urls),
            ("ResourceNames", self.resource_names),
            ("Verbs", self.verbs),
        )
        return "{" + ", ".join(f"{name}:{quoted(values)}" for name, values in parts if values) + "}"


EVERYTHING = (Rule((ALL,), (ALL,), (ALL,)), Rule((ALL,), non_resource_urls=(ALL,)))  # what cluster-admin has


def quoted(values: Iterable[str]) -> str:
    """A list as Go prints it."""
    return "[" + " ".join(msgspec.json.encode(value).decode() for value in values) + "]"


def read(role: Document) -> tuple[Rule, ...]:
    return msgspec.convert(role.get("rules", ()), tuple[Rule, ...])


def missing(owned: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """What is not covered by the rules that somebody has, each part of it as a rule of its own.

    Raises `TooManyPartsError` if rules that no single one covers have more than `MOST_PARTS`: a few hundred bytes can
    stand for millions of parts.
    """
    halves = (half for rule in wanted for half in _halves(rule))
    open_rules = [half for half in halves if not any(rule.covers(half) for rule in owned)]
    if sum(map(_size, open_rules)) > MOST_PARTS:
        raise TooManyPartsError
    parts = (part for rule in open_rules for part in _parts(rule))
    return [part for part in parts if not any(rule.covers(part) for rule in owned)]


def _halves(rule: Rule) -> Iterator[Rule]:
    """What a rule says of resources, and what of paths. A valid one says nothing of one of them."""
    yield Rule(rule.verbs, rule.api_groups, rule.resources, rule.resource_names)
    if rule.non_resource_urls:
        yield Rule(rule.verbs, non_resource_urls=rule.non_resource_urls)


def _size(rule: Rule) -> int:
    """How many parts a rule has."""
    resources = len(rule.api_groups) * len(rule.resources) * max(len(rule.resource_names), 1)
    return len(rule.verbs) * (resources + len(rule.non_resource_urls))


def _parts(rule: Rule) -> Iterator[Rule]:
    """A rule for each combination of its values."""
    names: tuple[tuple[str, ...], ...] = tuple((name,) for name in rule.resource_names) or ((),)
    for group, resource, verb, name in product(rule.api_groups, rule.resources, rule.verbs, names):
        yield Rule((verb,), (group,), (resource,), name)
    for url, verb in product(rule.non_resource_urls, rule.verbs):
        yield Rule((verb,), non_resource_urls=(url,))


def compact(rules: Iterable[Rule]) -> list[Rule]:
    """The rules with the verbs for one resource in one rule."""
    others, simple = list[Rule](), dict[tuple[tuple[str, ...], ...], dict[str, None]]()
    for rule in rules:
        if rule.non_resource_urls or (len(rule.api_groups), len(rule.resources)) != (1, 1) or rule.resource_names[1:]:
            others.append(rule)
            continue
        key = (rule.api_groups, rule.resources, rule.resource_names)
        simple.setdefault(key, {}).update(dict.fromkeys(rule.verbs))
    return [*others, *(Rule(tuple(verbs), *key) for key, verbs in simple.items())]


def _all_in(wanted: Iterable[str], found: Sequence[str]) -> bool:
    return ALL in found or all(each in found for each in wanted)


def _path_matches(url: str, path: str) -> bool:
    return url in (ALL, path) or (url.endswith(ALL) and path.startswith(url.rstrip(ALL)))
