"""`stowplan plugin new` writes a plugin that works: its own tests, ruff and mypy --strict pass, and it is checked."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stowplan.apps.cli import main
from stowplan.apps.plugin_kit.new import plugin_name

PUBLIC = ("stowplan.plugin", "stowplan.testing")
BIN = Path(sys.executable).parent


def called(*words: str) -> Result:
    return CliRunner().invoke(main, ["plugin", *words])


@dataclass(frozen=True)
class Kind:
    """What is written for one kind of plugins, and the commands that its page names."""

    name: str
    files: tuple[str, ...]
    commands: tuple[str, ...]
    valid: str


KINDS = (
    Kind("node", (), ("config", "plugin", "plugin", "up", "run"), "valid, 1 profile(s)"),
    Kind("cluster", ("hub.yaml",), ("config", "plugin", "plugin", "place", "place"), "valid"),
)


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def folder(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("kit")
    done = called("new", "rack-spread", "--kind", kind.name, "--directory", str(directory))
    assert done.exit_code == 0, done.output
    assert f"stowplan config check {directory / 'rack_spread' / 'config.yaml'}" in done.output
    return directory / "rack_spread"


def run(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_written(folder: Path, kind: Kind) -> None:
    written = sorted(file.name for file in folder.iterdir() if file.is_file())
    assert written == sorted(["README.md", "config.yaml", "rack_spread.py", "test_rack_spread.py", *kind.files])
    assert not any("$" in file.read_text(encoding="utf-8") for file in folder.iterdir() if file.is_file())


def imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def test_it_imports_the_public_modules_only(folder: Path) -> None:
    ours = {name for file in folder.glob("*.py") for name in imported(file) if name.startswith("stowplan")}
    assert ours == set(PUBLIC)


def test_its_own_tests_pass(folder: Path) -> None:
    run(folder, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")


def test_ruff_has_nothing_to_say(folder: Path) -> None:
    run(folder, str(BIN / "ruff"), "check", "--isolated", "--no-cache", ".")
    run(folder, str(BIN / "ruff"), "format", "--isolated", "--no-cache", "--check", ".")


def test_mypy_has_nothing_to_say(folder: Path) -> None:
    cache = str(Path(__file__).parents[3] / ".mypy_cache")
    run(folder, sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, ".")


def test_the_configuration_and_the_plugin_are_right(folder: Path, kind: Kind) -> None:
    done = CliRunner().invoke(main, ["config", "check", str(folder / "config.yaml")])
    assert done.exit_code == 0 and kind.valid in done.output
    done = called("check", f"{folder / 'rack_spread.py'}:RackSpread")
    assert done.exit_code == 0 and "keeps the contract" in done.output, done.output


def test_the_readme_names_the_commands(folder: Path, kind: Kind) -> None:
    lines = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    commands = [line.split() for line in lines if line.startswith("    stowplan ")]
    assert tuple(words[1] for words in commands) == kind.commands
    assert any(line.startswith("    pytest ") for line in lines)


@pytest.mark.parametrize("kind", KINDS[1:], ids=["cluster"], indirect=True)
def test_the_policy_chooses_clusters_as_its_readme_says(folder: Path) -> None:
    lines = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in lines if "place explain" in line)
    words = [str(folder / word) if word.endswith(".yaml") else word for word in line.partition("#")[0].split()[1:]]
    done = CliRunner().invoke(main, [*words, "-o", "json"])
    found = json.loads(done.output)
    assert (done.exit_code, [each["clusterName"] for each in found["selected"]]) == (0, ["large"])
    assert [each["reason"] for each in found["dropped"]] == ["its region is not known"]


def test_an_existing_folder_is_never_overwritten(folder: Path) -> None:
    before = {file: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    done = called("new", "RackSpread", "--directory", str(folder.parent))
    assert done.exit_code == 2 and f"{folder} exists already" in done.output
    assert {file: file.read_bytes() for file in before} == before


@pytest.mark.parametrize(
    ("name", "module", "class_name"),
    [
        ("rack-spread", "rack_spread", "RackSpread"),
        ("rack_spread", "rack_spread", "RackSpread"),
        ("RackSpread", "rack_spread", "RackSpread"),
        ("racks2", "racks2", "Racks2"),
        ("GPUSharing", "gpu_sharing", "GPUSharing"),
    ],
)
def test_names(name: str, module: str, class_name: str) -> None:
    found = plugin_name(name)
    assert (found.module, found.class_name) == (module, class_name)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        pytest.param(
            "1x", "cannot be the name of a plugin; use letters, digits, hyphens and underscores", id="a digit first"
        ),
        pytest.param("", "cannot be the name of a plugin", id="empty"),
        pytest.param("a.b", "cannot be the name of a plugin", id="a dot"),
        pytest.param("../x", "cannot be the name of a plugin", id="a path"),
        pytest.param("ünits", "cannot be the name of a plugin", id="another letter"),
        pytest.param("class", "is a word of Python itself", id="a keyword"),
        pytest.param("Class", "is a word of Python itself", id="a keyword as a class"),
        pytest.param("match", "is a word of Python itself", id="a soft keyword"),
        pytest.param("json", "would hide the module json", id="of the standard library"),
        pytest.param("numpy", "would hide the module numpy", id="an installed package"),
        pytest.param("stowplan", "would hide the module stowplan", id="ours"),
        pytest.param("test_it", "is the name of a test", id="a test"),
    ],
)
def test_names_that_cannot_be_used(name: str, problem: str, tmp_path: Path) -> None:
    done = called("new", name, "--directory", str(tmp_path))
    assert done.exit_code == 2 and problem in done.output
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = called("new", "mine", "--directory", str(tmp_path / "file" / "below"))
    assert done.exit_code == 2 and "Traceback" not in done.output


@pytest.mark.parametrize("name", ["ab", "a-very-long-name-of-a-plugin-that-somebody-chose"])
def test_the_comments_of_the_page_are_in_one_column(kind: Kind, name: str, tmp_path: Path) -> None:
    assert called("new", name, "--kind", kind.name, "--directory", str(tmp_path)).exit_code == 0
    (page,) = tmp_path.rglob("README.md")
    commands = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("    ")]
    assert len(commands) == 6 and len({line.index("# ") for line in commands}) == 1
