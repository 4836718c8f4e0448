"""Profiles from a configuration: arguments in a file of a plugin, and plugins that profiles share."""

from __future__ import annotations

from pathlib import Path

import pytest

from stowplan.apps import profile_loader
from stowplan.framework.config.plugin_sets import DEFAULT_PLUGINS
from stowplan.objects.errors import ConfigError
from stowplan.plugins.nodes.sp_priority.plugin import NAME

KUBES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    plugins:
      multiPoint: {{enabled: [{enabled}]}}
      queueSort: {{enabled: [{{name: {sort}}}], disabled: [{{name: "*"}}]}}
"""
PLUGIN = """
class WithFile:
    args_file = ("settings", "{usual}")
    args_alike = {{"titles": "names"}}

    def __init__(self, size: int = 1, names: tuple[str, ...] = (), titles: tuple[str, ...] = ()) -> None:
        self.size, self.names = size, [*names, *titles]

    def score(self, pod, nodes):
        return self.size
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins: {{score: {{enabled: [{{name: "with_file.py:WithFile"}}]}}}}
    pluginConfig: [{{name: "with_file.py:WithFile", args: {args}}}]
"""


def made(folder: Path, args: str = "{}") -> tuple[int, tuple[str, ...]]:
    (folder / "with_file.py").write_text(PLUGIN.format(usual=folder / "usual.yaml"), encoding="utf-8")
    (folder / "config.yaml").write_text(CONFIG.format(args=args), encoding="utf-8")
    _, profiles = profile_loader.read_configuration(folder / "config.yaml")
    plugin = profiles["default-scheduler"].plugin("with_file.py:WithFile")
    assert plugin is not None
    return plugin.size, tuple(plugin.names)


@pytest.mark.parametrize(
    ("file", "args", "expected"),
    [
        pytest.param("", "{}", (1, ()), id="no file, no arguments"),
        pytest.param("size: 5\nnames: [a]", "{}", (5, ("a",)), id="the default file"),
        pytest.param("size: 5\nnames: [a]", "{size: 7}", (7, ("a",)), id="the configuration wins"),
        pytest.param("Size: 5", "{size: 7}", (7, ()), id="the configuration wins, spelled differently"),
        pytest.param("size: 5", "{Size: 7}", (7, ()), id="the configuration wins, spelled with a capital"),
        pytest.param("names: [a]", "{titles: []}", (1, ()), id="the configuration wins by an alias"),
        pytest.param("titles: [a]", "{names: [b]}", (1, ("b",)), id="the configuration wins over an alias"),
        pytest.param("titles: [a]\nnames: [b]", "{}", (1, ("b", "a")), id="a name and its alias in one place"),
    ],
)
def test_arguments_of_a_file(tmp_path: Path, file: str, args: str, expected: object) -> None:
    if file:
        (tmp_path / "usual.yaml").write_text(file, encoding="utf-8")
    assert made(tmp_path, args) == expected


def test_another_file_is_named_by_an_argument(tmp_path: Path) -> None:
    (tmp_path / "usual.yaml").write_text("size: 5", encoding="utf-8")
    (tmp_path / "other.yaml").write_text("size: 6", encoding="utf-8")
    assert made(tmp_path, f"{{settings: {tmp_path / 'other.yaml'}}}") == (6, ())
    assert made(tmp_path, "{settings: other.yaml}") == (6, ()), "relative to the configuration's folder"
    assert made(tmp_path, "{Settings: other.yaml}") == (6, ())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sise: 5", "unknown argument 'sise'; did you mean 'size'?"),
        ("- 5", "found no mapping of arguments"),
        ("{", "not YAML"),
        ("size: !!int x", "line 1: found 'x', expected what the tag !!int says"),
        ("yes: 5", "unknown argument 'true'"),
        ("size: 5\nSize: 6", "'size' and 'Size' are one argument; give it once"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_an_invalid_file_is_named(tmp_path: Path, text: str | None, problem: str) -> None:
    file = tmp_path / "other.yaml"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        made(tmp_path, f"{{settings: {file}}}")
    assert str(file) in str(caught.value) and problem in str(caught.value)


def test_the_name_of_a_file_must_be_a_string(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="found 5, expected the path of a file"):
        made(tmp_path, "{settings: 5}")


@pytest.mark.parametrize("args", ["{size: 7, Size: 7}", "{names: [a], Names: [b]}"])
def test_an_argument_must_be_given_once(tmp_path: Path, args: str) -> None:
    with pytest.raises(
        ConfigError, match=r"profiles\[0\]\.pluginConfig\[name=with_file.py:WithFile\]\.args: .* are one argument"
    ):
        made(tmp_path, args)


# -- a plugin that all profiles share

TWICE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: one
    plugins: {multiPoint: {enabled: [{name: SPPriority, weight: 5}]}}
    pluginConfig: [{name: SPPriority, args: %s}]
  - schedulerName: two
    plugins: {multiPoint: {enabled: [{name: SPPriority, weight: 9}]}}
    pluginConfig: [{name: SPPriority, args: %s}]
  - schedulerName: three
"""


def test_profiles_share_the_plugin() -> None:
    _, profiles = profile_loader.configured(TWICE % ("{stateOwner: Deployment}", "{state_owner: Deployment}"))
    one, two, three = profiles.values()
    assert one.plugin("SPPriority") is two.plugin("SPPriority") is not None and three.plugin("SPPriority") is None
    weights = [{enabled.name: enabled.weight for enabled in each.scorers}["SPPriority"] for each in (one, two)]
    assert weights == [5, 9], "each has its own weight"
    for each in (one, two):
        assert len({id(bound.plugin) for bounds in each.points.values() for bound in bounds if bound.name == NAME}) == 1


def test_profiles_with_different_arguments_are_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        profile_loader.configured(TWICE % ("{}", "{strict: true}"))
    assert str(caught.value) == (
        "profiles[1].pluginConfig[name=SPPriority].args: the arguments differ from those in profiles[0]; "
        "all profiles share this plugin: give it the same arguments in each, or enable it in one only"
    )


# -- gangs under kube-scheduler's name


def kubes(*plugins: str, sort: str = "PrioritySort") -> str:
    """All default plugins, as kube-scheduler writes them, and these."""
    defaults = [f"{{name: {name}, weight: {weight}}}" for name, weight in DEFAULT_PLUGINS]
    return KUBES.format(enabled=", ".join([*defaults, *(f"{{name: {name}}}" for name in plugins)]), sort=sort)


def test_gang_scheduling_is_read_beside_all_default_plugins() -> None:
    configuration, profiles = profile_loader.configured(kubes("GangScheduling"))
    profile = profiles["default-scheduler"]
    assert [each.name for each in profile.group_plugins] == ["GangScheduling"]
    assert profile.queue_sort.name == "PrioritySort" and not configuration.notes


def test_without_its_name_no_profile_has_gangs() -> None:
    _, profiles = profile_loader.configured(kubes())
    assert not profiles["default-scheduler"].group_plugins


def test_gang_scheduling_is_left_out_beside_coscheduling() -> None:
    configuration, profiles = profile_loader.configured(kubes("GangScheduling", "Coscheduling", sort="Coscheduling"))
    profile = profiles["default-scheduler"]
    assert [each.name for each in profile.group_plugins] == ["Coscheduling"] and not profile.plugin("GangScheduling")
    assert configuration.notes == (
        "profiles[0].plugins: GangScheduling is left out, Coscheduling does the same and more",
    )
