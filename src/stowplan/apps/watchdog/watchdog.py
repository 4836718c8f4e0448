"""A watchdog: a thread that looks whether a plugin answers. One that hangs stops everything else in its thread.

    after 0.1 s   the call is in the log, once it has ended
    after 2 s     the log says which plugin, at which point, about which pod, at which line of its file
    after 5 s     the call is interrupted: a signal handler raises `CallInterrupted` in the plugin's code. The attempt
                  fails like after any other error, and the engine is told that the plugin hung
    after 20 s    the call resists: it catches everything, or is in code that is not Python's. The program says its last
                  words (`last_words`) and ends; a supervisor starts it again

Our own plugins get more time before they are interrupted: preemption in a large cluster may take seconds. After
SIGTERM or SIGINT (Ctrl-C) every call gets a moment only: a program can always be ended.

The thread looks twenty times a second at the stack of the main thread (`stack`). It counts the time in which it looked:
a process that was stopped has not been waiting for a plugin. Code that keeps the interpreter's lock (a regular
expression that backtracks, say) stops this thread, too. Then two timers of the kernel go off that the thread else winds
up again. They count the CPU time of the process: after 5 s the same signal handler runs, if that code asks for signals;
after 20 s the process ends with the stack of all threads on standard error.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any, Self

from stowplan.apps.logging import Log
from stowplan.apps.thread_frames import no_collection
from stowplan.apps.watchdog import stack
from stowplan.apps.watchdog.stack import PluginQuestion
from stowplan.apps.watchdog.systemd import Notifier
from stowplan.framework.plugin_faults import CallInterrupted

INTERRUPT, END = signal.SIGVTALRM, signal.SIGPROF
TICK, SHORT_TICK = 0.05, 0.01  # seconds between two looks; the shorter one while a call lasts
RAISE_AGAIN = 1.0  # seconds until a call that caught the exception gets another one
SAY_AGAIN = 10.0  # seconds between two lines about slow calls of one plugin at one point
LAST_WORDS = 5.0  # seconds
REFUSED_EXIT = 1


@dataclass(frozen=True)
class WatchdogLimits:
    """Seconds of one call."""

    slow: float = 0.1
    warn: float = 2.0
    interrupt: float = 5.0
    end: float = 20.0

    def hurried(self) -> WatchdogLimits:
        """The limits once the program is to end."""
        return replace(self, interrupt=min(self.interrupt, 0.2), end=min(self.end, 3.0))


LIMITS = WatchdogLimits()
OF_OUR_OWN = WatchdogLimits(interrupt=60.0, end=120.0)


class WatchedCall:
    """What the thread knows about a call that has not ended."""

    __slots__ = ("question", "raised_at", "seconds", "warned")

    def __init__(self) -> None:
        self.seconds = 0.0
        self.question: PluginQuestion | None = None  # once the call is slow
        self.warned = False
        self.raised_at = float("-inf")  # when an exception was last raised in it, in seconds of the call


class Watchdog:
    """Watches the main thread, from which it is entered and left, inside an event loop."""

    def __init__(
        self,
        log: Log,
        *,
        hung: Callable[[PluginQuestion, str], None] = lambda *_: None,
        last_words: Callable[[PluginQuestion | None, str], None] = lambda *_: None,
        limits: WatchdogLimits | None = None,
        of_our_own: WatchdogLimits = OF_OUR_OWN,
        end: Callable[[int], Any] = os._exit,
    ) -> None:
        """`hung` is called in the event loop after a call was interrupted, `last_words` in a thread before the process
        ends; both with the call and its problem. A call that is only too long for a program that stops is not held
        against anybody: then there is no call in the last words. `of_our_own`: the limits of our own plugins.
        """
        self._log, self._hung, self._last_words, self._end = log, hung, last_words, end
        self._limits, self._of_our_own, self._stopping = limits or LIMITS, of_our_own, False
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
        self._ended = threading.Event()
        self._calls: dict[FrameType, WatchedCall] = {}  # that have not ended, the innermost first
        self._culprit: FrameType | None = None  # the call that the signal handler is to leave
        self._looked_at = time.monotonic()
        self._said: dict[tuple[str, str], float] = {}
        self._covered: dict[int, Any] = {}  # the handlers that ours stand before, by signal
        self._notifier = Notifier()
        self._notified_at = float("-inf")
        self._turned = True

    # -- from start to end

    def __enter__(self) -> Self:
        self._main, self._loop = threading.get_ident(), asyncio.get_running_loop()
        self._before = signal.signal(INTERRUPT, self._on_signal)
        with suppress(OSError, ValueError, AttributeError):  # standard error may be no file
            faulthandler.register(END, chain=True)
            if not faulthandler.is_enabled():
                faulthandler.enable()  # systemd ends a service that does not answer by SIGABRT
        self._wind_up()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(2.0)
        for timer in (signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            signal.setitimer(timer, 0.0)
        faulthandler.unregister(END)
        signal.signal(INTERRUPT, self._before)
        for number, handler in self._covered.items():
            if signal.getsignal(number) == self._on_stop:  # the event loop may have taken its handler back
                signal.signal(number, handler)

    def cover(self, numbers: Iterable[int]) -> None:
        """From now on these signals end a call that hangs, and then do what they did before."""
        for number in numbers:
            before = signal.getsignal(number)
            if callable(before) and before != self._on_stop:  # without a handler the signal ends the process anyway
                self._covered[number] = before
                signal.signal(number, self._on_stop)

    def _on_stop(self, number: int, top: FrameType | None) -> None:
        self._limits, self._of_our_own, self._stopping = self._limits.hurried(), self._of_our_own.hurried(), True
        self._covered[number](number, top)

    # -- in the thread

    def _run(self) -> None:
        while not self._ended.wait(SHORT_TICK if any(each.seconds for each in self._calls.values()) else TICK):
            now = time.monotonic()
            passed, self._looked_at = min(now - self._looked_at, 2 * TICK), now
            try:
                self._wind_up()
                with no_collection():
                    self._look(passed)
                self._notify(now)
            except Exception as error:  # whatever it is, the next look may succeed
                self._log.error("The watchdog failed", error=repr(error))
                self._calls.clear()
                self._ended.wait(1.0)

    def _wind_up(self) -> None:
        """The timers go off if this thread cannot run for so long."""
        signal.setitimer(signal.ITIMER_VIRTUAL, self._limits.interrupt, 1.0)
        signal.setitimer(signal.ITIMER_PROF, max(self._limits.end, 2.0))

    def _look(self, passed: float) -> None:
        top = sys._current_frames().get(self._main)
        calls: dict[FrameType, WatchedCall] = {}
        for frame in stack.questions(top):
            call = calls[frame] = self._calls.get(frame) or WatchedCall()
            if frame in self._calls:
                call.seconds += passed
                if call.question is None and call.seconds >= self._limits.slow:
                    call.question = stack.described(frame, top)
        for frame, call in self._calls.items():
            if frame not in calls and call.question is not None and not call.warned:
                self._say_slow(call.question, call.seconds)
        self._calls = calls
        culprit = next((frame for frame, call in calls.items() if call.seconds >= self._soonest(frame)), None)
        self._culprit = None
        if culprit is not None and stack.is_debugged(top):
            self._calls = {}  # time does not count then
        elif culprit is not None:
            self._act(culprit, calls[culprit], top)

    def _limits_of(self, frame: FrameType) -> WatchdogLimits:
        return self._of_our_own if stack.is_our_own(frame) else self._limits

    def _soonest(self, frame: FrameType) -> float:
        limits = self._limits_of(frame)
        return min(limits.warn, limits.interrupt)

    def _act(self, frame: FrameType, call: WatchedCall, top: FrameType | None) -> None:
        if not call.warned:
            call.warned, question = True, stack.described(frame, top)
            self._log.warning("A plugin does not answer", **_fields(question), seconds=round(call.seconds, 1))
        limits = self._limits_of(frame)
        if call.seconds >= limits.end:
            self._end_program(stack.described(frame, top), call.seconds)
        elif call.seconds >= limits.interrupt and call.seconds >= call.raised_at + RAISE_AGAIN:
            self._culprit = frame
            signal.pthread_kill(self._main, INTERRUPT)

    def _say_slow(self, question: PluginQuestion, seconds: float) -> None:
        key, now = (question.plugin, question.point), time.monotonic()
        if now - self._said.get(key, float("-inf")) >= SAY_AGAIN:
            self._said[key] = now
            self._log.warning("A plugin was slow", **_fields(question), seconds=round(seconds, 2))

    def _end_program(self, question: PluginQuestion, seconds: float) -> None:
        problem = question.problem(round(seconds))
        self._log.error("A plugin cannot be interrupted: the program ends", **_fields(question), problem=problem)
        blamed = None if self._stopping else question
        speaking = threading.Thread(target=self._speak, args=(blamed, problem), name="last words", daemon=True)
        speaking.start()
        speaking.join(LAST_WORDS)
        self._end(REFUSED_EXIT)
        self._ended.set()

    def _speak(self, question: PluginQuestion | None, problem: str) -> None:
        try:
            self._last_words(question, problem)
        except Exception as error:
            self._log.error("The last words could not be said", problem=problem, error=repr(error))

    def _notify(self, now: float) -> None:
        """Tell systemd that the event loop turns."""
        if not self._notifier.every or not self._turned or now - self._notified_at < self._notifier.every:
            return
        self._notifier.alive()
        self._notified_at, self._turned = now, False
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._turn)

    def _turn(self) -> None:
        self._turned = True

    # -- in the main thread

    def _on_signal(self, _: int, top: FrameType | None) -> None:
        """Leave the call that hangs. Look again first: it may have ended before the signal came."""
        calls = stack.questions(top)
        culprit = self._culprit
        if culprit is None and calls and time.monotonic() - self._looked_at >= self._limits_of(calls[0]).interrupt:
            culprit = calls[0]  # the thread could not look
        if culprit is None or top is None or culprit not in calls or not stack.may_be_left(top):
            return
        self._culprit = None
        question, seconds = stack.described(culprit, top), self._limits_of(culprit).interrupt
        watched = self._calls.get(culprit)
        if watched is not None:
            watched.raised_at = watched.seconds
        self._loop.call_soon_threadsafe(self._hung, question, question.problem(seconds))
        raise CallInterrupted(culprit.f_locals["enabled"], seconds)


def _fields(question: PluginQuestion) -> dict[str, object]:
    named = (("plugin", question.plugin), ("point", question.point), ("about", question.about), ("at", question.place))
    return {name: value for name, value in named if value}
