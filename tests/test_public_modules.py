"""The public modules: few names, each with a docstring, and kept. docs/plugins.md shows code that works."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from stowplan.apps.cli import main
from stowplan.framework.config.document import snake
from stowplan.testing import check_plugin
from tests import public_surface
from tests.public_surface import PUBLIC, RECORD

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
METHODS = {"filter", "score", "pre_filter", "cluster_key"}
ARGUMENTS: dict[str, dict[str, Any]] = {"Residency": {"regions": {"eu": ["frankfurt", "dublin"]}}}
SHOWN = re.findall(r"^```console\n\$ stowplan (plugin check .*)\n((?s:.*?))^```", PAGE, re.MULTILINE)
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_nothing_public_is_removed_or_added_by_accident() -> None:
    recorded, found = RECORD.read_text(encoding="utf-8").split("\n")[:-1], public_surface.lines()
    assert set(recorded) - set(found) == set(), "deprecate it first (docs/stability.md)"
    assert set(found) - set(recorded) == set(), "record it: python -m tests.public_surface > tests/public_surface.txt"


def test_an_author_of_policies_has_few_names_to_learn() -> None:
    assert len(importlib.import_module("stowplan.plugin").__all__) <= 45


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_exists_once_and_has_a_docstring(name: str) -> None:
    module = importlib.import_module(name)
    assert sorted(set(module.__all__)) == sorted(module.__all__)
    assert [each for each in module.__all__ if not inspect.getdoc(getattr(module, each))] == []


@pytest.mark.parametrize("name", ["stowplan.plugin", "stowplan.simulation"])
def test_every_name_of_a_library_shows_an_example(name: str) -> None:
    module = importlib.import_module(name)
    found = {name: getattr(module, name) for name in module.__all__}
    ours = {name: value for name, value in found.items() if "stowplan" in str(getattr(value, "__module__", ""))}
    assert [name for name, value in ours.items() if not has_example(value.__doc__ or "")] == []


def has_example(docstring: str) -> bool:
    """True if a docstring has code: between backquotes, or in a block of its own between empty lines."""
    return bool(re.search(r"`[^`]*[(\[.=][^`]*`", docstring) or re.search(r"\n\n +\S.*[(\[.=:]", docstring))


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_code_of_the_page_imports_public_modules_only(number: int) -> None:
    imported = re.findall(r"^(?:from|import) (stowplan[\w.]*)", BLOCKS[number], re.MULTILINE)
    assert set(imported) <= set(PUBLIC)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_code_of_the_page_can_be_loaded(number: int, tmp_path: Path) -> None:
    assert any(inspect.isclass(value) or inspect.isfunction(value) for value in vars(loaded(number, tmp_path)).values())


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_policies_of_the_page_keep_the_contract(number: int, tmp_path: Path) -> None:
    """A method that never acted is no fault here: the page gives no pods and no objects."""
    for name, found in vars(loaded(number, tmp_path)).items():
        if inspect.isclass(found) and found.__module__.startswith("docs_") and METHODS & set(vars(found)):
            problems = check_plugin(found(**ARGUMENTS.get(name, {})))
            assert [each for each in problems if " never " not in each] == []


@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command for command, _ in SHOWN])
def test_the_page_shows_what_the_command_prints(
    command: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each class of the page is in the file of its name; long lines are folded on the page."""
    for block in BLOCKS:
        for name in re.findall(r"^class (\w+)", block, re.MULTILINE):
            (tmp_path / f"{snake(name)}.py").write_text(block, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(main, shlex.split(command))
    assert said.output.split() == shown.split()


def test_the_page_shows_what_some_command_prints() -> None:
    assert len(SHOWN) >= 3


def loaded(number: int, folder: Path) -> ModuleType:
    """The module of a block of docs/plugins.md, loaded from a file as a plugin is."""
    file = folder / f"docs_{number}.py"
    file.write_text(BLOCKS[number], encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module
