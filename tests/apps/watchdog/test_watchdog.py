"""The watchdog over plugins that hang: what it logs, interrupts and ends, and what it leaves alone."""

from __future__ import annotations

import asyncio
import gc
import io
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from stowplan.apps.logging import Log
from stowplan.apps.watchdog import stack
from stowplan.apps.watchdog.stack import PluginQuestion
from stowplan.apps.watchdog.watchdog import OF_OUR_OWN, Watchdog, WatchdogLimits
from stowplan.framework import plugin_calls
from stowplan.framework.profile import EnabledPlugin
from stowplan.kube import event_loop
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_pod, a_state

SHORT = WatchdogLimits(slow=0.02, warn=0.05, interrupt=0.15, end=30)


class Scene:
    """A watchdog with short limits, and what it told."""

    def __init__(self, limits: WatchdogLimits = SHORT, of_our_own: WatchdogLimits = OF_OUR_OWN) -> None:
        self.said = io.StringIO()
        self.hung: list[tuple[PluginQuestion, str]] = []
        self.words: list[PluginQuestion | None] = []
        self.ended: list[int] = []
        self.watchdog = Watchdog(
            Log(stream=self.said),
            hung=lambda *call: self.hung.append(call),
            last_words=lambda question, _: self.words.append(question),
            limits=limits,
            of_our_own=of_our_own,
            end=self.ended.append,
        )

    def run(self, story: Callable[[], Any]) -> Any:
        """Run a story in an event loop of the kind that programs use."""

        async def main() -> Any:
            with self.watchdog:
                found = story()
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                return found

        with asyncio.Runner(loop_factory=event_loop.new) as runner:
            return runner.run(main())


class Plugin:
    """A filter that does what a test wants."""

    def __init__(self, does: Callable[[], Any]) -> None:
        self._does = does

    def filter(self, pod: Pod, nodes: Any) -> list[Any]:
        self._does()
        return []

    def score(self, pod: Pod, nodes: Any) -> None:
        self._does()


def ask(does: Callable[[], Any], point: str = "filter") -> str:
    """Ask a plugin that does this about a pod. Return the error; empty if there is none."""
    enabled: EnabledPlugin[Any] = EnabledPlugin("Odd", Plugin(does))
    try:
        if point == "filter":
            plugin_calls.call_filter(enabled, a_pod("web"), a_state(nodes=["a"]))  # type: ignore[arg-type]
        else:
            plugin_calls.call(enabled, getattr(enabled.plugin, point), a_pod("web"), None)
    except PluginError as error:
        return str(error)
    return ""


def loop() -> None:
    while True:
        pass


def sleep() -> None:
    time.sleep(60)


def wait_for_a_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def backtrack() -> None:
    """The interpreter's lock is kept all the time: the watchdog's thread cannot run."""
    re.match(r"(a+)+$", "a" * 40 + "b")


def catch_everything(until: Callable[[], bool]) -> None:
    while not until():
        try:
            time.sleep(0.02)
        except BaseException:
            continue


@pytest.mark.parametrize("point", ["filter", "score"])
@pytest.mark.parametrize("does", [loop, sleep, wait_for_a_lock, backtrack])
def test_a_call_that_hangs_is_interrupted_and_named(does: Callable[[], None], point: str) -> None:
    scene = Scene()
    error = scene.run(lambda: ask(does, point))
    told = re.fullmatch(
        rf'plugin "Odd" failed at {point}: did not answer within 0.15 s \(test_watchdog.py:(\d+)\)', error
    )
    assert told is not None and int(told[1]) in {line for *_, line in does.__code__.co_lines()}
    ((question, problem),) = scene.hung
    assert (question.plugin, question.point, question.about) == ("Odd", point, "default/web")
    assert question.uid == a_pod("web").uid
    assert problem == error
    if does is not backtrack:
        assert (
            f'"A plugin does not answer" plugin="Odd" point="{point}" about="default/web" at="' in scene.said.getvalue()
        )


def test_calls_that_answer_are_left_alone() -> None:
    scene = Scene(
        WatchdogLimits(slow=60, warn=2, interrupt=2, end=60)
    )  # less than all of them take, more than one does
    assert scene.run(lambda: [ask(lambda: time.sleep(0.01)) for _ in range(220)]) == [""] * 220
    assert not scene.hung and "does not answer" not in scene.said.getvalue()


def test_no_garbage_is_collected_while_the_watchdog_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[bool] = []

    def questions(top: FrameType | None) -> list[FrameType]:
        looks.append(gc.isenabled())
        return []

    monkeypatch.setattr(stack, "questions", questions)
    Scene().run(lambda: time.sleep(1))
    assert looks and not any(looks) and gc.isenabled()


def test_a_slow_call_is_in_the_log_once() -> None:
    scene = Scene(WatchdogLimits(slow=0.05, warn=60, interrupt=60, end=60))

    def story() -> None:
        for _ in range(3):
            ask(lambda: time.sleep(0.2))
        threading.Event().wait(0.1)

    scene.run(story)
    (line,) = scene.said.getvalue().splitlines()
    assert '"A plugin was slow" plugin="Odd" point="filter" about="default/web"' in line


