"""The C library is asked to give memory back once the program has grown, and not without need."""

from __future__ import annotations

import pytest

from stowplan.apps.memory import LONGEST_WAIT, MemoryTrimmer, resident

MB = 1 << 20


class Process:
    """Bytes in use, and bytes that the C library keeps."""

    def __init__(self) -> None:
        self.used, self.kept, self.trims = 60 * MB, 0, 0
        self.trimmer = MemoryTrimmer(lambda: self.used + self.kept, self.trim)

    def trim(self) -> None:
        self.kept, self.trims = 0, self.trims + 1

    def look(self, times: int) -> int:
        before = self.trims
        for _ in range(times):
            self.trimmer.look()
        return self.trims - before


def test_a_program_at_rest_is_left_alone_more_and_more() -> None:
    process = Process()
    assert [process.look(LONGEST_WAIT) for _ in range(4)] == [6, 1, 1, 1]


@pytest.mark.parametrize("looks_in_the_peak", [0, 1, 2, 5])
def test_a_peak_is_given_back_soon(looks_in_the_peak: int) -> None:
    process = Process()
    process.look(3 * LONGEST_WAIT)
    process.used += 20 * MB
    process.look(looks_in_the_peak)
    process.used, process.kept = process.used - 20 * MB, 20 * MB
    process.look(looks_in_the_peak + 1)
    assert process.kept == 0


def test_growth_that_is_needed_costs_little() -> None:
    process = Process()
    process.look(3 * LONGEST_WAIT)
    process.used += 500 * MB
    assert process.look(10 * LONGEST_WAIT) < 20


def test_the_size_of_this_process_is_read() -> None:
    assert 10 * MB < resident() < 1 << 40
