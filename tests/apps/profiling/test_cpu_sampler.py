"""CPU time goes to the stacks of the threads that used it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stowplan.apps.profiling.cpu_sampler import CpuProfile, CpuSampler, MainThread, Stack, thread_cpu
from stowplan.apps.profiling.cpu_timer import SIGNAL

MILLISECOND = 1_000_000


class Threads:
    """Threads that stand still in a function, and how much CPU time they are said to have used."""

    def __init__(self) -> None:
        self.all: list[threading.Thread] = [threading.current_thread()]
        self.used: dict[int, int] = {}
        self._end = threading.Event()

    def at_work(self) -> None:
        self._end.wait()

    def deciding(self) -> None:
        self.at_work()

    @contextmanager
    def running(self, *functions: Callable[[], None]) -> Iterator[None]:
        for function in functions:
            thread = threading.Thread(target=function, name=function.__name__)
            thread.start()
            self.all.append(thread)
        try:
            yield
        finally:
            self._end.set()
            for thread in self.all[1:]:
                thread.join()

    def cpu_of(self, native_id: int) -> int:
        (name,) = (each.name for each in self.all if each.native_id == native_id)
        if name not in self.spending:
            raise OSError("no such thread")
        self.used[native_id] = self.used.get(native_id, 0) + self.spending[name] * MILLISECOND
        return self.used[native_id]

    spending: dict[str, int] = {}  # noqa: RUF012 - milliseconds from one look to the next, by name

    def profile(self, looks: int) -> CpuProfile:
        left = [looks]

        def stopped(_: float) -> bool:
            left[0] -= 1
            return left[0] < 0

        return CpuSampler(MainThread(), cpu_of=self.cpu_of, threads=lambda: self.all).sample(60, stopped)


def functions(stack: Stack) -> list[str]:
    return [frame.function.rpartition(".")[2] for frame in stack]


def test_time_goes_to_the_stack_of_whoever_used_it() -> None:
    threads = Threads()
    threads.spending = {"deciding": 7, "at_work": 0}
    with threads.running(threads.deciding, threads.at_work):
        profile = threads.profile(looks=5)
    ((thread, stack), values) = next(iter(profile.stacks.items()))
    assert (thread, values, len(profile.stacks)) == ("deciding", (5, 35 * MILLISECOND), 1), "the other one waits"
    found = functions(stack)
    assert found[found.index("at_work") + 1] == "deciding", "the innermost is first"
    frame = stack[found.index("deciding")]
    assert frame.function == f"{__name__}.Threads.deciding" and frame.file == __file__
    assert frame.line == frame.first_line + 1


def test_a_thread_that_ends_is_left_out() -> None:
    threads = Threads()
    threads.spending = {"deciding": 3}
    with threads.running(threads.deciding, threads.at_work):
        profile = threads.profile(looks=2)
    assert {thread for thread, _ in profile.stacks} == {"deciding"}


def test_the_thread_that_samples_is_not_sampled() -> None:
    threads = Threads()
    threads.spending = {threading.current_thread().name: 5}
    assert threads.profile(looks=3).stacks == {}


def test_it_ends_after_its_time() -> None:
    moments = iter([0.0, 0.5, 1.0, 1.0])
    sampler = CpuSampler(MainThread(), threads=list, clock=lambda: next(moments))
    assert sampler.sample(1.0, lambda _: False).seconds == 1.0


def test_the_kernels_clock_of_a_thread() -> None:
    spent = thread_cpu(threading.get_native_id())
    assert 0 < spent <= thread_cpu(threading.get_native_id())
    ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    assert ended.native_id is not None
    try:
        thread_cpu(ended.native_id)
    except OSError:
        return  # and not a crash; the number may also belong to another thread by now


def burn() -> int:
    """Use CPU time, in many instructions of Python."""
    return sum(number * number for number in range(1000))


def in_short_pieces(until: Callable[[], object]) -> None:
    """Work in pieces of microseconds, and let others run in between: nobody who only looks sees such work."""
    while not until():
        burn()
        time.sleep(0)


def test_the_main_thread_notes_where_it_uses_its_time() -> None:
    main, ended = MainThread(), threading.Event()
    assert not main.prepared
    main.prepare()
    sampler = CpuSampler(main)
    found: list[CpuProfile] = []

    def take() -> None:
        found.append(sampler.sample(60, lambda wait: ended.wait(wait)))

    thread = threading.Thread(target=take)
    thread.start()
    used = time.thread_time()
    in_short_pieces(lambda: time.thread_time() > used + 0.3)
    ended.set()
    thread.join()
    name = threading.main_thread().name
    stacks = {stack: values for (thread_name, stack), values in found[0].stacks.items() if thread_name == name}
    total = sum(nanoseconds for _, nanoseconds in stacks.values())
    working = sum(values[1] for stack, values in stacks.items() if "in_short_pieces" in functions(stack))
    assert total > 0 and working > 0.9 * total
    assert any("burn" in functions(stack) for stack in stacks), "and not only the line that waits"


def test_signals_that_come_late_do_no_harm() -> None:
    main = MainThread()
    main.prepare()
    signal.raise_signal(SIGNAL)
    with main.noted(CpuProfile(0)) as noted:
        assert noted
    signal.raise_signal(SIGNAL)


def test_another_thread_cannot_prepare() -> None:
    main = MainThread()
    thread = threading.Thread(target=main.prepare)
    thread.start()
    thread.join()
    assert not main.prepared
    with main.noted(CpuProfile(0)) as noted:
        assert not noted
