"""A stream as a scenario: phases with arrivals that are drawn, and events at given times.

    apiVersion: simulation.stowplan.io/v1alpha1
    kind: Scenario
    templates:                             # Pods, PodTemplates, Deployments, Jobs, …
    - {apiVersion: v1, kind: Pod, metadata: {name: small}, spec: {containers: [{name: main, image: app}]}}
    phases:
    - name: morning
      from: 0s
      for: 4h
      arrivals:
      - template: small
        process: {poisson: 30s}            # or {fixed: 30s}: the (mean) time between two; or {burst: 50}: all at once
        duration: {lognormal: {median: 10m, sigma: 1}}
        requests: {cpu: {choice: {500m: 3, 2: 1}}}
        count: 1
        namespace: shop
        owner: alice
    events:
    - {at: 1h, fail: node-3}
    - {at: 2h, recover: node-3}
    - {at: 2h, cordon: node-4}
    - {at: 3h, uncordon: node-4}
    - {at: 3h, nodes: {name: spot, count: 10, capacity: {cpu: 8, memory: 32Gi}}}
    - {at: 4h, apply: {apiVersion: …, kind: …}}
    - {at: 5h, delete: {kind: Node, name: spot-3}}
    - {at: 6h, configure: packed}          # another configuration, by its name

Every phase's arrivals draw from a generator of their own: a change of one leaves the others as they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from stowplan.framework.config.document import ConfigValue, decode
from stowplan.objects import bounded_yaml
from stowplan.objects.bounded_yaml import YamlLimits
from stowplan.objects.errors import ConfigError
from stowplan.simulation import durations
from stowplan.simulation.clusters import GROUP, NodePool, nodes_of
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.stream_events import (
    AppliedObject,
    DeletedObject,
    NodeCordon,
    NodeFailure,
    NodeRecovery,
    PolicyChange,
    StreamEvent,
)
from stowplan.simulation.streams.arrivals import ArrivalSpec, arrivals
from stowplan.simulation.templates import Templates

KIND = "Scenario"
ALIASED = 100_000
_NOT_OF_NAMES = re.compile("[^a-z0-9]+")


class DeletedRef(ConfigValue, frozen=True):
    """The object that an event deletes."""

    kind: str
    name: str
    api_version: str = ""
    namespace: str = ""


class ScenarioEvent(ConfigValue, frozen=True):
    """One thing that happens at a time."""

    at: str | int | float
    fail: str | None = None
    recover: str | None = None
    cordon: str | None = None
    uncordon: str | None = None
    nodes: NodePool | None = None
    apply: dict[str, Any] | None = None
    delete: DeletedRef | None = None
    configure: str | None = None


class ScenarioPhase(ConfigValue, frozen=True, rename={"start": "from", "length": "for"}):
    """A part of the scenario."""

    start: str | int | float = 0
    length: str | int | float | None = None
    name: str = ""
    arrivals: tuple[ArrivalSpec, ...] = ()


class Scenario(ConfigValue, frozen=True):
    """The document above."""

    api_version: str
    kind: str
    templates: tuple[dict[str, Any], ...] = ()
    phases: tuple[ScenarioPhase, ...] = ()
    events: tuple[ScenarioEvent, ...] = ()


VERSIONS = {
    "Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1",
    "Job": "batch/v1", "CronJob": "batch/v1", "PodDisruptionBudget": "policy/v1",
    "PriorityClass": "scheduling.k8s.io/v1",
}  # fmt: skip


def from_yaml(
    text: bytes,
    templates: Templates,
    problems: InputProblems,
    seed: int,
    *,
    file: str = "scenario.yaml",
    part: str = "",
) -> list[StreamEvent]:
    """Read a scenario, and draw its arrivals. What cannot be used goes to `problems`, with its path.

    `part`: of the names of pods, if several streams would give the same ones.

    stream = stream_from_scenario(text, Templates(), problems, seed=1, file="scenario.yaml")
    """
    try:
        limits = YamlLimits(characters=len(text), nodes=len(text) + ALIASED)
        value = bounded_yaml.load(text, limits)
        if not isinstance(value, dict) or (value.get("kind"), value.get("apiVersion")) != (KIND, GROUP):
            raise ConfigError(f"found no {KIND}", remedy=f"it begins with apiVersion: {GROUP} and kind: {KIND}")
        scenario = decode(value, Scenario)
    except ConfigError as error:
        raise error.located(file) from None
    for number, template in enumerate(scenario.templates):
        try:
            templates.add(template, file=file, path=f"templates[{number}]")
        except ConfigError as error:
            problems.add(error)
    found = [*_of_phases(scenario, templates, problems, seed, file, part), *_of_events(scenario, problems, file)]
    return sorted(found, key=lambda event: event.at)


def _of_phases(
    scenario: Scenario, templates: Templates, problems: InputProblems, seed: int, file: str, part: str
) -> Iterator[StreamEvent]:
    for number, phase in enumerate(scenario.phases):
        path = f"phases[{number}]"
        try:
            start = length_of(phase.start, f"{path}.from")
            length = None if phase.length is None else length_of(phase.length, f"{path}.for")
        except ConfigError as error:
            problems.add(error.located(file))
            continue
        for each, spec in enumerate(phase.arrivals):
            where = f"{path}.arrivals[{each}]"
            generator = np.random.default_rng([seed, number, each])
            word = _NOT_OF_NAMES.sub("-", phase.name.lower()).strip("-")  # it becomes a part of names
            prefix = f"{word}-" if word else ""
            try:
                yield from list(
                    arrivals(spec, start, length, templates, generator, where, file, f"{part}{prefix}{number}-{each}")
                )
            except ConfigError as error:
                problems.add(ConfigError(error.problem, path=error.path or where, file=file, remedy=error.remedy))


def _of_events(scenario: Scenario, problems: InputProblems, file: str) -> Iterator[StreamEvent]:
    for number, event in enumerate(scenario.events):
        path = f"events[{number}]"
        try:
            yield from list(_event(event, file, path))
        except ConfigError as error:
            problems.add(error.located(file))


def _event(event: ScenarioEvent, file: str, path: str) -> Iterator[StreamEvent]:
    at = length_of(event.at, f"{path}.at")
    given = {name: value for name, value in msgspec.structs.asdict(event).items() if name != "at" and value is not None}
    if len(given) != 1:
        choices = ", ".join(each.encode_name for each in msgspec.structs.fields(ScenarioEvent)[1:])
        raise ConfigError(f"found {', '.join(given) or 'nothing'}, expected one of {choices}", path=path)
    where: dict[str, Any] = {"at": at, "file": file, "place": path}
    match next(iter(given.items())):
        case ("fail", str(name)):
            yield NodeFailure(node=name, **where)
        case ("recover", str(name)):
            yield NodeRecovery(node=name, **where)
        case (("cordon" | "uncordon") as what, str(name)):
            yield NodeCordon(node=name, cordoned=what == "cordon", **where)
        case ("nodes", NodePool() as pool):
            for node in nodes_of(pool, f"{path}.nodes"):
                yield AppliedObject(document=node, **where)
        case ("apply", dict(document)):
            yield AppliedObject(document=_with_metadata(document, f"{path}.apply"), **where)
        case ("delete", DeletedRef() as gone):
            version = gone.api_version or VERSIONS.get(gone.kind, "v1")
            yield DeletedObject(api_version=version, kind=gone.kind, name=gone.name, namespace=gone.namespace, **where)
        case ("configure", str(name)):
            yield PolicyChange(configuration=name, **where)


def _with_metadata(document: dict[str, Any], path: str) -> dict[str, Any]:
    metadata = document.get("metadata")
    if not isinstance(document.get("kind"), str) or not isinstance(metadata, Mapping):
        raise ConfigError("not a Kubernetes object", path=path, remedy="it needs apiVersion, kind and metadata")
    return document


def length_of(value: str | int | float, path: str) -> float:
    """Return the seconds of a time in the scenario."""
    found = durations.seconds(value)
    if found is None:
        raise ConfigError(f"found {value!r}, expected seconds or a text such as 90s, 2h or 3d", path=path)
    if found < 0:
        raise ConfigError(f"found {value!r}: it is negative", path=path, remedy="expected 0 or more")
    return found