def test_a_call_that_resists_ends_the_process_after_its_last_words() -> None:
    scene = Scene(WatchdogLimits(slow=0.02, warn=0.05, interrupt=0.1, end=0.4))
    scene.run(lambda: ask(lambda: catch_everything(lambda: bool(scene.ended))))
    assert scene.ended == [1]
    (question,) = scene.words
    assert question is not None and (question.plugin, question.about) == ("Odd", "default/web")
    assert question.place.startswith("test_watchdog.py:")
    assert '"A plugin cannot be interrupted: the program ends"' in scene.said.getvalue()


def test_last_words_that_fail_do_not_keep_the_process() -> None:
    scene = Scene(WatchdogLimits(slow=0.02, warn=0.05, interrupt=0.1, end=0.2))

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    scene.watchdog._last_words = fail
    scene.run(lambda: ask(lambda: catch_everything(lambda: bool(scene.ended))))
    assert scene.ended == [1] and "The last words could not be said" in scene.said.getvalue()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_signal_ends_a_call_at_once(number: signal.Signals) -> None:
    scene = Scene(WatchdogLimits(interrupt=60, end=60))
    stopped: list[int] = []

    def story() -> str:
        asyncio.get_running_loop().add_signal_handler(number, lambda: stopped.append(number))
        scene.watchdog.cover([number])
        threading.Timer(0.1, lambda: signal.pthread_kill(threading.main_thread().ident or 0, number)).start()
        return ask(loop)

    async def main() -> str:
        with scene.watchdog:
            found = story()
            async with asyncio.timeout(10):
                while not stopped:
                    await asyncio.sleep(0.001)
            asyncio.get_running_loop().remove_signal_handler(number)
            return found

    before = signal.signal(number, signal.SIG_DFL)  # another test's loop may have left its own
    try:
        with asyncio.Runner(loop_factory=event_loop.new) as runner:
            error = runner.run(main())
        assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)
    finally:
        signal.signal(number, before)
    assert "did not answer within 0.2 s" in error
    assert stopped == [number]
    signal.signal(number, before)


def test_our_own_plugins_have_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Preemption in a large cluster may take seconds. The log says so, and nothing else happens."""
    monkeypatch.setattr(Plugin, "__module__", "stowplan.plugins.nodes")
    scene = Scene(replace(SHORT, end=0.2), replace(SHORT, interrupt=30))
    assert scene.run(lambda: ask(lambda: time.sleep(0.5))) == ""
    assert "A plugin does not answer" in scene.said.getvalue()
    assert not scene.hung and not scene.ended


def test_who_is_too_slow_for_a_stop_is_not_blamed() -> None:
    """The next leader need not try its pod last."""
    scene = Scene(WatchdogLimits(interrupt=60, end=60))
    scene.watchdog._covered[signal.SIGTERM] = lambda *_: None

    def story() -> str:
        scene.watchdog._on_stop(signal.SIGTERM, None)
        return ask(lambda: catch_everything(lambda: bool(scene.ended)))

    scene.run(story)
    assert scene.words == [None] and scene.ended == [1]


def test_the_call_further_out_is_named_if_it_asks_others_for_ever() -> None:
    """The calls inside are quick: none of them hangs."""
    scene = Scene()
    inner: EnabledPlugin[Any] = EnabledPlugin("Inner", Plugin(lambda: None))
    other = a_pod("other")

    def ask_for_ever() -> None:
        while True:
            plugin_calls.call(inner, inner.plugin.score, other, None)

    error = scene.run(lambda: ask(ask_for_ever))
    assert error.startswith('plugin "Odd" failed at filter: did not answer')
    assert scene.hung[0][0].about == "default/web"


def test_nothing_is_raised_outside_of_plugins() -> None:
    """The signal may come when the call has just ended."""
    scene = Scene()

    def story() -> int:
        for _ in range(300):
            signal.raise_signal(signal.SIGVTALRM)
            ask(lambda: None)
        return 1

    assert scene.run(story) == 1
    assert not scene.hung


def test_nothing_is_raised_while_a_plugin_uses_the_schedulers_state() -> None:
    scene, state, other = Scene(), a_state(nodes=["a"]), a_pod("other")
    left: list[bool] = []

    def story() -> None:
        def use_state() -> None:
            while True:
                with state.trial() as trial:
                    trial.add_pod(other, "a")
                left.append(other.uid in state.pods)

        ask(use_state)

    scene.run(story)
    assert len(scene.hung) == 1
    assert not any(left) and other.uid not in state.pods and state._journal is None


def test_everything_is_as_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGVTALRM), signal.getsignal(signal.SIGINT)
    threads = threading.active_count()
    scene = Scene()
    scene.run(lambda: scene.watchdog.cover([signal.SIGINT]))
    assert (signal.getsignal(signal.SIGVTALRM), signal.getsignal(signal.SIGINT))[0] == before[0]
    assert threading.active_count() == threads
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0) == signal.getitimer(signal.ITIMER_VIRTUAL)


def test_a_plugin_under_a_debugger_has_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(WatchdogLimits(slow=60, warn=0.05, interrupt=0.1, end=0.2))
    looks = iter(range(5))
    monkeypatch.setattr(stack, "is_debugged", lambda _: next(looks, None) is not None)
    error = scene.run(lambda: ask(loop))
    assert "did not answer within 0.1 s" in error, "once nobody looks at it any more"
    assert not scene.ended and next(looks, None) is None


def test_what_a_debugger_is() -> None:
    debugger: dict[str, Any] = {"__name__": "bdb", "sys": sys}
    exec("def interaction(): return sys._getframe()", debugger)
    assert stack.is_debugged(debugger["interaction"]())
    assert not stack.is_debugged(sys._getframe())
