"""The configuration with all policies: each profile equals that of its own configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from stowplan.apps import profile_loader

PROFILES = Path(__file__).parents[2] / "deploy" / "profiles"
SINGLE = ("secondary-scheduler", "sp-priority", "kosmos-scheduler", "kubenexus-scheduler")
SORT = {"queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]}}


def configuration(name: str) -> Any:
    """With the arguments that are in a file of their own."""
    found = yaml.safe_load((PROFILES / name / "config.yaml").read_text(encoding="utf-8"))
    for each in (each for profile in found["profiles"] for each in profile.get("pluginConfig", ())):
        if file := each["args"].pop("configFile", ""):
            each["args"] |= yaml.safe_load((PROFILES / name / file).read_text(encoding="utf-8"))
    return found


def test_the_profiles_equal_those_of_the_single_configurations() -> None:
    together = configuration("all")
    single = [profile for name in SINGLE for profile in configuration(name)["profiles"]]
    assert together["profiles"] == [{**each, "plugins": {**each["plugins"], **SORT}} for each in single]
    assert [each["schedulerName"] for each in together["profiles"]] == [
        "secondary-scheduler", "sp-scheduler", "kosmos-scheduler", "kubenexus-scheduler",
    ]  # fmt: skip
    for name in SINGLE:
        assert {**configuration(name), "profiles": together["profiles"]} == together


def test_each_policy_runs_in_its_own_profile_only() -> None:
    text = (PROFILES / "all" / "config.yaml").read_text(encoding="utf-8")
    found, profiles = profile_loader.configured(text)
    policies = {"FlavourClusterWide", "SPPriority", "WorkloadPolicy", "ResourceReservation", "PreExtender"}
    assert found.notes == ()
    assert {name: {enabled.name for enabled in profile.all} & policies for name, profile in profiles.items()} == {
        "secondary-scheduler": {"FlavourClusterWide"},
        "sp-scheduler": {"SPPriority"},
        "kosmos-scheduler": {"WorkloadPolicy"},
        "kubenexus-scheduler": {"ResourceReservation", "PreExtender"},
    }
    assert all("Coscheduling" in {enabled.name for enabled in profile.all} for profile in profiles.values())
