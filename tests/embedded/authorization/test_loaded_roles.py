"""Roles and bindings of a dump take the place of those that a cluster starts with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stowplan.embedded.authorization.role_kinds import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, GROUP
from stowplan.embedded.cluster import Embedded
from stowplan.objects.errors import ConfigError

DEFAULT = {"kubernetes.io/bootstrapping": "rbac-defaults"}
RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
JANE = [{"kind": "User", "name": "jane", "apiGroup": GROUP}]


def a_role(name: str, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "uid": "old", "labels": DEFAULT}
    return {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": RULES, **more}


def a_binding(name: str, role: str) -> dict[str, Any]:
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    return {**a_role(name), "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": JANE, "rules": None}


@pytest.mark.parametrize(
    ("document", "collection", "expected"),
    [
        pytest.param(a_role("system:discovery"), CLUSTER_ROLES, {"rules": RULES}, id="rules"),
        pytest.param(a_role("admin"), CLUSTER_ROLES, {"rules": RULES}, id="no aggregation any more"),
        pytest.param(
            a_binding("system:discovery", "view"),
            CLUSTER_ROLE_BINDINGS,
            {"subjects": JANE, "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "view"}},
            id="subjects, and another role",
        ),
    ],
)
def test_a_dump_replaces_a_default(
    tmp_path: Path, document: dict[str, Any], collection: str, expected: dict[str, Any]
) -> None:
    file, name = tmp_path / "dump.json", document["metadata"]["name"]
    file.write_text(json.dumps(document))
    cluster = Embedded(seed=1)
    assert cluster.api.store.get(collection, name) is not None
    result = cluster.load([file])
    assert (dict(result.loaded), dict(result.present)) == ({document["kind"]: 1}, {})
    cluster.controllers.settle(cluster.clock())
    found = cluster.api.store.get(collection, name)
    assert found is not None and "aggregationRule" not in found
    assert {part: found[part] for part in expected} == expected


def test_a_role_that_somebody_made_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(a_role("own") | {"metadata": {"name": "own"}}))
    (tmp_path / "b.json").write_text(json.dumps(a_role("own", rules=[])))
    cluster = Embedded(seed=1)
    assert dict(cluster.load([tmp_path]).present) == {"ClusterRole": 1}
    found = cluster.api.store.get(CLUSTER_ROLES, "own")
    assert found is not None and found["rules"] == RULES


def test_a_role_that_is_refused_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(a_role("view", rules=[{"apiGroups": [""], "resources": ["pods"]}])))
    with pytest.raises(ConfigError, match=r"ClusterRole view: .*verbs"):
        Embedded(seed=1).load([tmp_path])
