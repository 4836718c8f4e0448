"""The documents list the commands and the differences of the embedded cluster, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import click

from stowplan.apps.cli import main
from tests.embedded.kubectl_script import DIFFERENCES

DOCS = Path(__file__).parents[2] / "docs"


def test_every_command_is_listed_and_no_other() -> None:
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    listed = {found.split()[0] for found in re.findall(r"^\| `stowplan ([^`]+)`", text, re.MULTILINE)}
    assert listed == set(main.commands)
    config = main.commands["config"]
    assert isinstance(config, click.Group)
    assert set(re.findall(r"^\| `stowplan config (\w+)", text, re.MULTILINE)) == set(config.commands)


def test_every_difference_of_the_embedded_cluster_is_listed_and_no_other() -> None:
    text = (DOCS / "embedded.md").read_text(encoding="utf-8")
    assert re.findall(r"^\d+\. (.+)$", text, re.MULTILINE) == [difference.reason for difference in DIFFERENCES]
