"""Pod lists of OpenB as streams: when pods come and how long they run; what makes no sense is named with its line."""

from __future__ import annotations

import pytest

from stowplan.objects.gpu_requests import COUNT, MILLI, MODELS
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.streams.openb_list import from_openb

HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"


def times(*rows: str) -> list[tuple[float, float | None]]:
    problems = InputProblems()
    text = HEAD + "".join(f"p{at},1,1,0,0,,,,{row}\n" for at, row in enumerate(rows))
    found = [(event.at, event.duration) for event in from_openb(text.encode(), problems, file="p.csv")]
    problems.check()
    return found


def test_a_pod_runs_from_when_it_was_scheduled_until_it_was_deleted() -> None:
    assert times("100,160,130") == [(100, 30)]


def test_a_pod_that_was_never_scheduled_runs_as_long_as_it_was_there() -> None:
    assert times("100,160,") == [(100, 60)]


def test_pods_come_in_the_order_of_time_and_stay_if_they_were_not_deleted() -> None:
    assert times("100,,100", "50,60,50") == [(50, 10), (100, None)]


def test_in_a_list_without_times_all_pods_come_at_the_start() -> None:
    text = b"name,cpu_milli,memory_mib,num_gpu,gpu_milli\nb,1,1,0,0\na,1,1,0,0\n"
    found = from_openb(text, InputProblems())
    assert [(event.at, event.duration, event.document["metadata"]["name"]) for event in found] == [
        (0, None, "b"), (0, None, "a"),
    ]  # fmt: skip


def test_what_a_pod_asks_for_is_in_its_requests_and_annotations() -> None:
    text = HEAD + "p,3152,100,1,810,T4|A10,LS,Running,0,5,0\n"
    (event,) = from_openb(text.encode(), InputProblems(), file="p.csv", scheduler_name="gpu")
    assert (event.file, event.place) == ("p.csv", "line 2")
    assert event.document["metadata"]["annotations"] == {MILLI: "810", COUNT: "1", MODELS: "T4|A10"}
    assert event.document["spec"]["schedulerName"] == "gpu"
    (container,) = event.document["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "3152m", "memory": "100Mi"}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        pytest.param("p,1,1,0,0,,,,x,1,1", "creation_time is 'x'", id="no number"),
        pytest.param("p,1,1,0,0,,,,-1,1,1", "creation_time is '-1'", id="a negative time"),
        pytest.param("p,1,1,0,0,,,,nan,1,1", "creation_time is 'nan'", id="not a number"),
        pytest.param("p,1,1,0,0,,,,5,9,4", "scheduled_time 4 is before creation_time 5", id="scheduled too early"),
        pytest.param("p,1,1,0,0,,,,5,6,7", "deletion_time 6 is before 7", id="a negative duration"),
        pytest.param("p,1,1,0,0,,,,,6,", "creation_time is empty", id="no arrival"),
        pytest.param("p,1,1,0,0,,,,0,6", "has 10 fields, and there are 11 columns", id="too few fields"),
        pytest.param("p,1,1,1,0,,,,0,6,0", "num_gpu is 1, but gpu_milli is 0", id="nothing of a GPU"),
    ],
)
def test_a_row_that_makes_no_sense_is_counted_and_left_out(row: str, problem: str) -> None:
    problems = InputProblems(skip=True)
    found = from_openb(f"{HEAD}{row}\nfine,1,1,0,0,,,,1,2,1\n".encode(), problems, file="p.csv")
    assert [event.document["metadata"]["name"] for event in found] == ["fine"]
    assert problems.count == 1 and problems.named[0].startswith(f"p.csv: line 2: {problem}")
