"""`stowplan place --config`: policies of a file in `place explain` and in the commands of `config`, and its reload."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from stowplan.apps.cli import main
from stowplan.apps.config_file import follow
from stowplan.apps.place.configuration import LoadedPolicy, default, load_policy, policy_file
from stowplan.apps.place.metrics import PlacementMetrics
from stowplan.objects.errors import ConfigError, StowplanError
from tests.apps.place.test_place import a_dump, placement
from tests.placement.fleets import a_cluster, a_placement, chosen

POLICY = '''
from stowplan.plugin import Clusters, Placement, Reject


class Allowed:
    """Only clusters whose names are listed, the last one first."""

    def __init__(self, names: list, fail: bool = False) -> None:
        self.names, self.fail = names, fail

    def filter(self, placement: Placement, clusters: Clusters):
        for name in clusters.names:
            if name not in self.names:
                yield Reject(clusters.name == name, f"{name} is not allowed")

    def score(self, placement: Placement, clusters: Clusters):
        if self.fail:
            raise KeyError("price")
        return 100 * (clusters.name == self.names[-1])


class ForNodes:
    def score(self, pod, nodes):
        return None
'''


def config(folder: Path, *, name: str = "policy.py:Allowed", weight: int = 5, **args: Any) -> Path:
    (folder / "policy.py").write_text(POLICY)
    file = folder / "config.yaml"
    document = {
        "apiVersion": "placement.config.stowplan.io/v1",
        "kind": "PlacementConfiguration",
        "plugins": {"multiPoint": {"enabled": [{"name": name, "weight": weight}]}},
        "pluginConfig": [{"name": name, "args": {"names": ["c1", "c2"]} | args}],
    }
    file.write_text(yaml.safe_dump(document))
    return file


def run(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(main, [str(word) for word in words], env={"COLUMNS": "160"})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def test_explain_with_a_policy_of_a_file(tmp_path: Path) -> None:
    hub = a_dump(tmp_path, placement(numberOfClusters=1))
    code, said = run("place", "explain", "p", "-n", "test", "--from", hub, "--config", config(tmp_path), "-o", "json")
    found = json.loads(said)
    assert (code, [each["clusterName"] for each in found["selected"]]) == (0, ["c2"])
    assert found["prioritizeResults"][2] == {
        "name": "policy.py:Allowed", "weight": 5, "scores": {"c1": 0, "c2": 100},
    }  # fmt: skip
    assert found["dropped"][-1] == {
        "clusterName": "c4", "plugin": "policy.py:Allowed", "reason": "c4 is not allowed",
    }  # fmt: skip
    assert found["filteredPipelineResults"][-1]["name"] == "Predicate,TaintToleration,policy.py:Allowed"
    code, said = run("place", "--config", config(tmp_path), "explain", "p", "-n", "test", "--from", hub)
    assert code == 0 and "c4 is not allowed" in said and "policy.py:Allowed ×5" in said


def test_a_placement_names_the_class(tmp_path: Path) -> None:
    configured = {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Allowed"}, "weight": -1}
    asked = placement(numberOfClusters=1, prioritizerPolicy={"mode": "Exact", "configurations": [configured]})
    hub = a_dump(tmp_path, asked)
    code, said = run("place", "explain", "p", "-n", "test", "--from", hub, "--config", config(tmp_path), "-o", "json")
    found = json.loads(said)
    assert (code, [each["clusterName"] for each in found["selected"]]) == (0, ["c1"])
    assert {each["name"]: each["weight"] for each in found["prioritizeResults"]}["policy.py:Allowed"] == -1


def test_a_plugin_that_fails_is_named(tmp_path: Path) -> None:
    hub, file = a_dump(tmp_path, placement()), config(tmp_path, fail=True)
    code, said = run("place", "explain", "p", "-n", "test", "--from", hub, "--config", file)
    assert code == 1
    assert 'test/p cannot be decided: plugin "policy.py:Allowed" failed at score: KeyError' in said


def test_check_and_show(tmp_path: Path) -> None:
    file = config(tmp_path)
    code, said = run("config", "check", file, "--plugin-path", tmp_path)
    assert (code, said) == (0, f"{file}: valid, 3 filter(s), 5 score plugin(s)\n")
    assert run("config", "show", file) == (
        0,
        "filter: Predicate, TaintToleration, policy.py:Allowed\n"
        "score: Balance*1, Steady*1, TaintToleration*3, Spread*2, policy.py:Allowed*5\n"
        "pluginConfig:\n  - name: policy.py:Allowed\n    args:\n"
        "      names:\n      - c1\n      - c2\n      fail: false\n",
    )
    found = json.loads(run("config", "show", file, "-o", "json")[1])
    assert (found["apiVersion"], found["kind"]) == ("stowplan.io/v1alpha1", "EnabledClusterPlugins")
    assert found["points"]["score"][-1] == {"name": "policy.py:Allowed", "weight": 5}
    assert found["pluginConfig"] == [{"name": "policy.py:Allowed", "args": {"names": ["c1", "c2"], "fail": False}}]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({"nmes": []}, "unknown argument 'nmes'; did you mean 'names'?", id="a misspelt argument"),
        pytest.param({"name": "policy.py:Alowed"}, "has no class 'Alowed'; did you mean 'Allowed'?", id="class"),
        pytest.param({"name": "none.py:Allowed"}, "there is no file none.py", id="no such file"),
        pytest.param(
            {"name": "policy.py:ForNodes"},
            "plugin policy.py:ForNodes is for nodes, and this configuration is for clusters; a plugin for clusters has "
            "filter(placement, clusters) or score(placement, clusters)",
            id="a plugin for nodes",
        ),
        pytest.param({"weight": 50}, "found 50, expected an integer <= 10", id="a weight out of range"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, change: Any, said: str) -> None:
    file = config(tmp_path, **change)
    for command in (("config", "check", file), ("place", "--config", file, "--plugin-path", tmp_path)):
        code, output = run(*command)
        assert code == 2 and said in output and str(file) in output


def test_a_policy_for_clusters_is_none_for_nodes(tmp_path: Path) -> None:
    config(tmp_path)
    profile = {"plugins": {"score": {"enabled": [{"name": "policy.py:Allowed"}]}}}
    file = tmp_path / "scheduler.yaml"
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    file.write_text(yaml.safe_dump(kind | {"profiles": [profile]}))
    code, said = run("config", "check", file)
    assert code == 2 and "plugin policy.py:Allowed is for clusters, and this configuration is for nodes" in said


def test_timed_plugins_of_a_file_decide_the_same(tmp_path: Path) -> None:
    policy, metrics = load_policy(config(tmp_path)).policy, PlacementMetrics()
    objects = [a_cluster("c1"), a_cluster("c2"), a_cluster("c3")]
    for each in (policy, metrics.timed(policy)):
        choice = chosen(a_placement(numberOfClusters=1), objects, ocm=False, policy=each)
        assert (choice.names, [reason for *_, reason in choice.dropped()]) == (["c2"], ["c3 is not allowed"])
    assert b'plugin_name="policy.py:Allowed",plugin_type="filter"' in metrics.text("")[0]


def test_place_loads_files_from_named_folders_only(tmp_path: Path) -> None:
    code, said = run("place", "--config", config(tmp_path))
    assert code == 2 and f"give --plugin-path {tmp_path}" in said
    code, said = run("config", "check", tmp_path / "config.yaml")
    assert code == 0 and "--plugin-path" in said, "a note says what `stowplan place` needs"


def test_a_reload_imports_no_code(tmp_path: Path) -> None:
    file = config(tmp_path)
    watched = policy_file(file, (tmp_path,), ocm=False)
    first = watched.load()
    config(tmp_path, weight=2)
    (tmp_path / "policy.py").write_text("raise SystemExit('this is not imported')")
    assert watched.load_again().policy.defaults["policy.py:Allowed"] == 2
    assert first.policy.defaults["policy.py:Allowed"] == 5
    (tmp_path / "other.py").write_text(POLICY)
    file.write_text(file.read_text().replace("policy.py", "other.py"))
    with pytest.raises(ConfigError, match=r"the plugin other.py:Allowed is not loaded; restart .*"):
        watched.load_again()


def test_a_changed_file_is_adopted_or_refused_as_a_whole(tmp_path: Path) -> None:
    file = config(tmp_path)
    watched, seen, refused = policy_file(file, (tmp_path,), ocm=False), list[int](), list[str]()

    async def adopt(new: LoadedPolicy) -> None:
        seen.append(new.policy.defaults["policy.py:Allowed"])
        file.write_text(file.read_text().replace("weight: 2", "weight: 99"))

    def refuse(error: StowplanError) -> None:
        refused.append(str(error))
        raise asyncio.CancelledError

    async def followed() -> None:
        loaded = watched.load()
        config(tmp_path, weight=2)
        await follow(watched, loaded, adopt=adopt, refuse=refuse, every=0.0)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(followed())
    assert seen == [2]
    assert len(refused) == 1 and "weight: found 99" in refused[0]


def test_the_default_is_open_cluster_managements() -> None:
    assert default().policy.defaults == default(ocm=True).policy.defaults == {"Balance": 1, "Steady": 1}


@pytest.mark.parametrize(
    "declared",
    [
        pytest.param('reads = ("Namespace",)', id="reads"),
        pytest.param('writes = {"Deployment": ("patch",)}', id="writes"),
        pytest.param('def __init__(self, names): self.reads, self.names = ["Namespace"], names', id="of the instance"),
    ],
)
def test_a_cluster_policy_declares_no_kinds(tmp_path: Path, declared: str) -> None:
    file = config(tmp_path, name="policy.py:Declares")
    (tmp_path / "policy.py").write_text(f"{POLICY}\n\nclass Declares(Allowed):\n    {declared}\n")
    with pytest.raises(ConfigError) as error:
        load_policy(file)
    assert str(error.value).startswith(
        f"{file}: plugins.multiPoint.enabled[0]: a cluster policy cannot bring or write kinds yet; remove "
    )


def test_a_method_may_be_called_reads(tmp_path: Path) -> None:
    file = config(tmp_path, name="policy.py:Reader")
    (tmp_path / "policy.py").write_text(f"{POLICY}\n\nclass Reader(Allowed):\n    def reads(self): ...\n")
    assert "policy.py:Reader" in load_policy(file).policy.third_party
