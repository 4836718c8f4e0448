"""The profile sp-priority: a configuration that can be used, and the rights of its seed with what is missing there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.apps import wiring
from stowplan.framework.profile import Profile
from stowplan.kube.resources import RESOURCES
from tests.plugins.nodes.replicas import with_priority

ROOT = Path(__file__).parents[2]
PROFILE = ROOT / "deploy" / "profiles" / "sp-priority"
SEED = ROOT / "tests" / "seeds" / "sp_priority"


def documents(file: Path, kind: str) -> list[Any]:
    return [each for each in yaml.safe_load_all(file.read_text(encoding="utf-8")) if each and each["kind"] == kind]


def rights(*files: Path) -> set[tuple[str, str]]:
    """What the roles in these files allow: resource and verb, of the group apps."""
    rules = [rule for file in files for role in documents(file, "ClusterRole") for rule in role["rules"]]
    of_apps = [rule for rule in rules if rule["apiGroups"] == ["apps"]]
    return {(resource, verb) for rule in of_apps for resource in rule["resources"] for verb in rule["verbs"]}


def needed(profile: Profile) -> set[tuple[str, str]]:
    kinds = profile.plugin("SPPriority").reads  # type: ignore[union-attr]
    return {(RESOURCES[kind].plural, verb) for kind in kinds for verb in ("list", "watch", "patch")}


@pytest.mark.parametrize("args", [{}, {"stateOwner": "Deployment"}, {"statefulSets": True}])
def test_the_rights_are_enough_for_every_setting(args: dict[str, Any]) -> None:
    assert needed(with_priority(**args)) <= rights(PROFILE / "rbac.yaml")


def test_the_rights_are_those_of_the_seed_and_what_is_missing_there() -> None:
    beyond = {("replicasets", "watch"), ("replicasets/status", "watch")}
    beyond |= {(owner, verb) for owner in ("deployments", "statefulsets") for verb in ("list", "watch", "patch")}
    assert rights(PROFILE / "rbac.yaml") - rights(SEED / "rbac.yaml") == beyond
    assert rights(SEED / "rbac.yaml") <= rights(PROFILE / "rbac.yaml")
    (ours,), (theirs,) = (documents(file / "rbac.yaml", "ClusterRoleBinding") for file in (PROFILE, SEED))
    assert ours["roleRef"] == theirs["roleRef"] and theirs["subjects"][0] in ours["subjects"]


def test_the_configuration_is_one_that_can_be_used() -> None:
    text = (PROFILE / "config.yaml").read_text(encoding="utf-8").replace("/etc/stowplan/", f"{PROFILE}/")
    configuration, profiles = wiring.configured(text)
    assert list(profiles) == ["sp-scheduler"] and configuration.notes == ()
    assert configuration.leader_election.resource_name == "stowplan"
    own, seeds = (yaml.safe_load((file / "sppriority.yaml").read_text()) for file in (PROFILE, SEED))
    assert own == seeds
