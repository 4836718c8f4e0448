"""deploy/follow agrees with the code: valid arguments, and exactly the rights that are needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.apps.place.commands import place
from stowplan.apps.place.follow.commands import follow
from tests.deploy.test_manifests import VERSION

FOLLOW = Path(__file__).parents[2] / "deploy" / "follow"
GROUP = "cluster.open-cluster-management.io"
LEASE = "stowplan-follow-default.web"


def only(file: str, kind: str) -> Any:
    documents = yaml.safe_load_all((FOLLOW / file).read_text(encoding="utf-8"))
    (found,) = (each for each in documents if each["kind"] == kind)
    return found


def granted(file: str) -> dict[tuple[str, str], set[str]]:
    return {
        (rule["apiGroups"][0], " ".join((resource, *rule.get("resourceNames", ())))): set(rule["verbs"])
        for rule in only(file, "Role")["rules"]
        for resource in rule["resources"]
    }


@pytest.mark.parametrize(
    ("file", "needed"),
    [
        pytest.param(
            "rbac.yaml",
            {
                (GROUP, "placements web"): {"list", "watch"},
                (GROUP, "placementdecisions"): {"list", "watch"},
                ("coordination.k8s.io", "leases"): {"create"},
                ("coordination.k8s.io", f"leases {LEASE}"): {"get", "update"},
            },
            id="on the hub",
        ),
        pytest.param(
            "member/rbac.yaml",
            {("apps", "deployments"): {"list", "get", "create", "patch", "delete"}},
            id="there",
        ),
    ],
)
def test_the_rights_are_exactly_those_needed(file: str, needed: dict[tuple[str, str], set[str]]) -> None:
    assert granted(file) == needed


def container() -> Any:
    return only("deployment.yaml", "Deployment")["spec"]["template"]["spec"]["containers"][0]


def test_the_command_line_is_valid() -> None:
    assert container()["command"] == ["/bin/stowplan", "place", "follow"] and place.commands["follow"] is follow
    found = follow.make_context("follow", list(container()["args"])).params
    namespace, _, name = found["placement"].partition("/")
    assert f"stowplan-follow-{namespace}.{name}" == LEASE
    assert {only("rbac.yaml", kind)["metadata"]["namespace"] for kind in ("Role", "ServiceAccount")} == {namespace}
    mounted = {each["mountPath"] for each in container()["volumeMounts"]}
    assert {str(found["files"][0]), str(found["clusters_dir"])} == mounted
    assert container()["ports"][0]["containerPort"] == found["secure_port"]


def test_the_image_is_of_this_version() -> None:
    (image,) = only("kustomization.yaml", "Kustomization")["images"]
    assert (image["name"], image["newTag"]) == ("stowplan", VERSION)
    assert container()["image"] == f"stowplan:{VERSION}"


def test_every_file_is_listed() -> None:
    text = (FOLLOW / "README.md").read_text(encoding="utf-8")
    files = [str(file.relative_to(FOLLOW)) for file in FOLLOW.rglob("*.yaml") if file.name != "kustomization.yaml"]
    assert [file for file in files if f"`{file}`" not in text] == []
