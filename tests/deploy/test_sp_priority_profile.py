"""The profile sp-priority: a valid configuration, its rights, and the rights for other settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.apps import profile_loader
from stowplan.framework.config.configuration import Configuration
from stowplan.framework.profile import Profile
from stowplan.kube.resources import RESOURCES
from tests.plugins.nodes.sp_priority.replicas import with_priority

ROOT = Path(__file__).parents[2]
PROFILE = ROOT / "deploy" / "profiles" / "sp-priority"
MORE_OWNERS = PROFILE / "rbac-more-owners.yaml"
SEED = ROOT / "tests" / "seeds" / "sp_priority"


def documents(file: Path, kind: str) -> list[Any]:
    return [each for each in yaml.safe_load_all(file.read_text(encoding="utf-8")) if each and each["kind"] == kind]


def rights(*files: Path) -> set[tuple[str, str]]:
    """The rights that these files grant in the group apps: resource and verb."""
    rules = [rule for file in files for role in documents(file, "ClusterRole") for rule in role["rules"]]
    of_apps = [rule for rule in rules if rule["apiGroups"] == ["apps"]]
    return {(resource, verb) for rule in of_apps for resource in rule["resources"] for verb in rule["verbs"]}


def needed(profile: Profile) -> set[tuple[str, str]]:
    kinds = profile.plugin("SPPriority").reads  # type: ignore[union-attr]
    return {(RESOURCES[kind].plural, verb) for kind in kinds for verb in ("list", "watch", "patch")}


def configured() -> tuple[Configuration, dict[str, Profile]]:
    return profile_loader.read_configuration(PROFILE / "config.yaml")


def test_the_rights_are_exactly_those_of_the_configuration() -> None:
    _, profiles = configured()
    assert rights(PROFILE / "rbac.yaml") == needed(profiles["sp-scheduler"])
    for file in (PROFILE / "rbac.yaml", MORE_OWNERS):
        (role,), (binding,) = documents(file, "ClusterRole"), documents(file, "ClusterRoleBinding")
        assert binding["roleRef"]["name"] == role["metadata"]["name"]
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "stowplan", "namespace": "kube-system"}]


@pytest.mark.parametrize("args", [{}, {"stateOwner": "Deployment"}, {"statefulSets": True}])
def test_with_the_optional_file_the_rights_suffice_for_every_setting(args: dict[str, Any]) -> None:
    wanted = needed(with_priority(**args))
    assert wanted <= rights(PROFILE / "rbac.yaml", MORE_OWNERS)
    assert (wanted <= rights(PROFILE / "rbac.yaml")) is (not args)


def test_the_optional_file_has_no_unused_right() -> None:
    both = needed(with_priority(stateOwner="Deployment", statefulSets=True))
    assert rights(PROFILE / "rbac.yaml", MORE_OWNERS) == both
    found = yaml.safe_load((PROFILE / "kustomization.yaml").read_text(encoding="utf-8"))
    assert found["resources"] == ["rbac.yaml"], "whoever wants the other one applies it"


def test_the_role_has_the_name_of_the_original_and_fewer_rights() -> None:
    (ours,), (theirs,) = (documents(file / "rbac.yaml", "ClusterRole") for file in (PROFILE, SEED))
    assert ours["metadata"]["name"] == theirs["metadata"]["name"]
    assert rights(PROFILE / "rbac.yaml") - rights(SEED / "rbac.yaml") == {("replicasets", "watch")}


def test_the_configuration_is_valid() -> None:
    configuration, profiles = configured()
    assert list(profiles) == ["sp-scheduler"] and configuration.notes == ()
    assert configuration.leader_election.resource_name == "stowplan"
    own, seeds = (yaml.safe_load((file / "sppriority.yaml").read_text()) for file in (PROFILE, SEED))
    assert own == seeds
