"""The profile bin-packing-scheduler: a valid configuration, and no rights beyond those of kubenexus-scheduler."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from stowplan.apps import profile_loader
from stowplan.framework.profile import Profile

ROOT = Path(__file__).parents[2]
PROFILES = ROOT / "deploy" / "profiles"
PAGE = ROOT / "docs" / "policies" / "bin-packing.md"


def profile(folder: str = "bin-packing") -> Profile:
    configuration, profiles = profile_loader.read_configuration(PROFILES / folder / "config.yaml")
    assert not configuration.notes
    assert configuration.leader_election.resource_name == "stowplan", "the lease that deploy/rbac.yaml lets it have"
    (found,) = profiles.values()
    return found


def test_full_nodes_score_more_and_nothing_spreads() -> None:
    found = profile()
    weights = {enabled.name: enabled.weight for enabled in found.scorers}
    assert found.scheduler_name == "bin-packing-scheduler" and found.queue_sort.name == "Coscheduling"
    assert weights["NodeResourcesFit"] == 5 and "NodeResourcesBalancedAllocation" not in weights
    others = sum(weight for name, weight in weights.items() if name not in ("GangPacking", "PodTopologySpread"))
    assert weights["GangPacking"] > others, "it decides for gangs"


def test_its_plugins_need_no_other_rights_than_those_of_kubenexus() -> None:
    assert profile().reads <= profile("kubenexus-scheduler").reads


def test_the_page_shows_the_configuration() -> None:
    text = PAGE.read_text(encoding="utf-8")
    (shown,) = (yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    config: Any = yaml.safe_load((PROFILES / "bin-packing" / "config.yaml").read_text(encoding="utf-8"))
    assert shown["profiles"] == config["profiles"]


def test_the_component_replaces_the_configuration_of_the_one_before() -> None:
    found = yaml.safe_load((PROFILES / "bin-packing" / "kustomization.yaml").read_text(encoding="utf-8"))
    assert found["kind"] == "Component" and "resources" not in found
    (generated,) = found["configMapGenerator"]
    assert (generated["name"], generated["behavior"], generated["files"]) == ("stowplan", "replace", ["config.yaml"])
