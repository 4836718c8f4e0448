"""A recording gives the same actions again, each file by itself; what differs is named by its line."""

from __future__ import annotations

from functools import partial

import msgspec
import numpy as np
import pytest

from stowplan.engine.scheduler import Scheduler
from stowplan.framework.profile import Profile
from stowplan.objects.errors import ConfigError
from stowplan.simulation.recording import RecordedScheduler, RecordingHeader, header_of, replay
from stowplan.testing import World, world
from stowplan.testing.builders import a_node, a_pod, a_profile

HEADER = RecordingHeader(stowplan="1", python="3", seed=7, schedulers=("default-scheduler",))
PROFILE = a_profile()


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The lines of a scheduler that draws among equal nodes, fails to bind, waits, preempts and is hung upon."""
    lines: list[bytes] = []
    monkeypatch.setattr(world, "Scheduler", partial(RecordedScheduler, lines.append))
    found = World(nodes=[a_node(name, cpu=4) for name in "abcdef"], seed=7)
    found.submit(*(a_pod(f"web-{number}", cpu=1, labels={"app": "web"}) for number in range(12)))
    found.fail_next_binding(times=2)
    found.run()
    found.submit(a_pod("large", cpu=5), a_pod("urgent", cpu=4, priority=100))
    found.advance(40)
    found.delete(found.pod("web-3"))
    found.submit(a_node("g", cpu=8))
    found.scheduler.plugin_hung(found.pod("large").uid, "it slept", found.now)
    found.scheduler.step_failed("memory ran out", found.now)
    found.advance(400)
    assert len(found.bindings) >= 11
    return lines


def a_scheduler(seed: int = 7, profile: Profile = PROFILE) -> Scheduler:
    return Scheduler({"default-scheduler": profile}, np.random.default_rng(seed))


def test_the_same_lines_give_the_same_actions(recorded: list[bytes]) -> None:
    found = replay(recorded, a_scheduler())
    assert found.difference is None and found.end == ""
    assert found.bindings >= 12 and found.lines == len(recorded) + 1


@pytest.mark.parametrize("seed", [8, 9])
def test_another_draw_is_named_with_its_line_and_both_bindings(recorded: list[bytes], seed: int) -> None:
    found = replay(recorded, a_scheduler(seed)).difference
    assert found is not None
    line = msgspec.json.decode(recorded[found.line - 2])
    assert [list(each) for each in found.recorded] == line["bind"] != [list(each) for each in found.replayed]


def test_another_configuration_is_a_difference(recorded: list[bytes]) -> None:
    most = "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]}]"
    assert replay(recorded, a_scheduler(profile=a_profile(most))).difference is not None


def test_a_line_that_was_lost_is_a_difference(recorded: list[bytes]) -> None:
    result = next(number for number, line in enumerate(recorded) if b'"result"' in line)
    assert replay(recorded[:result] + recorded[result + 1 :], a_scheduler()).difference is not None


def test_actions_that_were_not_recorded_are_a_difference(recorded: list[bytes]) -> None:
    did = next(number for number, line in enumerate(recorded) if b'"did"' in line and b'"bind":[[' in line)
    found = replay(recorded[:did] + recorded[did + 1 :], a_scheduler()).difference
    assert found is not None and found.recorded == () and len(found.replayed) == 1


@pytest.mark.parametrize("cut", [1, 9])
def test_a_last_line_without_its_end_is_ignored(recorded: list[bytes], cut: int) -> None:
    found = replay([*recorded[:-1], recorded[-1][:-cut]], a_scheduler())
    assert found.difference is None and found.lines == len(recorded)


def test_it_says_why_the_recording_ends(recorded: list[bytes]) -> None:
    end = b'{"now":1.0,"end":"it was enough"}\n'
    assert replay([*recorded[:30], end, *recorded[:3]], a_scheduler()).end == "it was enough"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        pytest.param(b"nonsense\n", "line 2: found no line of a recording", id="no JSON"),
        pytest.param(b'{"now":1.0,"song":1}\n', "line 2: found now, song, expected a change", id="something else"),
        pytest.param(b'{"now":1.0,"put":{},"kind":"Song"}\n', "found the kind Song", id="a kind that nobody knows"),
    ],
)
def test_a_line_that_makes_no_sense_is_named(line: bytes, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        replay([line], a_scheduler())


def test_the_first_line_is_that_of_a_recording() -> None:
    assert header_of(msgspec.json.encode(HEADER)) == HEADER
    for wrong in (b"", b"{}", b"apiVersion: v1", msgspec.json.encode(msgspec.structs.replace(HEADER, recording=2))):
        with pytest.raises(ConfigError, match="line 1"):
            header_of(wrong)
