"""Input that would be answered with a false "all is well" is refused, with what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from stowplan.objects.meta import Object
from stowplan.testing.builders import a_namespace, a_node, a_pod
from tests.apps.explain.test_explain import dump, explain

SHOP = a_namespace("shop")
THERE: list[Object] = [a_node("a", cpu=4), SHOP, a_pod("web", namespace="shop", cpu="1", labels={"app": "web"})]


@pytest.mark.parametrize(
    "text", [pytest.param("", id="an empty file"), pytest.param("kind: List\nitems: []\n", id="an empty list")]
)
def test_a_dump_without_nodes_and_pods_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "dump.yaml").write_text(text, encoding="utf-8")
    for source in (tmp_path / "dump.yaml", tmp_path):
        answer = explain("--from", str(source))
        assert answer.exit_code == 2 and f"{source}: found no nodes and no pods" in answer.stderr
        assert answer.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        pytest.param(["-n", "shpo"], 2, "there is no namespace shpo; did you mean shop?", id="misspelt"),
        pytest.param(["web", "-n", "shpo"], 2, "there is no namespace shpo; did you mean shop?", id="of a pod"),
        pytest.param(["-n", "zzz"], 2, "there is no namespace zzz; there are shop", id="nothing like it"),
        pytest.param(["-n", "shop"], 0, "1 pending pod would get a node", id="it exists"),
        pytest.param(["-A", "-l", "app=wbe"], 0, "No pod with app=wbe is pending; 1 other is.", id="labels"),
        pytest.param(
            ["-n", "shop", "-l", "app=wbe"], 0, "is pending in namespace shop; 1 other is.", id="labels and a namespace"
        ),
    ],
)
def test_who_asks_for_the_wrong_pods_is_told(tmp_path: Path, arguments: list[str], code: int, says: str) -> None:
    answer = explain(*arguments, "--from", dump(tmp_path, *THERE))
    assert answer.exit_code == code and says in answer.output


def test_an_object_in_a_namespace_shows_that_it_exists(tmp_path: Path) -> None:
    answer = explain("-n", "far", "--from", dump(tmp_path, *THERE, a_pod("x", namespace="far", node="a")))
    assert answer.exit_code == 0 and "No pod is pending in namespace far" in answer.output


def test_an_empty_name_of_a_manifest_is_not_the_current_folder(tmp_path: Path) -> None:
    answer = explain("-f", "", "--from", dump(tmp_path, *THERE))
    assert answer.exit_code == 2 and "-f: found an empty name" in answer.output


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        pytest.param("Deploymnt", "found Deploymnt; did you mean Deployment?", id="misspelt"),
        pytest.param("ConfigMap", "found ConfigMap; kinds that can be explained: Pod", id="another kind"),
    ],
)
def test_a_kind_that_cannot_be_explained(tmp_path: Path, kind: str, says: str) -> None:
    (tmp_path / "web.yaml").write_text(f"apiVersion: apps/v1\nkind: {kind}\n", encoding="utf-8")
    answer = explain("-f", str(tmp_path / "web.yaml"), "--from", dump(tmp_path, *THERE))
    assert answer.exit_code == 2 and says in answer.output


def test_a_dump_that_is_cut_off_is_called_so(tmp_path: Path) -> None:
    file = tmp_path / "dump.yaml"
    file.write_text("apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: a}\n", encoding="utf-8")
    answer = explain("--from", str(file))
    assert answer.exit_code == 2 and "it seems cut off" in answer.output
    file.write_text("just: text\n", encoding="utf-8")
    assert "every document needs apiVersion and kind" in explain("--from", str(file)).output


def test_each_file_of_node_templates_must_have_a_node(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    good, bad = dump(tmp_path / "nodes", a_node("large", cpu=64)), tmp_path / "other.yaml"
    bad.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", encoding="utf-8")
    file = dump(tmp_path, *THERE)
    assert explain("-A", "--from", file, "--node-templates", good).exit_code == 0
    answer = explain("-A", "--from", file, "--node-templates", good, "--node-templates", str(bad))
    assert answer.exit_code == 2 and f"{bad}: found no Node" in answer.output
