"""Where plugins come from: the table of built-ins, a file, a module, an installed package; and what can go wrong."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from stowplan.framework.config.document import snake
from stowplan.framework.registry import Registry
from stowplan.objects.errors import ConfigError
from stowplan.plugins import BUILT_IN

PLUGIN = """
class Even:
    def __init__(self, *, step: int = 2, label_key: str = "zone") -> None:
        self.step, self.label_key = step, label_key

    def score(self, pod, nodes):
        return None


class Picky:
    def __init__(self, must):
        raise_for = {"value": ValueError, "key": KeyError}
        raise raise_for[must]("not like this")

    def filter(self, pod, nodes):
        return ()


class Grids:
    def __init__(self, low_grids):
        pass

    def filter(self, pod, nodes):
        return ()


class Nothing:
    pass


number = 5
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(PLUGIN)
    (tmp_path / "broken.py").write_text("import no_such_module_anywhere")
    (tmp_path / "garbled.py").write_text("class (:")
    return tmp_path


def test_a_file_is_found_from_the_configurations_folder_on(folder: Path) -> None:
    registry = Registry({}, folder=folder)
    assert registry.implements("mine.py:Even") == frozenset({"score"})
    made = registry.make("mine.py:Even", {"step": 3, "labelKey": "rack"})
    assert (made.step, made.label_key) == (3, "rack")
    assert registry.find("mine.py:Even") is type(made)


def test_files_with_similar_names_are_two_modules(tmp_path: Path) -> None:
    for name, step in (("a-b.py", 1), ("a_b.py", 2)):
        (tmp_path / name).write_text(f"class Even:\n    step = {step}\n\n    def score(self, pod, nodes): ...\n")
    found = [Registry({}, folder=tmp_path).find(f"{name}:Even") for name in ("a-b.py", "a_b.py")]
    assert [getattr(each, "step", None) for each in found] == [1, 2]


def test_a_module_that_can_be_imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    assert Registry({}).implements("mine:Even") == frozenset({"score"})


def test_an_installed_plugin_is_found_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "Even = installed_plugins:Even")
    registry = Registry(BUILT_IN, discover=True)
    assert "Even" in registry.names()
    assert registry.make("Even", {"step": 5}).step == 5
    assert "Even" not in Registry(BUILT_IN).names()


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, entry: str) -> None:
    """A package as pip would leave it: a module, and a dist-info that names its entry point."""
    (folder / "installed_plugins.py").write_text(PLUGIN)
    info = folder / "installed_plugins-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: installed-plugins\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[stowplan.plugins]\n{entry}\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "installed_plugins", raising=False)


