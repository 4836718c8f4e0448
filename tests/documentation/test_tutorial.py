"""The tutorial, followed: every file is written, every command is run, and what the page shows is what is printed."""

from __future__ import annotations

import re
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.controlplane import fixtures
from tests.documentation import pages, terminals
from tests.documentation.pages import ROOT
from tests.documentation.terminals import Shell, Step

PAGE = ROOT / "docs" / "tutorial.md"
TEXT = PAGE.read_text(encoding="utf-8")
STEPS = terminals.steps(pages.blocks(PAGE))
CLONE, CLUSTER = re.compile(r"^(git clone|python3 -m venv|env/bin/pip)"), re.compile(r"^Ctrl-C ends it")
MAY_BE_NO = ("stowplan explain", "stowplan plugin check no_cap")  # exit code 1: no node, a problem


@pytest.mark.parametrize(
    "installed",
    [
        pytest.param(False, id="with the environment of the tests"),
        pytest.param(True, id="from nothing", marks=pytest.mark.full),
    ],
)
def test_the_tutorial(installed: bool, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    kubectl = fixtures.kubectl(request.config)
    environment = terminals.clean_environment(kubectl.parent) | cloning_from_here()
    folder = tmp_path / "first-steps"
    install, *others, clean_up = STEPS
    if not installed:
        install = Step([each for each in install.commands if not CLONE.match(each)], False, install.shown)
        prepare(folder / "env" / "bin")
        install.commands.remove("mkdir first-steps")
    with ExitStack() as stack:
        first = stack.enter_context(Shell(tmp_path, environment))
        follow(first, install)
        for name, text in terminals.files(TEXT).items():
            (folder / name).write_text(text, encoding="utf-8")
        second = stack.enter_context(Shell(folder, environment))
        for step in others:
            if step.first_terminal:
                start(first, step, folder / "stowplan.kubeconfig")
            else:
                follow(second, step)
        assert (folder / "report.html").stat().st_size > 10_000
        end(first)
        assert not (folder / "stowplan.kubeconfig").exists(), "the cluster has ended, and tidied up"
        follow(second, clean_up)
        assert not folder.exists()


def follow(shell: Shell, step: Step) -> None:
    printed = ""
    for command in step.commands:
        output, code = shell.run(command)
        assert code == 0 or (command.startswith(MAY_BE_NO) and code == 1), f"{command}: {code}\n{output}"
        printed += f"{output}\n"
    if step.shown is not None:
        assert terminals.agrees(printed, step.shown), f"{step.commands}\nprinted:\n{printed}\nshown:\n{step.shown}"


def start(shell: Shell, step: Step, kubeconfig: Path) -> None:
    """Start what goes on running, after Ctrl-C for what ran before."""
    (command,) = step.commands
    if kubeconfig.exists():
        end(shell)
    shell.type(command)
    printed = "".join(shell.until(CLUSTER))
    if step.shown is not None:
        assert terminals.agrees(printed, step.shown), printed


def end(shell: Shell) -> None:
    """Press Ctrl-C, and wait until the cluster has ended."""
    shell.interrupt()
    shell.until(re.compile(".*Stopped"))
    shell.run("true")  # bash takes the next command when this one has ended


def cloning_from_here() -> dict[str, str]:
    """For git: the address of the page is this repository. pip takes the versions that the tests have."""
    url = f"url.file://{ROOT}.insteadOf"
    git = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": url,
        "GIT_CONFIG_VALUE_0": "https://github.com/stowplan/stowplan",
    }
    return git | {"PIP_CONSTRAINT": str(ROOT / "constraints.txt"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def prepare(folder: Path) -> None:
    """Stand for the environment that the page makes: activating it leads to the one of the tests."""
    folder.mkdir(parents=True)
    path = f"export PATH={Path(sys.executable).parent}:$PATH"
    (folder / "activate").write_text(f"{path}\ndeactivate() {{ :; }}\n", encoding="utf-8")


# -- the page itself


def test_every_block_is_a_step_a_file_or_an_output() -> None:
    kinds = {"shell", "text", "python", "yaml", "csv"}
    assert {block.language for block in pages.blocks(PAGE)} == kinds
    written = [block for block in pages.blocks(PAGE) if block.language in ("python", "yaml", "csv")]
    assert len(terminals.files(TEXT)) == len(written), "each is named at the end of the text before it"


def test_what_is_compared() -> None:
    shown = "POD NODE\nweb-gfxlxt27qr-8fzzp node-0\n…\nx 3 s ago: b"
    assert terminals.agrees("POD   NODE\nweb-abcdefghij-12345  node-2\nmore\nand more\nx 42 s ago: b\n", shown)
    assert not terminals.agrees("POD NODE\nweb-abcdefghij-12345 node-2\nx 42 s ago: c", shown)
    assert not terminals.agrees("a node-0 node-0", "a node-0 node-1")
