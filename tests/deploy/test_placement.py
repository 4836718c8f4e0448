"""deploy/placement agrees with the code: valid arguments, and exactly the rights that are needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.apps.place.commands import place
from stowplan.apps.place.kinds import KINDS
from stowplan.apps.place.options import OWN_LEASE
from stowplan.apps.place.service import PlacementService
from stowplan.kube.resources import RESOURCES
from stowplan.placement.availability import LEASE_NAME
from tests.deploy.test_manifests import VERSION

PLACEMENT = Path(__file__).parents[2] / "deploy" / "placement"
GROUP = "cluster.open-cluster-management.io"

# What `placement/write_plan.py` and `placement/status.py` want done, and events.
WRITTEN = {
    (GROUP, "placementdecisions"): {"get", "create", "patch", "delete"},
    (GROUP, "placementdecisions/status"): {"patch"},
    (GROUP, "placements/status"): {"patch"},
    (GROUP, "placements/finalizers"): {"update"},
    ("events.k8s.io", "events"): {"create", "patch"},
}


def only(file: str, kind: str) -> Any:
    documents = yaml.safe_load_all((PLACEMENT / file).read_text(encoding="utf-8"))
    (found,) = (each for each in documents if each["kind"] == kind)
    return found


def granted(file: str, kind: str) -> dict[tuple[str, str], set[str]]:
    rights: dict[tuple[str, str], set[str]] = {}
    for rule in only(file, kind)["rules"]:
        for resource in rule["resources"]:
            name = "".join(rule.get("resourceNames", ()))
            rights.setdefault((rule["apiGroups"][0], f"{resource}{' ' if name else ''}{name}"), set()).update(
                rule["verbs"]
            )
    return rights


def read() -> dict[tuple[str, str], set[str]]:
    return {(RESOURCES[kind].group, RESOURCES[kind].plural): {"list", "watch"} for kind in KINDS}


@pytest.mark.parametrize(
    ("file", "kind", "needed"),
    [
        pytest.param(
            "rbac.yaml",
            "ClusterRole",
            {key: read().get(key, set()) | WRITTEN.get(key, set()) for key in {*read(), *WRITTEN}},
            id="on the hub",
        ),
        pytest.param(
            "rbac.yaml",
            "Role",
            {
                ("coordination.k8s.io", "leases"): {"create"},
                ("coordination.k8s.io", f"leases {OWN_LEASE}"): {"get", "update"},
            },
            id="the lease",
        ),
        pytest.param(
            "failover/rbac.yaml",
            "ClusterRole",
            {(GROUP, "managedclusters"): {"patch"}, ("coordination.k8s.io", f"leases {LEASE_NAME}"): {"list", "watch"}},
            id="to taint clusters",
        ),
    ],
)
def test_the_rights_are_exactly_those_needed(file: str, kind: str, needed: dict[tuple[str, str], set[str]]) -> None:
    assert granted(file, kind) == needed


def arguments() -> list[str]:
    container = only("deployment.yaml", "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["/bin/stowplan", "place"]
    found: list[str] = container["args"]
    return found


def test_the_command_line_is_valid() -> None:
    (patch,) = only("failover/kustomization.yaml", "Component")["patches"]
    (operation,) = yaml.safe_load(patch["patch"])
    context = place.make_context("place", [*arguments(), operation["value"]])
    assert context.params["lease_namespace"] == only("rbac.yaml", "Role")["metadata"]["namespace"]
    assert context.params["taint_unavailable"] is True


def test_the_image_is_of_this_version() -> None:
    (image,) = only("kustomization.yaml", "Kustomization")["images"]
    assert (image["name"], image["newTag"]) == ("stowplan", VERSION)


def test_the_grace_period_is_longer_than_the_end_of_the_program() -> None:
    pod = only("deployment.yaml", "Deployment")["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > PlacementService.finish_within + PlacementService.drain_within
