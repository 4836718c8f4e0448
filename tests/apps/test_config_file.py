"""A configuration file that changes under a running program: whatever is in it, it is taken, or refused once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from stowplan.apps.cli import main
from stowplan.apps.config_file import follow
from stowplan.apps.run.config_file import config_file
from stowplan.apps.run.configuration import LoadedConfiguration
from stowplan.objects.errors import StowplanError

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
FINE = HEAD + "profiles: [{schedulerName: fine}]\n"
LATER = HEAD + "profiles: [{schedulerName: later}]\n"
PLUGIN = """
import threading

WAIT = threading.Event()


class Odd:
    def __init__(self, how: str = "") -> None:
        if how == "hangs":
            WAIT.wait()
        elif how:
            raise {"stop": KeyboardInterrupt, "exit": SystemExit, "memory": MemoryError, "deep": RecursionError}[how]()

    def score(self, pod, nodes):
        return None
"""
WITH_PLUGIN = HEAD + (
    'profiles: [{schedulerName: fine, plugins: {score: {enabled: [{name: "odd.py:Odd"}]}},'
    ' pluginConfig: [{name: "odd.py:Odd", args: {how: "%s"}}]}]\n'
)
BOMB = HEAD + "x:\n- &a0 {k: v}\n" + "".join(f"- &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 40))
LONG_NUMBER = HEAD + "leaderElection: {renewDeadline: '" + "1" * 100_000 + "'}"
NUMERIC = HEAD + (
    "profiles: [{schedulerName: fine, plugins: {multiPoint: {enabled: [{name: FlavourClusterWide}]}},"
    " pluginConfig: [{name: FlavourClusterWide, args: {1: x}}]}]\n"
)


class Following:
    """A file with a plugin, followed; what was adopted and what was refused."""

    def __init__(self, folder: Path, *, within: float = 20.0) -> None:
        (folder / "odd.py").write_text(PLUGIN)
        self.path, self.within = folder / "config.yaml", within
        self.path.write_text(WITH_PLUGIN % "")
        self.adopted: list[str] = []
        self.refused: list[str] = []
        self.fails = False

    async def adopt(self, new: LoadedConfiguration) -> None:
        if self.fails:
            raise KeyError("a plugin")
        self.adopted += list(new.profiles)

    def refuse(self, error: StowplanError) -> None:
        self.refused.append(str(error))

    def put(self, content: str | bytes) -> None:
        """All at once, as a kubelet does."""
        other = self.path.with_suffix(".new")
        other.write_bytes(content.encode() if isinstance(content, str) else content)
        other.replace(self.path)

    def run(self, scene: Callable[[Following], object]) -> None:
        """Follow the file while the scene, a coroutine function, lasts."""

        async def play() -> None:
            file = config_file(self.path, [self.path.parent])
            loaded = file.load()
            task = asyncio.create_task(
                follow(file, loaded, adopt=self.adopt, refuse=self.refuse, every=0.01, within=self.within)
            )
            await scene(self)  # type: ignore[misc]
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(play())

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0.005)

    async def looks(self, times: int = 10) -> None:
        """Let some looks at the file pass."""
        await asyncio.sleep(0.01 * times)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param("a: [", "line 2: not YAML", id="no YAML"),
        pytest.param("", "the configuration is empty", id="empty"),
        pytest.param(b"a: 1\n\xff\xfe\x00", "is not UTF-8 text: line 2 has the byte 0xff", id="no text"),
        pytest.param(BOMB, "found more than 100,000 values", id="merge keys of merge keys"),
        pytest.param("#" * 4_000_000, "is longer than 3,145,728 bytes", id="long"),
        pytest.param(NUMERIC, "[name=FlavourClusterWide].args: unknown argument '1'", id="a number as a key"),
        pytest.param(WITH_PLUGIN % "stop", "KeyboardInterrupt", id="a constructor that raises KeyboardInterrupt"),
        pytest.param(WITH_PLUGIN % "exit", "cannot be made from these arguments", id="one that exits"),
        pytest.param(WITH_PLUGIN % "memory", "cannot be made from these arguments", id="one without memory"),
        pytest.param(WITH_PLUGIN % "deep", "cannot be made from these arguments", id="one that recurses"),
        pytest.param('{"kind": "\\ud800"}', "not YAML", id="half a surrogate pair"),
        pytest.param(
            HEAD + "leaderElection: {renewDeadline: '" + "1" * 100_000 + "'}", "a duration", id="a long number"
        ),
    ],
)
def test_a_file_is_refused_once_and_a_good_one_taken(tmp_path: Path, content: str | bytes, problem: str) -> None:
    async def scene(following: Following) -> None:
        following.put(content)
        await following.until(lambda: following.refused)
        await following.looks()
        following.put(LATER)
        await following.until(lambda: following.adopted)

    following = Following(tmp_path)
    following.run(scene)
    assert len(following.refused) == 1 and problem in following.refused[0]
    assert following.adopted == ["later"]


def test_a_constructor_that_does_not_end_is_not_waited_for(tmp_path: Path) -> None:
    async def scene(following: Following) -> None:
        following.put(WITH_PLUGIN % "hangs")
        await following.until(lambda: following.refused)
        following.put(LATER)
        await following.until(lambda: following.adopted)

    following = Following(tmp_path, within=0.2)
    following.run(scene)
    assert "could not be read and checked within 0.2 s" in following.refused[0]
    assert following.adopted == ["later"]


def test_an_error_while_it_is_adopted_is_a_refusal(tmp_path: Path) -> None:
    async def scene(following: Following) -> None:
        following.fails = True
        following.put(LATER)
        await following.until(lambda: following.refused)
        following.fails = False
        following.put(FINE)
        await following.until(lambda: following.adopted)

    following = Following(tmp_path)
    following.run(scene)
    assert following.refused == ["KeyError: 'a plugin'"] and following.adopted == ["fine"]


def test_a_file_that_is_gone_is_said_once_and_read_when_it_is_back(tmp_path: Path) -> None:
    async def scene(following: Following) -> None:
        text = following.path.read_bytes()
        for _ in range(2):
            following.path.unlink()
            await following.until(lambda: following.refused)
            await following.looks()
            assert len(following.refused) == 1 and "cannot be read: No such file" in following.refused.pop()
            following.put(text)
            await following.looks()
        following.put(LATER)
        await following.until(lambda: following.adopted)

    following = Following(tmp_path)
    following.run(scene)
    assert following.refused == [] and following.adopted == ["later"]


def test_the_loop_goes_on_while_a_file_is_read(tmp_path: Path) -> None:
    """Plugins are made in another thread than the event loop's."""

    async def scene(following: Following) -> None:
        following.put(WITH_PLUGIN % "hangs")
        await following.until(lambda: any(each.name == "off-loop" for each in threading.enumerate()))

    following = Following(tmp_path)
    following.run(scene)  # and it ends although the thread does not


@pytest.mark.parametrize("command", [["config", "check"], ["config", "show"], ["run", "--config"]])
@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00", b"", BOMB.encode(), NUMERIC.encode(), b"#" * 4_000_000],
    ids=["no text", "empty", "merge keys of merge keys", "a number as a key", "long"],
)  # fmt: skip
def test_commands_say_what_is_wrong(tmp_path: Path, command: list[str], content: bytes) -> None:
    file = tmp_path / "config.yaml"
    file.write_bytes(content)
    said = CliRunner().invoke(main, [*command, str(file)])
    assert said.exit_code == 2 and isinstance(said.exception, SystemExit)
    assert said.output.startswith(f"stowplan: {file}: ") and len(said.output.splitlines()) == 1
