"""With the rights of deploy/read-only.yaml both commands read a cluster, and say what an administrator is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from stowplan.apps.cli import main
from stowplan.embedded.authorization.users import ADMIN, AUTHENTICATED, ApiUser
from stowplan.embedded.cluster import Embedded
from tests.apps.what_if.shop import CLUSTER, pod
from tests.embedded.running import served

RIGHTS = Path(__file__).parents[3] / "deploy" / "read-only.yaml"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "shop.yaml").write_text("\n---\n".join(map(json.dumps, CLUSTER)))
    with served(rbac=True) as found:
        found.load([folder, RIGHTS])
        yield found


def asked(cluster: Embedded, user: ApiUser, folder: Path, *arguments: str) -> tuple[Any, str]:
    file = folder / f"{user.name}.kubeconfig"
    file.write_text(cluster.kubeconfig(cluster.token_for(user)))
    done = CliRunner().invoke(main, [*arguments, "--kubeconfig", str(file), "-o", "json"])
    assert done.exit_code in (0, 1), done.output
    return json.loads(done.stdout), done.stderr


READER = ApiUser("reader", ("stowplan-readers", AUTHENTICATED), uid="reader")


def test_what_if(cluster: Embedded, tmp_path: Path) -> None:
    found, said = asked(cluster, READER, tmp_path, "what-if", "--drain", "n1")
    assert [(each["pod"], each["to"]) for each in found["moved"]] == [("shop/web-7f9c-a", "n2")]
    whole, _ = asked(cluster, ADMIN, tmp_path, "what-if", "--drain", "n1")
    assert {**found, "unseen": []} == {**whole, "unseen": []}
    kinds = {resource for rule in _rules() for resource in rule["resources"]}
    assert not kinds & {each.partition(".")[0] for each in found["unseen"]}, said


def test_capacity(cluster: Embedded, tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(json.dumps(pod("more", "500m")))
    found, _ = asked(cluster, READER, tmp_path, "capacity", "-f", str(tmp_path / "pod.yaml"))
    whole, _ = asked(cluster, ADMIN, tmp_path, "capacity", "-f", str(tmp_path / "pod.yaml"))
    assert found == whole and found["fits"] == 6 and found["unseen"] == []


def test_a_user_without_rights_is_told_so(cluster: Embedded, tmp_path: Path) -> None:
    nobody = ApiUser("nobody", (AUTHENTICATED,), uid="nobody")
    file = tmp_path / "nobody.kubeconfig"
    file.write_text(cluster.kubeconfig(cluster.token_for(nobody)))
    done = CliRunner().invoke(main, ["what-if", "--drain", "n1", "--kubeconfig", str(file)])
    assert done.exit_code == 2 and "deploy/read-only.yaml has the rights" in done.stderr


def _rules() -> list[Any]:
    documents = list(yaml.safe_load_all(RIGHTS.read_text(encoding="utf-8")))
    return [rule for each in documents for rule in each.get("rules", ())]
