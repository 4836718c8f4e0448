"""Code comes from the folders that a flag names: not from the configuration's own folder, and never by a reload.

A reload does follow the files with arguments of plugins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from stowplan.apps.cli import main
from stowplan.apps.config_file import ArgumentFiles, follow
from stowplan.apps.run.config_file import config_file
from stowplan.apps.run.configuration import LoadedConfiguration
from stowplan.objects.errors import ConfigError
from stowplan.plugins.nodes.sp_priority.plugin import SPPriority

PLUGIN = "class Mine:\n    def score(self, pod, nodes):\n        return {}\n"
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: mine
    plugins: {{score: {{enabled: [{{name: "{}", weight: 1}}]}}}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(PLUGIN.format(1))
    (tmp_path / "later.py").write_text(PLUGIN.format(2))
    (tmp_path / "config.yaml").write_text(CONFIG.format("mine.py:Mine"))
    return tmp_path / "config.yaml"


def test_nothing_is_loaded_from_the_configurations_folder(file: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        config_file(file).load()
    assert str(caught.value) == (
        f"{file}: profiles[0].plugins.score.enabled[0]: mine.py is a file, and no folder is named that code may come "
        f"from; give --plugin-path {file.parent}"
    )


def test_a_named_folder_is_loaded_from_and_a_reload_imports_no_more(file: Path) -> None:
    configuration = config_file(file, [file.parent])
    assert "mine" in configuration.load().profiles
    assert "mine" in configuration.load_again().profiles
    file.write_text(CONFIG.format("later.py:Mine"))
    with pytest.raises(ConfigError, match="imports no new code"):
        configuration.load_again()


def test_a_changed_file_of_code_is_not_read_again(file: Path) -> None:
    configuration = config_file(file, [file.parent])
    configuration.load()
    (file.parent / "mine.py").write_text(PLUGIN.format(7))
    plugin = configuration.load_again().profiles["mine"].plugin("mine.py:Mine")
    assert plugin is not None and plugin.score(None, None) == 1


def test_the_flag_of_run(file: Path) -> None:
    said = CliRunner().invoke(main, ["run", "--config", str(file), "--kubeconfig", str(file.parent / "none")])
    assert said.exit_code == 2 and "give --plugin-path" in said.output
    named = ["--plugin-path", str(file.parent)]
    said = CliRunner().invoke(main, ["run", "--config", str(file), "--kubeconfig", str(file.parent / "none"), *named])
    assert said.exit_code == 2 and "plugin-path" not in said.output, "only the kubeconfig is missing now"
    said = CliRunner().invoke(main, ["run", "--plugin-path", str(file.parent / "none")])
    assert said.exit_code == 2 and "does not exist" in said.output


def test_config_check_says_what_run_needs(file: Path) -> None:
    note = f"note: mine.py:Mine: `stowplan run` loads it with --plugin-path {file.parent} only"
    assert note in CliRunner().invoke(main, ["config", "check", str(file)]).output
    said = CliRunner().invoke(main, ["config", "check", str(file), "--plugin-path", str(file.parent)])
    assert said.exit_code == 0 and "note" not in said.output


def test_commands_on_ones_own_machine_keep_the_configurations_folder(file: Path) -> None:
    said = CliRunner().invoke(main, ["config", "show", str(file)])
    assert said.exit_code == 0 and "mine.py:Mine*1" in said.output


def test_further_folders_for_config_show(file: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "there.py").write_text(PLUGIN.format(1))
    file.write_text(CONFIG.format("there.py:Mine"))
    assert CliRunner().invoke(main, ["config", "show", str(file)]).exit_code == 2
    said = CliRunner().invoke(main, ["config", "show", str(file), "--plugin-path", str(elsewhere)])
    assert said.exit_code == 0 and "there.py:Mine*1" in said.output


WAITS = """
from stowplan.plugin import Wake


class Mine:
    def __init__(self, action: str = "UpdateNodeLabel", hint: str = "helps") -> None:
        self.action, self.hint = action, hint

    def score(self, pod, nodes):
        return 1

    def wakes_on(self):
        yield Wake("Node", (self.action,), hint=self.hint)

    def helps(self, pod, old, new):
        return True
