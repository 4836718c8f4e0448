"""Random changes to good configurations: whatever comes out, it is read or refused with an error that can be shown."""

from __future__ import annotations

import copy
import inspect
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.apps import config_errors, profile_loader
from stowplan.apps.place import configuration as place_configuration
from stowplan.framework.config.document import camel
from stowplan.objects.errors import StowplanError
from stowplan.plugins import BUILT_IN

ROOT = Path(__file__).parents[2]
KINDS = ("KubeSchedulerConfiguration", "PlacementConfiguration")
FULL = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 2s}
clientConnection: {qps: 5, burst: 10, kubeconfig: x}
extenders:
- urlPrefix: http://127.0.0.1:1/x
  filterVerb: filter
  prioritizeVerb: prioritize
  weight: 1
  managedResources: [{name: a/b}]
  tlsConfig: {insecure: true}
  httpTimeout: 1s
profiles:
- schedulerName: stowplan
  percentageOfNodesToScore: 50
  plugins: {score: {enabled: [{name: ImageLocality, weight: 2}], disabled: [{name: "*"}]}, multiPoint: {enabled: []}}
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources: [{name: cpu, weight: 1}]
        requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]
  - {name: DefaultPreemption, args: {minCandidateNodesPercentage: 10, minCandidateNodesAbsolute: 100}}
  - {name: VolumeBinding, args: {bindTimeoutSeconds: 5}}
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 1}}
  - {name: NodeResourcesBalancedAllocation, args: {resources: [{name: cpu, weight: 1}]}}
"""
VALUES: list[Any] = [
    None, True, -1, 0, 2**63, 2**200, 10**5000, 1e308, float("inf"), float("nan"), "", "x" * 5000, "1" * 5000, "\x00",
    "\ud800", [], {}, [[]], {"a": None}, {1: 2}, {None: 1}, {(1, 2): 3}, [None], "*", "__class__", "os:system",
    "../x.py:Y", "/dev/zero", "a:b:c", ":", "100000000000000h", "-5s", ".s", "9" * 400 + "h", b"bytes", "http://[",
    "http://a:99999999/", "{}", "%s", "1e400", {"enabled": [None]}, {"name": None}, {"a": {"b": {"c": 1}}},
]  # fmt: skip
KEYS: list[Any] = ["x", "args", "name", "enabled", "weight", "plugins", 1, None]
LETTERS = "{}[]:,&*!|>-\"'#%@`\n\t \x00\x85\ue000é<0"
PIECES = [
    "<<: *a", "&a ", "*a ", "!!float x", "!!binary x", "!!python/object:x ", "---\n", "...\n", "? ", "%YAML 3.0\n",
    "!!set {a}", "!!omap [a: 1]", "\ufeff", ": ", "\"\\ud800\"",
]  # fmt: skip


def seeds() -> list[dict[str, Any]]:
    """Every configuration in deploy/ and examples/, one with all settings, and one for each plugin with arguments."""
    files = [*ROOT.glob("deploy/**/*.yaml"), *ROOT.glob("examples/**/*.yaml")]
    files = [each for each in files if "templates" not in each.parts]  # Helm's are no YAML
    found = [each for file in sorted(files) for each in _configurations(file.read_text(encoding="utf-8"))]
    for name, plugin in BUILT_IN.items():
        document = yaml.safe_load(FULL)
        profile = document["profiles"][0]
        profile["plugins"]["multiPoint"]["enabled"].append({"name": name})
        if all(entry["name"] != name for entry in profile["pluginConfig"]):
            arguments = [camel(each) for each in inspect.signature(plugin).parameters if each not in ("args", "kwargs")]
            profile["pluginConfig"].append({"name": name, "args": dict.fromkeys(arguments, 1)})
        found.append(document)
    return found


def _configurations(text: str) -> Iterator[dict[str, Any]]:
    for document in yaml.safe_load_all(text):
        if isinstance(document, dict) and document.get("kind") == "ConfigMap":
            for inner in document.get("data", {}).values():
                yield from _configurations(inner)
        elif isinstance(document, dict) and document.get("kind") in KINDS:
            yield document


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths(item, (*path, key))


def changed(document: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """The document with one to three values in other places than they belong."""
    found = copy.deepcopy(document)
    for _ in range(draw.randint(1, 3)):
        path = draw.choice([*paths(found)])
        parent: Any = found
        for key in path[:-1]:
            parent = parent[key]
        value = copy.deepcopy(draw.choice(VALUES))
        if draw.random() < 0.8:
            parent[path[-1]] = value
        elif isinstance(parent, dict):
            parent[draw.choice(KEYS)] = value
        else:
            parent.append(value)
    return found


def damaged(text: str, draw: random.Random) -> str:
    """The text with a few letters changed, lost, or too many."""
    letters = list(text)
    for _ in range(draw.randint(1, 6)):
        at, how = draw.randrange(len(letters)), draw.random()
        if how < 0.4:
            letters[at] = draw.choice(LETTERS)
        elif how < 0.7:
            del letters[at : at + draw.randint(1, 20)]
        else:
            letters[at:at] = draw.choice(PIECES)
    return "".join(letters)


def read(document: str | dict[str, Any], file: Path) -> None:
    """Read it as its kind says: from a file, or (what no file can hold) as values."""
    if isinstance(document, dict):
        profile_loader.configured(document, folder=file.parent)
        return
    file.write_text(document, encoding="utf-8", newline="")
    if KINDS[1] in document:
        place_configuration.load_policy(file)
    else:
        profile_loader.read_configuration(file)


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(each, marks=pytest.mark.full) for each in range(4, 60))])
def test_only_errors_that_can_be_shown_escape(seed: int, tmp_path: Path) -> None:
    draw, documents = random.Random(seed), seeds()
    assert {each["kind"] for each in documents} == {*KINDS}
    for _ in range(150):
        document: str | dict[str, Any] = draw.choice(documents)
        assert isinstance(document, dict)
        if document["kind"] == KINDS[0] and draw.random() < 0.6:
            document = changed(document, draw)
        else:
            text = yaml.safe_dump(document) if draw.random() < 0.5 else json.dumps(document)
            document = damaged(text, draw)
        try:
            read(document, tmp_path / "config.yaml")
        except StowplanError as error:
            assert "cannot be used: " not in str(error), "it was not expected, and the message says little"
            str(error).encode()
            if isinstance(document, str):
                first = config_errors.find(tmp_path / "config.yaml")[0]
                assert str(first) == str(error), "all errors begin with the first one"
