"""The configurations for FlavourClusterWide are valid, without notes, and true to their comments."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.apps import profile_loader
from stowplan.kube.resources import RESOURCES

DEPLOY = Path(__file__).parents[2] / "deploy"
OPENSHIFT = DEPLOY / "openshift"
NAME = "secondary-scheduler"


def of_config_map(file: Path) -> str:
    text: str = yaml.safe_load(file.read_text(encoding="utf-8"))["data"]["config.yaml"]
    return text


@pytest.mark.parametrize(
    ("text", "label", "lease"),
    [
        pytest.param(
            (DEPLOY / "profiles" / NAME / "config.yaml").read_text(encoding="utf-8"),
            "flavour",
            "kube-system/stowplan",
            id="the profile",
        ),
        pytest.param(
            of_config_map(OPENSHIFT / "config.yaml"),
            "flavour",
            "openshift-secondary-scheduler-operator/secondary-scheduler",
            id="for the operator",
        ),
        pytest.param(
            of_config_map(OPENSHIFT / "config-custom-label.yaml"),
            "tier",
            "openshift-secondary-scheduler-operator/secondary-scheduler",
            id="for the operator, with another label",
        ),
    ],
)
def test_a_configuration_is_valid_and_names_its_lease(text: str, label: str, lease: str) -> None:
    configuration, profiles = profile_loader.configured(text)
    election = configuration.leader_election
    assert configuration.notes == ()
    assert list(profiles) == [NAME]
    plugin = profiles[NAME].plugin("FlavourClusterWide")
    assert plugin is not None and plugin._label == label
    assert f"{election.resource_namespace}/{election.resource_name}" == lease


def test_its_weight_exceeds_that_of_resources_spreading_and_images_together() -> None:
    weights = {enabled.name: enabled.weight for enabled in profile().scorers}
    others = ("NodeResourcesFit", "NodeResourcesBalancedAllocation", "PodTopologySpread", "ImageLocality")
    assert weights["FlavourClusterWide"] > sum(weights[name] for name in others) == 5


def profile() -> Any:
    return profile_loader.read_configuration(DEPLOY / "profiles" / NAME / "config.yaml")[1][NAME]


def test_it_reads_only_what_the_default_profile_reads() -> None:
    """The rights of deploy/rbac.yaml are enough."""
    assert profile().reads == profile_loader.defaults()[1]["default-scheduler"].reads


def test_the_operators_account_has_rights_that_older_kube_schedulers_lack() -> None:
    """The rest is in system:kube-scheduler and system:volume-scheduler of all supported versions."""
    documents = list(yaml.safe_load_all((OPENSHIFT / "rbac.yaml").read_text(encoding="utf-8")))
    (role,) = (each for each in documents if each["kind"] == "ClusterRole")
    granted = {(rule["apiGroups"][0], each) for rule in role["rules"] for each in rule["resources"]}
    of_claims = {"resourceclaims", "resourceclaims/status", "resourceclaims/binding", "resourceclaims/driver"}
    of_devices = {("resource.k8s.io", each) for each in ("deviceclasses", "resourceslices", *of_claims)}
    assert granted == {("storage.k8s.io", "volumeattachments"), *of_devices}
    read = {(RESOURCES[kind].group, RESOURCES[kind].plural) for kind in profile().reads}
    assert {(group, each.partition("/")[0]) for group, each in granted} <= read
    subjects = [subject for each in documents for subject in each.get("subjects", ())]
    assert {(subject["namespace"], subject["name"]) for subject in subjects} == {
        ("openshift-secondary-scheduler-operator", "secondary-scheduler")
    }


def test_the_operator_has_the_image_of_this_version() -> None:
    found = yaml.safe_load((OPENSHIFT / "secondaryScheduler.yaml").read_text(encoding="utf-8"))
    assert found["spec"]["schedulerImage"] == f"stowplan:{metadata.version('stowplan')}"
    assert found["spec"]["schedulerConfig"] == "secondary-scheduler-config"
