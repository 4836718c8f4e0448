"""At 80 columns nothing is cut: the help of every command, `config show` and `config check`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from stowplan.apps import config_show, profile_loader
from stowplan.apps.cli import main
from stowplan.apps.place.commands import place

COLUMNS = 80
CUT = re.compile(r"\.\.\.$|…$", re.MULTILINE)


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command, and the words that call it."""
    command = place if words == ("place",) else command  # its module is imported when it is needed
    yield words, command
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below is not None
                yield from commands(below, (*words, name))


ALL = [pytest.param(*each, id=" ".join(("stowplan", *each[0]))) for each in commands(main)]


def shown(*words: str) -> str:
    said = CliRunner().invoke(main, [*words, "--help"], terminal_width=COLUMNS)
    assert said.exit_code == 0, said.output
    return said.output


def plain(text: str) -> str:
    """The text in one line, without the marks by which click keeps or breaks lines."""
    return " ".join(text.replace("\b", "").split())


def test_there_are_commands_below_commands() -> None:
    found = [" ".join(each.values[0]) for each in ALL]  # type: ignore[arg-type]
    assert {"", "config check", "place follow", "plugin new", "score-agent usage"} <= set(found)


@pytest.mark.parametrize(("words", "command"), ALL)
def test_no_help_is_cut(words: tuple[str, ...], command: click.Command) -> None:
    rest = shown(*words).partition("\n\n")[2]  # without the usage, which has ARGS...
    assert [line for line in rest.splitlines() if line.endswith("...")] == []
    assert [line for line in rest.splitlines() if len(line) > COLUMNS] == []
    helps = [each.help for each in command.params if isinstance(each, click.Option) and each.help and not each.hidden]
    whole = plain(rest).replace(" ", "")  # a word with a hyphen may be on two lines
    assert [each for each in (command.help or "", *helps) if plain(each).replace(" ", "") not in whole] == []


@pytest.mark.parametrize(("words", "command"), [each for each in ALL if isinstance(each.values[1], click.Group)])
def test_the_first_sentence_of_each_command_is_whole(words: tuple[str, ...], command: click.Group) -> None:
    listed = plain(shown(*words).rpartition("Commands:")[2])
    for name in command.list_commands(click.Context(command)):
        below = command.get_command(click.Context(command), name)
        assert below is not None
        sentence = re.split(r"(?<=[.])\s", plain(below.help or ""))[0]
        assert f"{name} {sentence}" in listed


def test_config_show_wraps_between_words() -> None:
    configuration, profiles = profile_loader.defaults()
    found = config_show.of_profiles(configuration, profiles)
    wide, narrow = config_show.text(found, None), config_show.text(found, COLUMNS)
    assert max(map(len, wide.splitlines())) > COLUMNS >= max(map(len, narrow.splitlines()))
    assert narrow.split() == wide.split() and CUT.findall(narrow) == []


def test_errors_and_notes_of_config_check_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    file = tmp_path / "config.yaml"
    name = "a-rather-long-name-of-a-plugin-that-nobody-has-written-yet"
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    for text in (
        f"profiles: [{{plugins: {{score: {{enabled: [{{name: {name}}}]}}}}}}]",
        f"profiles: [{{plugins: {{score: {{disabled: [{{name: {name}}}]}}}}}}]",
    ):
        file.write_text(head + text)
        said = CliRunner().invoke(main, ["config", "check", str(file)])
        assert name in said.output and CUT.findall(said.output) == []