"""
WRONG_EVENTS = [
    pytest.param(
        "action: UpdateNodeLabels",
        "plugin mine.py:Mine: wakes_on names the action 'UpdateNodeLabels' of Node, which never happens; did you mean",
        id="an action",
    ),
    pytest.param(
        "hint: hepls", "plugin mine.py:Mine: wakes_on names the hint 'hepls', and there is no such", id="a hint"
    ),
]


@pytest.mark.parametrize(("args", "problem"), WRONG_EVENTS)
def test_a_plugin_that_waits_for_what_never_happens_is_refused(file: Path, args: str, problem: str) -> None:
    right = file.read_text()
    wrong = f"{right}    pluginConfig: [{{name: 'mine.py:Mine', args: {{{args}}}}}]\n"
    (file.parent / "mine.py").write_text(WAITS)
    configuration = config_file(file, [file.parent])
    assert "mine" in configuration.load().profiles
    file.write_text(wrong)
    with pytest.raises(ConfigError) as caught:  # a reload
        configuration.load_again()
    assert str(caught.value).startswith(f"{file}: {problem}")
    with pytest.raises(ConfigError) as caught:  # a start
        config_file(file, [file.parent]).load()
    assert str(caught.value).startswith(f"{file}: {problem}")
    said = CliRunner().invoke(main, ["config", "check", str(file)])
    assert said.exit_code == 2 and problem in said.output and "Traceback" not in said.output


# -- files with arguments

SP_PRIORITY = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: sp-scheduler
    plugins: {multiPoint: {enabled: [{name: SPPriority, weight: 5}]}}
    pluginConfig: [{name: SPPriority, args: {configFile: sppriority.yaml}}]
"""


class ArgumentsFollowed:
    """A configuration and a file with arguments beside it, followed; what was adopted and refused."""

    def __init__(self, folder: Path, config: str = SP_PRIORITY) -> None:
        self.config, self.arguments = folder / "config.yaml", folder / "sppriority.yaml"
        self.config.write_text(config)
        self.arguments.write_text("namespaceWhiteList: [kube-system]\n")
        self.adopted: list[Any] = []
        self.refused: list[str] = []

    def edit(self, text: str) -> None:
        other = self.arguments.with_suffix(".new")
        other.write_text(text)
        other.replace(self.arguments)

    async def adopt(self, new: LoadedConfiguration) -> None:
        self.adopted.append(new.configuration.profiles[0].plugin_args["SPPriority"])

    def play(self, scene: Callable[[], Awaitable[None]]) -> None:
        async def follow_it() -> None:
            file = config_file(self.config)
            following = follow(
                file, file.load(), adopt=self.adopt, refuse=lambda why: self.refused.append(str(why)), every=0.01
            )
            task = asyncio.create_task(following)
            async with asyncio.timeout(60):
                await scene()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(follow_it())

    async def until(self, condition: Callable[[], object]) -> None:
        while not condition():
            await asyncio.sleep(0.005)


def test_an_edit_of_a_file_with_arguments_takes_effect(tmp_path: Path) -> None:
    at = ArgumentsFollowed(tmp_path)

    async def scene() -> None:
        at.edit("namespaceWhiteList: [kube-system, shop]\n")
        await at.until(lambda: at.adopted)
        at.edit("nameSpaces: [shop]\n")
        await at.until(lambda: at.refused)
        at.edit("namespaceWhiteList: []\n")
        await at.until(lambda: len(at.adopted) > 1)

    at.play(scene)
    assert at.adopted == [{"namespaceWhiteList": ["kube-system", "shop"]}, {"namespaceWhiteList": []}]
    (refused,) = at.refused
    assert f"{at.arguments}: unknown argument 'nameSpaces'" in refused


def test_an_edit_that_makes_a_refused_configuration_right(tmp_path: Path) -> None:
    """The configuration itself does not change: it names another file, which was wrong at first."""
    at = ArgumentsFollowed(tmp_path)
    later = tmp_path / "later.yaml"

    async def scene() -> None:
        later.write_text("strict: perhaps\n")
        at.config.write_text(SP_PRIORITY.replace("sppriority.yaml", "later.yaml"))
        await at.until(lambda: at.refused)
        later.write_text("strict: true\n")
        await at.until(lambda: at.adopted)

    at.play(scene)
    assert at.adopted == [{"strict": True}] and "strict" in at.refused[0]


def test_the_same_arguments_written_again_change_nothing(tmp_path: Path) -> None:
    at = ArgumentsFollowed(tmp_path)

    async def scene() -> None:
        at.edit(at.arguments.read_text())
        await asyncio.sleep(0.1)

    at.play(scene)
    assert not at.adopted and not at.refused


def test_a_default_file_that_comes_and_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = ArgumentsFollowed(tmp_path, SP_PRIORITY.replace("{configFile: sppriority.yaml}", "{}"))
    monkeypatch.setattr(SPPriority, "args_file", ("configFile", str(at.arguments)))
    at.arguments.unlink()

    async def scene() -> None:
        at.edit("strict: true\n")
        await at.until(lambda: at.adopted)
        at.arguments.unlink()
        await at.until(lambda: len(at.adopted) > 1)

    at.play(scene)
    assert at.adopted == [{"strict": True}, {}]


def test_a_file_that_an_editor_replaces_is_not_gone(tmp_path: Path) -> None:
    file = tmp_path / "sppriority.yaml"
    file.write_text("strict: true\n")
    files = ArgumentFiles()
    files.paths = (file,)
    before = files.versions()
    file.unlink()
    assert files.versions() == before, "perhaps it is just being written"
    assert files.versions() == [None]
    file.write_text("strict: false\n")
    assert files.versions() not in (before, [None])
