"""A file that is no YAML or JSON is named with its line, wherever a command reads it; standard input is `-`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from stowplan.apps.cli import main

YAML, JSON = "apiVersion: v1\nkind: Pod\nmetadata: {name: [a\n", '{"apiVersion": "v1",\n "kind": "Pod",\n}'


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        pytest.param("broken.yaml", YAML, "cannot be read: line 4: not YAML: ", id="YAML"),
        pytest.param("broken.json", JSON, "cannot be read: line 3: not a JSON object: ", id="JSON"),
    ],
)
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["up", "--from"], id="up --from"),
        pytest.param(["explain", "--from"], id="explain --from"),
        pytest.param(["explain", "-f"], id="explain -f"),
    ],
)
def test_the_file_and_the_line_are_named(
    words: list[str], name: str, text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    done = CliRunner().invoke(main, [*words, name])
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert done.output.startswith(f"stowplan: {name}: {said}")


def test_standard_input() -> None:
    done = CliRunner().invoke(main, ["explain", "-f", "-"], input=YAML)
    assert done.exit_code == 2 and done.output.startswith("stowplan: -: cannot be read: line 4: not YAML: ")
