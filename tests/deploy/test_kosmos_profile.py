"""The profile kosmos-scheduler: a valid configuration, and exactly the rights that its plugins need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from stowplan.apps import profile_loader, rights
from stowplan.framework.profile import Profile
from stowplan.kube.resources import RESOURCES
from stowplan.plugins.nodes.workload_policy.plugin import WorkloadPolicyPlugin

FOLDER = Path(__file__).parents[2] / "deploy" / "profiles" / "kosmos-scheduler"


MORE = FOLDER / "keep-ratios"
LEAVES = FOLDER / "leaf-nodes"


def profile(folder: Path = FOLDER) -> Profile:
    configuration, profiles = profile_loader.read_configuration(folder / "config.yaml")
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
    assert granted(FOLDER / "rbac.yaml") == needed


def granted(file: Path) -> dict[tuple[str, str], set[str]]:
    """What the account of deploy/rbac.yaml may do by the role in a file."""
    role, binding = yaml.safe_load_all(file.read_text())
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "stowplan", "namespace": "kube-system"}]
    found: dict[tuple[str, str], set[str]] = {}
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            found |= {(group, resource): set(rule["verbs"]) for resource in rule["resources"]}
    return found


def test_the_component_contains_all_files() -> None:
    found: Any = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
    assert (found["kind"], found["resources"]) == ("Component", ["../../crds", "rbac.yaml"])


def test_keeping_ratios_is_the_same_profile_with_arguments() -> None:
    plain, more = (yaml.safe_load((each / "config.yaml").read_text()) for each in (FOLDER, MORE))
    (given,) = more["profiles"][0].pop("pluginConfig")
    assert more == plain
    assert given == {"name": "WorkloadPolicy", "args": {"deletionCost": True, "evictionsPerMinute": 6}}


def test_keeping_ratios_has_exactly_the_further_rights_that_it_needs() -> None:
    needed = rights.beyond([profile(MORE)])
    for key in rights.beyond([profile()]):
        del needed[key]
    assert granted(MORE / "rbac.yaml") == needed == {("", "pods"): {"patch"}, ("", "pods/eviction"): {"create"}}


def test_keeping_ratios_is_a_component_beside_the_profile() -> None:
    found: Any = yaml.safe_load((MORE / "kustomization.yaml").read_text())
    assert (found["kind"], found["resources"]) == ("Component", ["rbac.yaml"])
    assert found["configMapGenerator"][0]["behavior"] == "merge"


def test_leaf_nodes_has_exactly_the_further_rights_that_their_plugins_need(tmp_path: Path) -> None:
    document = yaml.safe_load((FOLDER / "config.yaml").read_text())
    names = ("LeafNodeTaintToleration", "LeafNodeVolumeBinding", "LeafNodeDistribution")
    document["profiles"][0]["plugins"]["multiPoint"]["enabled"] += [{"name": name} for name in names]
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(document))
    _, profiles = profile_loader.read_configuration(tmp_path / "config.yaml")
    needed = rights.beyond(list(profiles.values()))
    for key in rights.beyond([profile()]):
        del needed[key]
    assert granted(LEAVES / "rbac.yaml") == needed
    assert needed.keys() == {("kosmos.io", "distributionpolicies"), ("kosmos.io", "clusterdistributionpolicies")}
    found: Any = yaml.safe_load((LEAVES / "kustomization.yaml").read_text())
    assert (found["kind"], found["resources"]) == ("Component", ["rbac.yaml"])