def test_an_installed_plugin_cannot_take_the_name_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "NodeName = installed_plugins:Even")
    with pytest.raises(ConfigError, match="installed_plugins:Even wants the name NodeName, which is taken"):
        Registry(BUILT_IN, discover=True)


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param("Gone = no_such_module_anywhere:Gone", id="its module cannot be imported"),
        pytest.param("Gone = installed_plugins:Gone", id="its class is not there"),
        pytest.param("Gone = installed_plugins:number", id="it is no class"),
        pytest.param("Gone = installed_plugins:Nothing", id="it is no plugin"),
    ],
)
def test_an_installed_plugin_that_cannot_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str) -> None:
    install(tmp_path, monkeypatch, entry)
    with pytest.raises(ConfigError, match="Gone"):
        Registry(BUILT_IN, discover=True)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        pytest.param("other.py:Even", "there is no file other.py in ", id="a file that is not there"),
        pytest.param("mine.py:Evn", "has no class 'Evn'; did you mean 'Even'?", id="a class that is not there"),
        pytest.param(
            "mine.py:number",
            "has no class 'number'; there is Even, Grids, Nothing, Picky",
            id="something that is no class",
        ),
        pytest.param("mine.py:Nothing", "has no method of any extension point", id="a class that is no plugin"),
        pytest.param("mine.py:", "has no class ''", id="no class is named"),
        pytest.param("broken.py:X", "broken.py cannot be imported: ModuleNotFoundError", id="a file that fails"),
        pytest.param("garbled.py:X", "garbled.py cannot be imported: SyntaxError", id="a file that is no Python"),
        pytest.param(
            "no_such_package.mod:X", "no_such_package.mod cannot be imported", id="a module that is not there"
        ),
        pytest.param(":X", "cannot be imported", id="no module is named"),
        pytest.param("logging:FileHandler", "logging is a module of Python itself", id="a class of Python itself"),
        pytest.param("logging.handlers:QueueHandler", "is a module of Python itself", id="in one of its packages"),
    ],
)
def test_a_plugin_that_cannot_be_found(folder: Path, name: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Registry({}, folder=folder).find(name)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_name_that_nobody_has() -> None:
    assert Registry(BUILT_IN).find("NodeNaem") is None
    assert Registry(BUILT_IN).implements("NodeNaem") is None
    with pytest.raises(ConfigError, match="no plugin is called 'NodeNaem'"):
        Registry(BUILT_IN).make("NodeNaem", {})


@pytest.mark.parametrize(
    ("name", "args", "problem"),
    [
        pytest.param(
            "mine.py:Even", {"stpe": 3}, "unknown argument 'stpe'; did you mean 'step'?", id="a misspelt argument"
        ),
        pytest.param(
            "mine.py:Even", {"size": 3}, "unknown argument 'size'; there is labelKey, step", id="an unknown one"
        ),
        pytest.param(
            "mine.py:Even",
            {"labelKye": 3},
            "unknown argument 'labelKye'; did you mean 'labelKey'?",
            id="in the spelling of the file",
        ),
        pytest.param("mine.py:Picky", {}, "argument 'must' is missing", id="a missing one"),
        pytest.param("mine.py:Even", {True: 1}, "found the argument True, expected a text", id="on, which YAML reads"),
        pytest.param("mine.py:Grids", {}, "argument 'lowGrids' is missing", id="a missing one of two words"),
        pytest.param(
            "mine.py:Picky", {"must": "value"}, "cannot be made from these arguments", id="it raises ValueError"
        ),
        pytest.param(
            "mine.py:Picky",
            {"must": "key"},
            "cannot be made from these arguments",
            id="it raises something else",
        ),
    ],
)
def test_arguments_that_will_not_do(folder: Path, name: str, args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Registry({}, folder=folder).make(name, args, path="profiles[0]")
    assert str(caught.value).startswith(f"profiles[0].pluginConfig[name={name}].args: ")
    assert problem in str(caught.value)


def test_what_is_not_an_argument_is_left_out(folder: Path) -> None:
    args = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "EvenArgs", "step": 4}
    assert Registry({}, folder=folder).make("mine.py:Even", args).step == 4


def test_an_argument_may_be_called_kind(folder: Path) -> None:
    (folder / "kinds.py").write_text(
        "class Of:\n    def __init__(self, kind='Job'):\n        self.kind = kind\n"
        "    def score(self, pod, nodes): ...\n"
    )
    assert Registry({}, folder=folder).make("kinds.py:Of", {"kind": "Deployment"}).kind == "Deployment"


@pytest.mark.parametrize(
    ("camel", "expected"),
    [
        pytest.param("minCandidateNodesPercentage", "min_candidate_nodes_percentage", id="words"),
        pytest.param("resources", "resources", id="one word"),
        pytest.param("ipv6Only", "ipv6_only", id="a digit ends a word"),
        pytest.param("cacheTTL", "cache_ttl", id="capitals are one word"),
        pytest.param("cacheTTLSeconds", "cache_ttl_seconds", id="capitals, and another word"),
    ],
)
def test_arguments_become_keywords(camel: str, expected: str) -> None:
    assert snake(camel) == expected
