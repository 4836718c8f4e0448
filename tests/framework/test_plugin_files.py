"""Files with plugins are loaded from named folders only; links and `..` do not lead out of them."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from stowplan.framework import plugin_files
from stowplan.framework.registry import Registry
from stowplan.objects.errors import ConfigError

PLUGIN = "class Mine:\n    def score(self, pod, nodes):\n        return None\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that is named, with another one beside it."""
    for each in ("named", "named/sub", "other"):
        (tmp_path / each).mkdir()
        (tmp_path / each / "mine.py").write_text(PLUGIN)
    (tmp_path / "other" / "alone.py").write_text(PLUGIN)
    (tmp_path / "named" / "out.py").symlink_to(tmp_path / "other" / "alone.py")
    (tmp_path / "named" / "linked").symlink_to(tmp_path / "other")
    (tmp_path / "alias").symlink_to(tmp_path / "named")
    return tmp_path


@pytest.mark.parametrize(
    ("source", "folders", "expected"),
    [
        pytest.param("mine.py", ["named"], "named/mine.py", id="a file in the folder"),
        pytest.param("sub/mine.py", ["named"], "named/sub/mine.py", id="a file further down"),
        pytest.param("sub/../mine.py", ["named"], "named/mine.py", id="dots that stay inside"),
        pytest.param("alone.py", ["named", "other"], "other/alone.py", id="the second folder"),
        pytest.param("mine.py", ["other", "named"], "other/mine.py", id="the first folder that has it"),
        pytest.param("mine.py", ["alias"], "named/mine.py", id="the folder itself is a link"),
        pytest.param("{}/named/mine.py", ["named"], "named/mine.py", id="an absolute path inside"),
        pytest.param("../other/alone.py", ["named", "other"], "other/alone.py", id="dots into another named folder"),
    ],
)
def test_a_file_in_a_named_folder(folder: Path, source: str, folders: list[str], expected: str) -> None:
    file, _ = plugin_files.found(source.format(folder), [folder / each for each in folders], folder)
    assert file == folder / expected


@pytest.mark.parametrize(
    ("source", "folders", "problem"),
    [
        pytest.param("mine.py", [], "no folder is named that code may come from; give --plugin-path ", id="no folder"),
        pytest.param("../other/alone.py", ["named"], "/other/alone.py, and code may only come from ", id="dots"),
        pytest.param("{}/other/alone.py", ["named"], "/other/alone.py, and code may only come from ", id="absolute"),
        pytest.param("out.py", ["named"], "/other/alone.py, and code may only come from ", id="a link to a file"),
        pytest.param("linked/alone.py", ["named"], "and code may only come from ", id="a link to a folder"),
        pytest.param("none.py", ["named"], "there is no file none.py in {}/named", id="no such file"),
        pytest.param("mine.py", ["missing"], "there is no file mine.py in {}/missing", id="no such folder"),
        pytest.param("{}/named/../other/alone.py", ["named"], "code may only come from {}/named", id="a detour"),
    ],
)
def test_a_file_elsewhere(folder: Path, source: str, folders: list[str], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plugin_files.found(source.format(folder), [folder / each for each in folders], folder)
    assert problem.format(folder) in str(caught.value)
    assert "give --plugin-path " in caught.value.remedy


def test_a_file_beside_the_configuration_is_named_in_the_remedy(folder: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        plugin_files.found("mine.py", [], folder / "named")
    assert caught.value.remedy == f"give --plugin-path {folder / 'named'}"


def test_a_mounted_config_map_is_a_folder_of_links(tmp_path: Path) -> None:
    """The kubelet writes a version into a folder of its own, and switches `..data` to it."""
    (tmp_path / "..2026_01").mkdir()
    (tmp_path / "..2026_01" / "mine.py").write_text(PLUGIN)
    (tmp_path / "..data").symlink_to("..2026_01")
    (tmp_path / "mine.py").symlink_to("..data/mine.py")
    assert Registry({}, code=[tmp_path]).implements("mine.py:Mine") == frozenset({"score"})


def test_a_registry_knows_where_its_files_came_from(folder: Path) -> None:
    registry = Registry({}, folder=folder, code=[folder / "named"])
    registry.find("mine.py:Mine")
    assert registry.files == {"mine.py:Mine": folder / "named"}
    with pytest.raises(ConfigError, match="imports no new code"):
        registry.closed().find("sub/mine.py:Mine")
    assert registry.closed().find("mine.py:Mine") is not None


def test_without_code_folders_the_configurations_folder_is_the_one(folder: Path) -> None:
    assert Registry({}, folder=folder / "named").find("mine.py:Mine") is not None
    with pytest.raises(ConfigError, match="no folder is named"):
        Registry({}, folder=folder / "named", code=()).find("mine.py:Mine")


# -- a file that is imported already


def test_a_file_is_imported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test imports the file that the configuration names: both see the same classes."""
    (tmp_path / "seats_of_one_test.py").write_text(PLUGIN)
    (tmp_path / "alias").symlink_to(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "alias")
    module = importlib.import_module("seats_of_one_test")
    assert Registry({}, folder=tmp_path).find("seats_of_one_test.py:Mine") is module.Mine


def test_two_configurations_share_a_file(folder: Path) -> None:
    one, another = (Registry({}, folder=folder / each) for each in ("named", "alias"))
    assert one.find("mine.py:Mine") is another.find("mine.py:Mine")
    assert one.find("mine.py:Mine") is not one.find("sub/mine.py:Mine")


def test_a_file_that_failed_is_imported_again(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(PLUGIN + "1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        plugin_files.load(file)
    file.write_text(PLUGIN)
    assert plugin_files.load(file).Mine
