"""Rules of the tree: the direction of imports, pure packages, names of modules and classes, sizes of files."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stowplan.plugins import BUILT_IN

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "stowplan"
FILES = sorted(SOURCE.rglob("*.py"))
PURE = ("objects", "columns", "cel", "framework", "plugins", "engine", "placement", "shadow", "simulation")
OUTSIDE = {
    "aiohttp", "asyncio", "ctypes", "fcntl", "glob", "http", "io", "logging", "multiprocessing",
    "os", "pathlib", "pickle", "queue", "random", "requests", "secrets", "select", "selectors", "shutil", "signal",
    "socket", "sqlite3", "ssl", "subprocess", "tempfile", "threading", "time", "urllib", "uuid", "yaml",
}  # fmt: skip
PURE_PARTS = {"urllib.parse"}
# Loading plugins by path is the whole job of two modules; reading a document handed in as text is not I/O.
ALLOWED = {
    "framework/registry.py": {"pathlib"},
    "framework/plugin_files.py": {"pathlib"},
    "framework/config/document.py": {"yaml"},
    "objects/bounded_yaml.py": {"yaml"},
    "objects/yaml_text.py": {"yaml"},
}
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base"}
# Words that only we would understand, in the name of a module of the product, of a test or of a benchmark.
PRIVATE = {
    "anew", "asking", "awaiting", "besides", "book", "books", "chronicle", "clearing", "company", "deciding",
    "flights", "gathering", "hands", "happenings", "insisting", "kept", "lesser", "lots", "outlook", "placing",
    "promise", "promised", "recall", "saying", "standin", "standins", "tending", "trails", "vigil", "weather", "whims",
    "wishes",
}  # fmt: skip
LONGEST = 400  # lines of a module
# Tests of what is no package of ours: manifests, the image, examples, a control plane, kube-scheduler's code and tests.
OTHER_TESTS = (
    "attacks",
    "benchmarks",
    "controlplane",
    "deploy",
    "documentation",
    "engine/situations",
    "examples",
    "image",
    "monitoring",
    "kube_tests",
    "oracle",
    "oracle/draw",
    "oracle/draw/categories",
    "soak",
)


def test_imports_point_to_a_lower_layer() -> None:
    """The contract is in pyproject.toml; `lint-imports` says which import breaks it."""
    program = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def imported(file: Path, *, nested: bool = True) -> Iterator[str]:
    """Yield the modules that a file imports; without `nested`, only those that it imports at once."""
    module = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(module) if nested else module.body:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def pure_files() -> list[Path]:
    return [file for file in FILES if file.relative_to(SOURCE).parts[0] in PURE]


def test_the_pure_packages_exist() -> None:
    assert {file.relative_to(SOURCE).parts[0] for file in pure_files()} == set(PURE)


@pytest.mark.parametrize("file", pure_files(), ids=lambda file: str(file.relative_to(SOURCE)))
def test_a_pure_package_has_no_clock_no_random_numbers_and_no_io(file: Path) -> None:
    name = str(file.relative_to(SOURCE))
    outside = {module.partition(".")[0] for module in set(imported(file)) - PURE_PARTS} & OUTSIDE
    assert outside - ALLOWED.get(name, set()) == set()


CALLS = {"open", "print", "input", "exec", "eval", "now", "utcnow", "today", "getenv"}


@pytest.mark.parametrize("file", pure_files(), ids=lambda file: str(file.relative_to(SOURCE)))
def test_a_pure_package_calls_nothing_that_is_not_pure(file: Path) -> None:
    """`datetime.now()` needs no import of a clock, and `open` none at all."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    called = {
        getattr(node.func, "id", getattr(node.func, "attr", ""))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    }
    assert called & CALLS == set()


def test_objects_do_not_import_numpy() -> None:
    """Programs without columns stay small. A function that is seldom called may import it."""
    objects = (SOURCE / "objects").glob("*.py")
    assert [file.name for file in objects if "numpy" in set(imported(file, nested=False))] == []


def test_no_plugin_imports_another() -> None:
    """A plugin may have parts in files beside it."""
    plugins = {plugin.__module__ for plugin in BUILT_IN.values()}
    for file in (SOURCE / "plugins" / "nodes").glob("*.py"):
        assert set(imported(file)) & plugins == set(), file.name


def test_modules_are_named_for_what_they_do() -> None:
    assert [file for file in FILES if {*file.relative_to(SOURCE).with_suffix("").parts} & VAGUE] == []


@pytest.mark.parametrize("folder", ["src/stowplan", "tests", "benchmarks"])
def test_modules_have_plain_names(folder: str) -> None:
    names = (file.relative_to(ROOT / folder).with_suffix("") for file in (ROOT / folder).rglob("*.py"))
    assert [str(name) for name in names if {word for part in name.parts for word in part.split("_")} & PRIVATE] == []


def test_no_class_name_is_used_twice() -> None:
    """A reader who searches for a name finds one class."""
    files: dict[str, list[str]] = {}
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                files.setdefault(node.name, []).append(str(file.relative_to(SOURCE)))
    assert {name: found for name, found in files.items() if len(found) > 1} == {}


def test_no_module_is_long() -> None:
    """A module with more lines is two modules."""
    lengths = {str(file.relative_to(SOURCE)): len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert {file: length for file, length in lengths.items() if length > LONGEST} == {}


@pytest.mark.parametrize("file", pure_files(), ids=lambda file: str(file.relative_to(SOURCE)))
def test_a_value_has_no_hidden_attributes(file: Path) -> None:
    """What is computed once is a field or a cached property, not an entry of `__dict__` that others write."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "__dict__"] == []


def test_tests_are_where_the_tested_package_is() -> None:
    packages = {file.parent.relative_to(SOURCE) for file in FILES}
    folders = {file.parent.relative_to(ROOT / "tests") for file in (ROOT / "tests").rglob("*.py")}
    assert folders - packages - {Path(folder) for folder in OTHER_TESTS} == set()


@pytest.mark.parametrize(
    "file", sorted((SOURCE / "testing").glob("*.py")), ids=lambda file: str(file.relative_to(SOURCE))
)
def test_the_package_for_tests_needs_no_test_runner(file: Path) -> None:
    assert {name.partition(".")[0] for name in imported(file)} & {"pytest", "hypothesis", "tests"} == set()


@pytest.mark.parametrize(
    "file", [file for file in FILES if file.read_text().strip()], ids=lambda file: str(file.relative_to(SOURCE))
)
def test_a_module_has_a_docstring(file: Path) -> None:
    assert ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))), "no docstring"
