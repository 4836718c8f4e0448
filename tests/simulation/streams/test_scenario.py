"""Scenarios: what is drawn, what happens when, and how what cannot be used is named by its path."""

from __future__ import annotations

import pytest

from stowplan.objects.errors import ConfigError
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.stream_events import Arrival, StreamEvent
from stowplan.simulation.streams import scenario
from stowplan.simulation.templates import Templates

HEAD = "apiVersion: simulation.stowplan.io/v1alpha1\nkind: Scenario\n"


def read(text: str, seed: int = 0) -> tuple[list[StreamEvent], InputProblems]:
    problems = InputProblems()
    return scenario.from_yaml((HEAD + text).encode(), Templates(), problems, seed, file="s.yaml"), problems


def phase(process: str, more: str = "requests: {cpu: 1}") -> str:
    return f"phases: [{{from: 1h, for: 1h, arrivals: [{{process: {process}, {more}}}]}}]\n"


def arrivals(text: str, seed: int = 0) -> list[Arrival]:
    found, problems = read(text, seed)
    assert problems.named == []
    return [each for each in found if isinstance(each, Arrival)]


def test_a_fixed_process_is_regular_within_its_phase() -> None:
    assert [each.at for each in arrivals(phase("{fixed: 20m}"))] == [3600, 4800, 6000]


def test_a_burst_comes_at_once() -> None:
    assert [each.at for each in arrivals(phase("{burst: 3}"))] == [3600] * 3


def test_a_poisson_process_has_about_as_many_arrivals_as_it_should() -> None:
    found = arrivals(phase("{poisson: 10s}"))
    assert 300 < len(found) < 420 and all(3600 <= each.at < 7200 for each in found)


def test_the_seed_decides_what_is_drawn() -> None:
    text = phase("{poisson: 1m}", "requests: {cpu: {uniform: [1, 4]}}, duration: {exponential: 5m}")
    assert arrivals(text, 1) == arrivals(text, 1) != arrivals(text, 2)


def test_a_change_of_one_entry_leaves_what_another_one_draws() -> None:
    entry = "{process: {poisson: 1m}, requests: {cpu: 1}, namespace: %s}"
    one = f"phases: [{{for: 1h, arrivals: [{entry % 'a'}, {entry % 'b'}]}}]"
    two = f"phases: [{{for: 1h, arrivals: [{entry % 'a'}, {entry.replace('1m', '2m') % 'b'}]}}]"
    of_a = [
        [each.at for each in arrivals(text) if each.document["metadata"]["namespace"] == "a"] for text in (one, two)
    ]
    assert of_a[0] == of_a[1]


EVENTS = [
    ("{at: 1h, fail: w}", "NodeFailure"),
    ("{at: 1h, recover: w}", "NodeRecovery"),
    ("{at: 1h, cordon: w}", "NodeCordon"),
    ("{at: 1h, uncordon: w}", "NodeCordon"),
    ("{at: 1h, nodes: {name: w, capacity: {cpu: 4}}}", "AppliedObject"),
    ("{at: 1h, delete: {kind: Node, name: w}}", "DeletedObject"),
    ("{at: 1h, configure: packed}", "PolicyChange"),
]


@pytest.mark.parametrize(("event", "kind"), EVENTS)
def test_an_event_happens_at_its_time(event: str, kind: str) -> None:
    found, problems = read(f"events: [{event}]")
    assert [(each.at, type(each).__name__, each.place) for each in found] == [(3600, kind, "events[0]")]
    assert problems.count == 0


WRONG = [
    (phase("{fixed: 0s}"), "phases[0].arrivals[0].process.fixed: found '0s', expected a positive"),
    (phase("{poison: 1s}"), "phases[0].arrivals[0].process: found poison, expected one of"),
    (phase("{burst: 0}"), "phases[0].arrivals[0].process.burst: found 0"),
    (
        phase("{burst: 1}", "duration: -5s, requests: {cpu: 1}"),
        "phases[0].arrivals[0].duration: found '-5s': it is neg",
    ),
    (phase("{burst: 1}", "requests: {cpu: many}"), "phases[0].arrivals[0].requests.cpu: found 'many'"),
    (phase("{burst: 1}", "requests: {cpu: {uniform: [2, 1]}}"), "requests.cpu.uniform: found 2 before 1"),
    (phase("{burst: 1}", "template: web"), "phases[0].arrivals[0]: no template is named 'web'"),
    ("events: [{at: -1h, fail: w}]", "events[0].at: found '-1h': it is negative"),
    ("events: [{at: 1h}]", "events[0]: found nothing, expected one of fail"),
    ("events: [{at: 1h, fail: a, recover: b}]", "events[0]: found fail, recover, expected one of"),
]


@pytest.mark.parametrize(("text", "problem"), WRONG, ids=[problem for _, problem in WRONG])
def test_what_cannot_be_used_is_named_by_its_path(text: str, problem: str) -> None:
    named = read(text)[1].named[0]
    assert named.startswith("s.yaml: ") and problem in named


def test_an_unknown_field_is_an_error() -> None:
    with pytest.raises(ConfigError, match="phase: unknown field"):
        read("phase: []")
