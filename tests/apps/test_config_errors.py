"""`stowplan config check` tells all errors of a file at once, in the file's own spelling."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from stowplan.apps import config_errors
from stowplan.apps.cli import main

PLUGIN = """
from typing import Annotated

import msgspec

from stowplan.plugin import ConfigError


class Team(msgspec.Struct):
    max_per_node: Annotated[int, msgspec.Meta(ge=1)] = 1


class Budget:
    def __init__(self, max_per_node: int = 3, teams: list[Team] = (), zone_label: str = "", quota: int = 1) -> None:
        if zone_label == "?":
            raise ConfigError("zoneLabel: found ?, expected a label")

    def filter(self, pod, nodes):
        return ()


class Needy:
    def __init__(self, percent: int) -> None: ...

    def filter(self, pod, nodes):
        return ()


class ForClusters:
    def __init__(self, regions: dict[str, int]) -> None: ...

    def filter(self, placement, clusters):
        return ()
"""
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
ARGS = "profiles[0].pluginConfig[name=policy.py:Budget].args"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "policy.py").write_text(PLUGIN)
    return tmp_path / "config.yaml"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        pytest.param(
            """
parallelism: "3"
healthzBindAddress: 0.0.0.0:10251
profiles:
  - plugins:
      filter: {enabled: [{name: "policy.py:Budget"}, {name: NodeLabel}]}
      score: {enabled: [{name: NodeResourcesMostAllocated, weight: x}, {name: NodeAfinity}]}
    pluginConfig:
      - name: policy.py:Budget
        args: {maxPerNod: 3, teams: [{maxPerNode: 0}], zoneLabel: "?", quota: many}
""",
            [
                "healthzBindAddress: unknown field; it was removed",
                'parallelism: found "3", expected an integer',
                'profiles[0].plugins.score.enabled[0].weight: found "x", expected an integer',
                'profiles[0].plugins.filter.enabled[1]: plugin "NodeLabel" was removed; ',
                'profiles[0].plugins.score.enabled[0]: plugin "NodeResourcesMostAllocated" was removed; write sco',
                'profiles[0].plugins.score.enabled[1]: there is no plugin "NodeAfinity"; did you mean "NodeAffinity"',
                f"{ARGS}: unknown argument 'maxPerNod'; did you mean 'maxPerNode'?",
                f"{ARGS}.teams[0].maxPerNode: found 0, expected an integer >= 1",
                f'{ARGS}.quota: found "many", expected an integer',
                f"{ARGS}: zoneLabel: found ?, expected a label",
            ],
            id="of all stages of reading",
        ),
        pytest.param(
            """
profiles:
  - plugins: {filter: {enabled: [{name: "policy.py:Needy"}, {name: "policy.py:Budget"}]}}
    pluginConfig: [{name: "policy.py:Budget", args: {max_per_nod: 1}}]
""",
            [
                "profiles[0].pluginConfig[name=policy.py:Needy].args: argument 'percent' is missing",
                f"{ARGS}: unknown argument 'max_per_nod'; did you mean 'maxPerNode'?",
            ],
            id="a plugin that cannot be made does not hide the next",
        ),
        pytest.param(
            "parallelism: 1\nparallelism: 0\nprofils: []\n",
            ['line 4: the key "parallelism" appears twice', "profils: unknown field", "parallelism: found 0"],
            id="a key twice does not hide the rest",
        ),
    ],
)
def test_all_errors_at_once(file: Path, body: str, told: list[str]) -> None:
    file.write_text(HEAD + body)
    said = CliRunner().invoke(main, ["config", "check", str(file)])
    *lines, last = said.output.splitlines()
    wrong = [
        (line, each) for line, each in zip(lines, told, strict=True) if not line.startswith(f"stowplan: {file}: {each}")
    ]
    assert wrong == []
    assert (said.exit_code, last) == (2, f"stowplan: {file}: {len(told)} errors")


def test_one_error_is_one_line(file: Path) -> None:
    file.write_text(HEAD + "parallelism: 0")
    said = CliRunner().invoke(main, ["config", "check", str(file)])
    assert (said.exit_code, said.output.count("\n")) == (2, 1)


def test_a_configuration_of_placements(file: Path) -> None:
    file.write_text("""
apiVersion: placement.config.stowplan.io/v1
kind: PlacementConfiguration
plugins:
  filter: {enabled: [{name: "policy.py:ForClusters"}, {name: Nope}]}
  score: {enabled: [{name: Spread, weight: 11}]}
pluginConfig: [{name: "policy.py:ForClusters", args: {region: {}}}]
""")
    assert [str(each).removeprefix(f"{file}: ").partition(";")[0] for each in config_errors.find(file)] == [
        "plugins.score.enabled[0].weight: found 11, expected an integer <= 10",
        'plugins.filter.enabled[1]: there is no plugin "Nope"',
        "pluginConfig[name=policy.py:ForClusters].args: unknown argument 'region'",
    ]


def test_a_file_with_arguments_is_named(file: Path) -> None:
    """A plugin reads arguments from a file of its own; its errors are not the configuration's."""
    (file.parent / "settings.yaml").write_text("nonsense: 1")
    config = (
        "profiles: [{plugins: {score: {enabled: [{name: SPPriority}]}}, pluginConfig: [{name: SPPriority, args: {X}}]}]"
    )
    file.write_text(HEAD + config.replace("X", "configFile: settings.yaml"))
    (found,) = config_errors.find(file)
    assert found.file == str(file.parent / "settings.yaml")
