"""The commands of every page are typed into a shell, as a reader does; `sessions.py` says which are not, and why."""

from __future__ import annotations

import re
import shutil
import sys
import time
from pathlib import Path

import pytest

from stowplan.framework.config.document import snake
from tests.controlplane import fixtures
from tests.documentation import pages
from tests.documentation.pages import ROOT
from tests.documentation.sessions import COMPONENTS, SESSIONS, Session, commands
from tests.documentation.terminals import WITHIN, Shell, clean_environment

LEFT_OUT = ("tests/", "CHANGELOG.md")
PAGES = {pages.named(each): each for each in pages.pages() if not pages.named(each).startswith(LEFT_OUT)}
# What goes on running, and what it has printed once it works.
ONGOING = {
    r"(?:\.venv/bin/)?stowplan (up)\b": "Ctrl-C ends it",
    r"(?:\.venv/bin/)?stowplan (run)\b": "Caches are synced",
    r"(?:\.venv/bin/)?stowplan (place)(?! explain| follow)": '"Leading"',
    r"(?:\.venv/bin/)?stowplan (shadow)(?!.*--for)": "Ctrl-C ends it",
    r"(?:\.venv/bin/)?stowplan (score-agent)(?!.*--(?:once|help))": ".",
}
NO_PORT = " --secure-port 0"  # the only word that is added: tests listen on loopback and free ports alone


def test_every_page_with_commands_has_a_session_and_no_other() -> None:
    assert {name for name, page in PAGES.items() if next(commands(page), None)} == set(SESSIONS)


@pytest.mark.parametrize("name", SESSIONS)
def test_what_a_session_says_is_about_the_page(name: str) -> None:
    session, found = SESSIONS[name], [command for _, command in commands(PAGES[name])]
    for pattern in (*session.left, *(each for each, _ in session.before), *session.shows):
        assert any(re.match(pattern, command) for command in found), f"{pattern}: the page has no such command"
    assert [word for word in session.means if not any(word in command for command in found)] == []
    for reason in (*session.left.values(), session.console):
        for path in re.findall(r"(?:tests|benchmarks)/[\w./]*\w", reason):
            assert (ROOT / path).exists(), f"{path}: no such test"


def typed(name: str) -> list[str]:
    session = SESSIONS[name]
    return [command for block, command in commands(PAGES[name]) if session.reason(command, block) is None]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name.startswith("docs/") else pytest.mark.full)
        for name in SESSIONS
        if typed(name)
    ],
)
def test_the_commands_of(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    session = SESSIONS[name]
    prepare(tmp_path, session, PAGES[name])
    environment = clean_environment(fixtures.kubectl(request.config).parent, Path(sys.executable).parent)
    with Shell(tmp_path, environment) as shell:
        try:
            follow(name, Reader(shell, tmp_path, session))
            jobs, _ = shell.run("jobs")
            assert "Exit" not in jobs, f"these were to go on:\n{jobs}"
        finally:
            shell.run("kill $(jobs -p) 2>/dev/null; wait")


def follow(name: str, reader: Reader) -> None:
    session = SESSIONS[name]
    if session.cluster is not None:
        reader.begin(f"stowplan up {session.cluster} --kubeconfig meanwhile.kubeconfig")
        reader.must("export KUBECONFIG=$PWD/meanwhile.kubeconfig")
    for command in session.first:
        reader.must(command)
    for command in typed(name):
        reader.type(command)


def prepare(folder: Path, session: Session, page: Path) -> None:
    """A clone with its environment, as far as commands look at it, and the files that the page speaks of."""
    for name in ("examples", "tests", "benchmarks", "pyproject.toml"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "deploy", folder / "deploy", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    for name, text in session.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    yaml = [block.text for block in pages.blocks(page) if block.language == "yaml"]
    (folder / "FILE").write_text("---\n".join(yaml[:2]), encoding="utf-8")  # "the YAML blocks below"
    shutil.copytree(ROOT / "examples" / "06-cluster-policy", folder / "policy")
    for block in pages.blocks(page):
        for name in re.findall(r"^class (\w+)", block.text, re.MULTILINE) if block.language == "python" else ():
            (folder / f"{snake(name)}.py").write_text(block.text, encoding="utf-8")


class Reader:
    """Types, and waits for what goes on until it works. It goes on until another of its kind, or a cluster, begins."""

    def __init__(self, shell: Shell, folder: Path, session: Session) -> None:
        self._shell, self._folder, self._session = shell, folder, session
        self._before = [*session.before]
        self._running: dict[str, str] = {}  # kind: process
        self._number = 0

    def type(self, command: str) -> None:
        for entry in [each for each in self._before if re.match(each[0], command)][:1]:
            self._before.remove(entry)
            for each in entry[1]:
                self.must(each)
        for word, instead in self._session.means.items():
            command = command.replace(word, instead)
        if found := COMPONENTS.match(command):
            uncomment(self._folder / "deploy" / "kustomization.yaml", found[1])
        elif kind := next((found[1] for each in ONGOING if (found := re.match(each, command))), None):
            self.go_on(kind, command)
        else:
            self.must(command)

    def go_on(self, kind: str, command: str) -> None:
        if command.endswith("&"):
            self.begin(command.rstrip("& "))
            return
        for other in [*self._running] if kind == "up" else [kind]:
            if process := self._running.pop(other, None):
                self._shell.run(f"kill {process}; wait {process}")
        self._running[kind] = self.begin(command)

    def begin(self, command: str) -> str:
        """Start what goes on, with its output in a file, and return its process id."""
        self._number += 1
        file = self._folder / f"{self._number}.log"
        serves = re.search(r"stowplan (run|place|score-agent)\b", command) is not None
        printed, _ = self._shell.run(f"{command}{NO_PORT if serves else ''} > {file} 2>&1 & echo $!")
        wanted = next(shown for each, shown in ONGOING.items() if re.match(each, command))
        until = time.monotonic() + WITHIN
        while not re.search(wanted, (text := file.read_text(encoding="utf-8") if file.exists() else "")):
            assert "Exit" not in self._shell.run("jobs")[0], f"{command} ended:\n{text}"
            assert time.monotonic() < until, f"{command} never printed {wanted}, but:\n{text}"
            time.sleep(0.1)
        return printed.strip()

    def must(self, command: str) -> None:
        printed, code = self._shell.run(command)
        no = re.match(self._session.no, command) is not None
        assert code == 0 or (no and code == 1), f"{command}: {code}\n{printed}"
        for pattern, shown in self._session.shows.items():
            assert not re.match(pattern, command) or shown in printed, f"{command}:\n{printed}"


def uncomment(file: Path, components: str) -> None:
    """Do what a comment of the page says of deploy/kustomization.yaml."""
    text = file.read_text(encoding="utf-8")
    assert "# components:" in text
    file.write_text(f"{text}\ncomponents: [{components}]\n", encoding="utf-8")
