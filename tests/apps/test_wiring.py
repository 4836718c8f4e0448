"""From a file to profiles: arguments that a plugin has in a file of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from stowplan.apps import wiring
from stowplan.objects.errors import ConfigError

PLUGIN = """
class Shy:
    args_file = ("settings", "{usual}")

    def __init__(self, size: int = 1, names: tuple[str, ...] = ()) -> None:
        self.size, self.names = size, names

    def score(self, pod, nodes):
        return self.size
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins: {{score: {{enabled: [{{name: "shy.py:Shy"}}]}}}}
    pluginConfig: [{{name: "shy.py:Shy", args: {args}}}]
"""


def made(folder: Path, args: str = "{}") -> tuple[int, tuple[str, ...]]:
    (folder / "shy.py").write_text(PLUGIN.format(usual=folder / "usual.yaml"), encoding="utf-8")
    (folder / "config.yaml").write_text(CONFIG.format(args=args), encoding="utf-8")
    _, profiles = wiring.read_configuration(folder / "config.yaml")
    plugin = profiles["default-scheduler"].plugin("shy.py:Shy")
    return plugin.size, tuple(plugin.names)


@pytest.mark.parametrize(
    ("file", "args", "expected"),
    [
        pytest.param("", "{}", (1, ()), id="no file, no arguments"),
        pytest.param("size: 5\nnames: [a]", "{}", (5, ("a",)), id="the file where it usually is"),
        pytest.param("size: 5\nnames: [a]", "{size: 7}", (7, ("a",)), id="the configuration wins"),
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
    assert made(tmp_path, "{settings: other.yaml}") == (6, ()), "from the configuration's folder on"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sise: 5", "unknown argument 'sise'; did you mean 'size'?"),
        ("- 5", "found no mapping of arguments"),
        ("{", "not YAML"),
        ("size: 2026-13-45", "not YAML"),
        ("yes: 5", "found no mapping of arguments"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_a_file_that_will_not_do_is_named(tmp_path: Path, text: str | None, problem: str) -> None:
    file = tmp_path / "other.yaml"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        made(tmp_path, f"{{settings: {file}}}")
    assert str(file) in str(caught.value) and problem in str(caught.value)


def test_the_name_of_a_file_is_a_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="found 5, expected the path of a file"):
        made(tmp_path, "{settings: 5}")
