"""Code comes from the folders that a flag names: not from the configuration's own folder, and never by a reload."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from stowplan.apps.cli import main
from stowplan.apps.run.config_file import config_file
from stowplan.objects.errors import ConfigError

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
