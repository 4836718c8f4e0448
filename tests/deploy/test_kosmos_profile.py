"""The profile kosmos-scheduler: a valid configuration, and exactly the rights that its plugins need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from stowplan.apps import profile_loader
from stowplan.framework.profile import Profile
from stowplan.kube.resources import RESOURCES
from stowplan.plugins.nodes.workload_policy.plugin import WorkloadPolicyPlugin

FOLDER = Path(__file__).parents[2] / "deploy" / "profiles" / "kosmos-scheduler"


def profile() -> Profile:
    configuration, profiles = profile_loader.read_configuration(FOLDER / "config.yaml")
    assert not configuration.notes
    assert configuration.leader_election.resource_name == "stowplan", "the lease that deploy/rbac.yaml lets it have"
    (found,) = profiles.values()
    return found


def test_the_policy_outvotes_all_other_plugins_together() -> None:
    found = profile()
    assert found.scheduler_name == "kosmos-scheduler"
    weights = {enabled.name: enabled.weight for enabled in found.scorers}
    assert weights.pop("WorkloadPolicy") > sum(weights.values()) * 100
    assert found.post_filters[0].name == "WorkloadPolicy"


def test_the_rights_match_what_the_plugin_reads_and_writes() -> None:
    needed: dict[tuple[str, str], set[str]] = {("kosmos.io", "workloadpolicies/status"): {"patch"}}
    for kind in WorkloadPolicyPlugin.reads:
        needed[RESOURCES[kind].group, RESOURCES[kind].plural] = {"list", "watch"}
    role, binding = yaml.safe_load_all((FOLDER / "rbac.yaml").read_text())
    granted: dict[tuple[str, str], set[str]] = {}
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            granted |= {(group, resource): set(rule["verbs"]) for resource in rule["resources"]}
    assert granted == needed
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "stowplan", "namespace": "kube-system"}]


def test_the_component_contains_all_files() -> None:
    found: Any = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
    assert (found["kind"], found["resources"]) == ("Component", ["../../crds", "rbac.yaml"])
