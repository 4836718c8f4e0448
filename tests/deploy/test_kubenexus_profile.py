"""The profile kubenexus-scheduler: a valid configuration, and exactly the rights that its plugins need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from stowplan.apps import profile_loader
from stowplan.framework.profile import Profile
from stowplan.kube.resources import RESOURCES
from stowplan.plugins.nodes.coscheduling.plugin import Coscheduling
from stowplan.plugins.nodes.pre_extender import PreExtender
from stowplan.plugins.nodes.resource_reservation.plugin import ResourceReservationPlugin

FOLDER = Path(__file__).parents[2] / "deploy" / "profiles" / "kubenexus-scheduler"
READ, BASE = {"list", "watch"}, FOLDER.parents[1] / "rbac.yaml"


def profile() -> Profile:
    configuration, profiles = profile_loader.read_configuration(FOLDER / "config.yaml")
    assert not configuration.notes
    assert configuration.leader_election.resource_name == "stowplan", "the lease that deploy/rbac.yaml lets it have"
    (found,) = profiles.values()
    return found


def test_its_plugins() -> None:
    found = profile()
    assert found.scheduler_name == "kubenexus-scheduler"
    assert found.queue_sort.name == "Coscheduling"
    assert {"Coscheduling", "ResourceReservation", "PreExtender"} <= {enabled.name for enabled in found.all}
    assert [enabled.name for enabled in found.group_plugins][:1] == ["Coscheduling"]
    assert [enabled.name for enabled in found.extender_label_plugins] == ["PreExtender"]


def granted(file: Path) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for each in yaml.safe_load_all(file.read_text(encoding="utf-8")):
        for rule in each.get("rules", ()):
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    found.setdefault((group, resource), set()).update(rule["verbs"])
    return found


def reading(plugin: Any) -> dict[tuple[str, str], set[str]]:
    kinds = [RESOURCES[kind] for kind in plugin.reads]
    return {(each.group, each.plural): READ for each in kinds if (each.group, each.plural) not in granted(BASE)}


def test_the_rights_match_what_the_plugins_read_and_write() -> None:
    groups = reading(Coscheduling) | reading(PreExtender)
    written = {(group, "podgroups/status"): {"patch"} for group in ("scheduling.x-k8s.io", "scheduling.k8s.io")}
    assert granted(FOLDER / "rbac.yaml") == {**groups, **written}
    api = "scheduling.kubenexus.io"
    assert granted(FOLDER / "reservations-rbac.yaml") == {
        **reading(ResourceReservationPlugin),
        (api, "resourcereservations"): READ | {"create", "patch", "delete"},
        (api, "resourcereservations/status"): {"patch"},
    }
    for file in ("rbac.yaml", "reservations-rbac.yaml"):
        role, binding = yaml.safe_load_all((FOLDER / file).read_text(encoding="utf-8"))
        assert binding["roleRef"]["name"] == role["metadata"]["name"]
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "stowplan", "namespace": "kube-system"}]


def test_the_component_contains_all_files() -> None:
    found: Any = yaml.safe_load((FOLDER / "kustomization.yaml").read_text(encoding="utf-8"))
    expected = ["../../crds/kubenexus", "rbac.yaml", "reservations-rbac.yaml"]
    assert (found["kind"], found["resources"]) == ("Component", expected)
