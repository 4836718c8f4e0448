"""Tables: what rows become, and that rows that make no sense are named by line and counted."""

from __future__ import annotations

import pytest

from stowplan.objects.errors import ConfigError
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.stream_events import Arrival
from stowplan.simulation.streams import table
from stowplan.simulation.templates import Templates

DEPLOYMENT = {
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "app"}]}}},
}


def some_templates() -> Templates:
    found = Templates(("default-scheduler",))
    found.add(DEPLOYMENT)
    return found


def read(text: str, *, skip: bool = False) -> tuple[list[Arrival], InputProblems]:
    problems = InputProblems(skip=skip)
    return table.from_csv(text.encode(), some_templates(), problems, file="t.csv"), problems


def test_rows_become_arrivals_in_the_order_of_time() -> None:
    found, problems = read("arrival,duration,cpu,count\n1h,10m,2,2\n90,,500m,1\n")
    assert [(each.at, each.duration, each.document["metadata"]["name"]) for each in found] == [
        (90, None, "pod-3"), (3600, 600, "pod-2-0"), (3600, 600, "pod-2-1"),
    ]  # fmt: skip
    assert problems.count == 0


def test_the_count_of_a_workload_is_its_replicas() -> None:
    found, _ = read("arrival,template,count,namespace,owner\n0,web,7,shop,alice\n")
    document = found[0].document
    assert (document["kind"], document["spec"]["replicas"], document["metadata"]["namespace"]) == (
        "Deployment",
        7,
        "shop",
    )
    assert document["spec"]["template"]["metadata"]["annotations"] == {"stowplan.io/owner": "alice"}


WRONG = [
    ("-5,1m,web,1", "arrival is '-5': it is negative"),
    ("1,-1m,web,1", "duration is '-1m': it is negative"),
    ("soon,1m,web,1", "arrival is 'soon', expected seconds"),
    (",1m,web,1", "arrival is empty"),
    ("nan,1m,web,1", "arrival is 'nan'"),
    ("1,1m,wob,1", "no template is named 'wob'; "),
    ("1,1m,,1", "found neither a template nor requests"),
    ("1,1m,web,0", "count is '0', expected a whole number"),
    ("1,1m,web,1.5", "count is '1.5', expected a whole number"),
    ("1,1m,web", "found 3 cells, expected 4"),
]


@pytest.mark.parametrize(("row", "problem"), WRONG, ids=[problem for _, problem in WRONG])
def test_a_row_that_makes_no_sense_is_named_by_its_line(row: str, problem: str) -> None:
    found, problems = read(f"arrival,duration,template,count\n0,1m,web,1\n{row}\n5,1m,web,1\n")
    assert [each.at for each in found] == [0, 5] and problems.count == 1
    with pytest.raises(ConfigError) as refused:
        problems.check()
    assert f"t.csv: line 3: {problem}" in str(refused.value)


def test_all_wrong_rows_are_counted_and_the_first_ones_named() -> None:
    _, problems = read("arrival,cpu\n" + "-1,1\n" * 50)
    with pytest.raises(ConfigError, match=r"50 entries cannot be used; .*:\n  t\.csv: line 2: (?s:.)*and 30 more"):
        problems.check()


def test_skipped_rows_are_named_and_counted_as_well() -> None:
    found, problems = read("arrival,cpu\n-1,1\n2,1\n", skip=True)
    problems.check()
    assert (len(found), problems.count, len(problems.named)) == (1, 1, 1)


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("arrival,durations", "line 1: unknown column 'durations'"),
        ("duration", "line 1: found no column arrival"),
        ("arrival,arrival", "line 1: the column 'arrival' appears twice"),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(header: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read(f"{header}\n")


def test_lines_of_json_are_read_alike() -> None:
    problems = InputProblems()
    text = b'{"arrival": 3, "cpu": "1", "nvidia.com/gpu": 2}\n\nnot json\n{"arrival": 1, "kpu": 1}\n[1]\n'
    found = table.from_jsonl(text, some_templates(), problems, file="t.jsonl")
    resources = found[0].document["spec"]["containers"][0]["resources"]
    assert resources == {"requests": {"cpu": "1", "nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": "2"}}
    assert [each.split(": ")[1] for each in problems.named] == ["line 3", "line 4", "line 5"]


def test_a_template_for_another_scheduler_is_refused() -> None:
    spec = {"schedulerName": "other", "containers": [{"name": "main"}]}
    with pytest.raises(ConfigError, match="Pod p: no profile has the schedulerName 'other'"):
        some_templates().add({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec}, file="t.yaml")
