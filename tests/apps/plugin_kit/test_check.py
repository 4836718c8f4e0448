"""`stowplan plugin check`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stowplan.apps.cli import main

PLUGINS = """
from stowplan.plugin import Reject, per_node


class Heavy:
    def filter(self, pod, nodes):
        if pod.labels.get("heavy") == "true":
            1 / 0
            yield Reject(nodes.label("size") != "large", "node(s) are small")


class Named:
    def __init__(self, wanted: str = "", most: int = 5) -> None:
        self.wanted = wanted

    def filter(self, pod, nodes):
        if pod.name == "large":
            yield Reject(nodes.label("zone") != self.wanted, "node(s) are elsewhere")

    def reconcile(self, changed, cluster):
        return ()


class Lists(Named):
    def __init__(self, regions: list[str]) -> None:
        self.wanted = regions[0]


class Mask:
    def filter(self, pod, nodes):
        yield nodes.label("zone") == "a"

    def score(self, pod, nodes):
        return 7


class Nothing:
    def filter(self, pod, nodes):
        return None

    def score(self, pod, nodes):
        return 7


@per_node
class Twin:
    def fits(self, pod, node):
        return "node(s) are elsewhere" if pod.name == "large" and node.labels.get("zone") else None


class Both(Named):
    def filter(self, pod, nodes):
        if pod.name == "large":
            yield Reject(nodes.label("zone").present, "node(s) are elsewhere")
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: large, namespace: default}
spec: {nodeName: n0, containers: [{name: c}]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(PLUGINS)
    (tmp_path / "pods.yaml").write_text(POD)
    (tmp_path / "node.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n0}\n")
    (tmp_path / "args.yaml").write_text("wanted: a\nmost: 3\n")
    (tmp_path / "unquoted.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: job, labels: {batch: true}}\n")
    (tmp_path / "config.yaml").write_text("kind: KubeSchedulerConfiguration\nprofiles: []\n")
    return tmp_path


def check(folder: Path, plugin: str, *words: str) -> Result:
    return CliRunner().invoke(main, ["plugin", "check", f"{folder / 'mine.py'}:{plugin}", "--clusters", "20", *words])


def test_the_vacuous_plugin_fails_with_a_sentence_that_says_what_to_do(folder: Path) -> None:
    done = check(folder, "Heavy")
    assert done.exit_code == 1
    assert "Heavy: filter fails: ZeroDivisionError: division by zero" in done.output
    assert "Heavy: filter never rejected a node: none of the 40 drawn pods made it" in done.output
    assert "give pods that it acts on with --pods FILE (or pods= in check_plugin)" in done.output
    assert 'yield Reject(nodes.label("size") != "large"' in done.output, "the line that never ran"


def test_a_method_that_never_acted_until_its_pods_are_given(folder: Path) -> None:
    done = check(folder, "Named", "--args", "wanted=a")
    assert done.exit_code == 1 and "Named: filter never rejected a node" in done.output
    done = check(folder, "Named", "--args", "wanted=a", "--pods", str(folder / "pods.yaml"))
    assert done.exit_code == 0, done.output
    assert "mine.py:Named: keeps the contract, with 80 pods" in done.output
    assert "not called here, test it in a World: reconcile" in done.output


def test_output_for_programs(folder: Path) -> None:
    found = json.loads(check(folder, "Named", "--args", str(folder / "args.yaml"), "-o", "json").stdout)
    assert (found["kind"], found["apiVersion"], found["pods"]) == ("PluginCheck", "stowplan.io/v1alpha1", 40)
    assert found["methods"]["filter"]["hadASay"] == 0 and found["methods"]["filter"]["calls"] > 0
    assert len(found["problems"]) == 1 and found["neverRan"]["filter"] == [18]
    assert found["notCalled"] == ["reconcile"]


@pytest.mark.parametrize(
    ("plugin", "found"),
    [
        pytest.param("Mask", "found an array, bool of shape (", id="a mask"),
        pytest.param("Nothing", "answered None", id="nothing"),
    ],
)
def test_a_filter_that_always_fails_is_the_only_problem(folder: Path, plugin: str, found: str) -> None:
    problems = json.loads(check(folder, plugin, "-o", "json").stdout)["problems"]
    assert len(problems) == 1, problems
    assert problems[0].startswith(f"{plugin}: filter fails: {found}")
    assert 'a filter yields Reject, or returns a list of them: yield Reject(mask, "the reason")' in problems[0]


def test_a_twin_of_another_class(folder: Path) -> None:
    words = ["--twin", f"{folder / 'mine.py'}:Twin", "--pods", str(folder / "pods.yaml")]
    assert check(folder, "Both", *words).exit_code == 0
    done = check(folder, "Named", "--args", "wanted=a", *words)
    assert done.exit_code == 1 and "filter and its twin's fits disagree" in done.output


def test_a_plugin_that_is_known(folder: Path) -> None:
    done = CliRunner().invoke(main, ["plugin", "check", "NodeUnschedulable"])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        pytest.param(["mine.py"], "mine.py is a file; name the class in it: ", id="no class"),
        pytest.param(["mine.py:Nmaed"], "has no class 'Nmaed'; did you mean 'Named'?", id="no such class"),
        pytest.param(["none.py:X"], "there is no file ", id="no such file"),
        pytest.param(["NodeNaem"], "no plugin is called 'NodeNaem'", id="no such plugin"),
        pytest.param(
            ["mine.py:Named", "--args", "most=ten"], '--args most: found "ten", expected an integer', id="a type"
        ),
        pytest.param(
            ["mine.py:Lists"],
            "--args: argument 'regions' is missing; it has no default; give --args 'regions=[VALUE]'",
            id="nothing is given",
        ),
        pytest.param(
            ["mine.py:Lists", "--args", "regions=a,b"],
            "--args regions: found \"a,b\", expected a list; values are YAML: --args 'regions=[a,b]'",
            id="a list",
        ),
        pytest.param(
            ["mine.py:Named", "--args", "config.yaml"],
            "config.yaml: found a KubeSchedulerConfiguration, expected the plugin's arguments alone; give a file with",
            id="a configuration",
        ),
        pytest.param(
            ["mine.py:Named", "--pods", "unquoted.yaml"],
            'unquoted.yaml: Pod job: metadata.labels.batch: found true, expected a text; write it in quotes: "true"',
            id="a label that is no text",
        ),
        pytest.param(["mine.py:Named", "--args", "mots=1"], "did you mean 'most'?", id="an argument"),
        pytest.param(["mine.py:Named", "--args", "none.yaml"], "cannot be read: No such file", id="no such arguments"),
        pytest.param(["mine.py:Named", "--args", "mine.py"], "not YAML", id="arguments that are none"),
        pytest.param(["mine.py:Named", "--pods", "node.yaml"], "found no Pod, but Node", id="no pods"),
    ],
)
def test_input_that_cannot_be_used(
    folder: Path, words: list[str], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(main, ["plugin", "check", *words])
    assert done.exit_code == 2 and problem in done.output, done.output
    assert "Traceback" not in done.output


def test_the_current_folder_is_where_a_name_without_a_folder_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert CliRunner().invoke(main, ["plugin", "check", "mine.py:Heavy", "--clusters", "3"]).exit_code == 1


def test_a_method_may_be_idle_for_a_reason(folder: Path) -> None:
    found = CliRunner().invoke(main, ["plugin", "check", f"{folder}/mine.py:Named", "--idle", "filter=no such pods"])
    assert found.exit_code == 0 and "keeps the contract" in found.output
    found = CliRunner().invoke(main, ["plugin", "check", f"{folder}/mine.py:Named", "--idle", "score=why"])
    assert found.exit_code == 1 and "idle names 'score', and there is no such method" in found.output
    found = CliRunner().invoke(main, ["plugin", "check", f"{folder}/mine.py:Named", "--idle", "filter"])
    assert found.exit_code == 2 and "--idle 'filter' gives no reason" in found.output
