"""`stowplan dump`: one private file, that kubectl and everything of ours reads."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from stowplan.apps.cli import main
from stowplan.apps.dump import cluster_reader
from stowplan.embedded.cluster import Embedded
from stowplan.testing import EmbeddedCluster
from tests.deploy.test_read_only import granted

TEMPLATE = {
    "metadata": {"labels": {"app": "payroll"}},
    "spec": {
        "containers": [{"name": "main", "image": "acme/payroll:2", "env": [{"name": "TOKEN", "value": "hidden"}]}]
    },
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "payroll", "namespace": "finance"},
    "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "payroll"}}, "template": TEMPLATE},
}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "finance"}}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "rack-7", "labels": {"kubernetes.io/hostname": "rack-7"}},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"token": "aGlkZGVu"}}


def of_files(folder: Path, *arguments: str) -> Result:
    file = folder / "all.yaml"
    file.write_text("\n---\n".join(map(yaml.safe_dump, (NAMESPACE, NODE, DEPLOYMENT, SECRET))), encoding="utf-8")
    return CliRunner().invoke(main, ["dump", "--from", str(file), *arguments])


def items(file: Path) -> list[dict[str, Any]]:
    text = file.read_text(encoding="utf-8")
    found = json.loads(text) if file.suffix == ".json" else yaml.safe_load(text)
    assert (found["apiVersion"], found["kind"]) == ("v1", "List")
    return list(found["items"])


@pytest.mark.parametrize("name", ["dump.json", "dump.yaml"])
def test_the_file_is_whole_private_and_small(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text("of yesterday", encoding="utf-8")
    answer = of_files(tmp_path, "-o", str(file))
    assert answer.exit_code == 0, answer.output
    assert f"3 objects in {file}" in answer.stderr
    assert "Left out, for no decision depends on them: 1 Secret." in answer.stderr
    assert [each["kind"] for each in items(file)] == ["Namespace", "Node", "Deployment"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "hidden" not in file.read_text(encoding="utf-8")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["all.yaml", name]


def test_without_a_file_yaml_goes_to_standard_output(tmp_path: Path) -> None:
    answer = of_files(tmp_path)
    assert answer.exit_code == 0 and len(yaml.safe_load(answer.stdout)["items"]) == 3


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(("-o", "no-folder/dump.json"), "its folder does not exist", id="a folder that does not exist"),
        pytest.param(("-o", os.curdir), "is a folder", id="a folder"),
        pytest.param(("--seed", "x"), "found --seed without --anonymise", id="a seed of nothing"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    answer = of_files(tmp_path, *arguments)
    assert answer.exit_code == 2 and told in answer.stderr and "Traceback" not in answer.output


def test_a_seed_gives_the_same_file_again_and_without_it_another(tmp_path: Path) -> None:
    found = {}
    for name, seed in (("a", ("--seed", "7")), ("b", ("--seed", "7")), ("c", ()), ("d", ())):
        answer = of_files(tmp_path, "--anonymise", "-o", str(tmp_path / f"{name}.json"), *seed)
        assert answer.exit_code == 0
        assert ("Whoever knows the seed can find names" in answer.stderr) == bool(seed)
        found[name] = (tmp_path / f"{name}.json").read_bytes()
    assert found["a"] == found["b"] and len(set(found.values())) == 3
    written = b"".join(found.values())
    assert [word for word in (b"payroll", b"finance", b"rack", b"acme") if word in written] == []


def test_a_word_can_be_kept(tmp_path: Path) -> None:
    answer = of_files(tmp_path, "--anonymise", "--keep", "rack-7", "-o", str(tmp_path / "shared.yaml"))
    assert answer.exit_code == 0
    (node,) = (each for each in items(tmp_path / "shared.yaml") if each["kind"] == "Node")
    assert node["metadata"] == {"name": "rack-7", "labels": {"kubernetes.io/hostname": "rack-7"}}


def test_it_reads_with_the_rights_of_explain() -> None:
    rights, lease = granted("ClusterRole"), granted("Role")
    needed = {(each.group, each.plural) for each in cluster_reader.LISTED.values() if not each.optional}
    assert needed - {key for key, verbs in rights.items() if "list" in verbs} == set(lease)


@pytest.mark.parametrize("anonymise", [(), ("--anonymise",)], ids=["plain", "anonymised"])
def test_a_cluster_is_dumped_and_explained_and_started_again(tmp_path: Path, anonymise: tuple[str, ...]) -> None:
    file = tmp_path / "dump.json"
    with EmbeddedCluster(nodes=[NODE], folder=tmp_path) as cluster:
        cluster.apply(NAMESPACE, DEPLOYMENT)
        cluster.wait_until(lambda: len(cluster.pods("finance")) == 3)
        arguments = ["dump", "--kubeconfig", str(cluster.kubeconfig), "-o", str(file), *anonymise]
        answer = CliRunner().invoke(main, arguments)
    assert answer.exit_code == 0, answer.output
    kinds = {each["kind"] for each in items(file)}
    assert {"Pod", "Node", "Namespace", "Deployment", "ReplicaSet", "PriorityClass"} <= kinds
    explained = CliRunner().invoke(main, ["explain", "-A", "-o", "json", "--from", str(file)])
    assert explained.exit_code == 0, explained.output
    assert len(json.loads(explained.stdout)["items"]) == 3
    again = Embedded()
    loaded = again.load([file])
    assert (loaded.loaded["Pod"], loaded.loaded["ReplicaSet"], loaded.loaded["Deployment"]) == (3, 1, 1)
