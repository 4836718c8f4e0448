"""Readers of OpenB's lists: what they read, and that a row that makes no sense is named with its line."""

from __future__ import annotations

import pytest

from stowplan.objects.errors import ConfigError
from stowplan.simulation import openb
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.openb import OpenBNode, OpenBPod

NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"


def test_lists_are_read() -> None:
    assert openb.read_nodes(f"{NODES}a,64000,262144,2,P100\r\nb,1,2,0,\n".encode(), "n.csv") == [
        OpenBNode("a", 64000, 262144, 2, "P100"),
        OpenBNode("b", 1, 2, 0, ""),
    ]
    assert openb.read_pods(f"{PODS}p,3152,100,1,810,T4|A10\n\nq,1,2,0,0,\n".encode(), "p.csv") == [
        OpenBPod("p", 3152, 100, 1, 810, "T4|A10"),
        OpenBPod("q", 1, 2, 0, 0),
    ]


def test_columns_may_be_fewer_and_in_another_order() -> None:
    data = b"gpu_milli,num_gpu,memory_mib,cpu_milli,name\n460,1,12288,6000,p\n"
    assert openb.read_pods(data, "p.csv") == [OpenBPod("p", 6000, 12288, 1, 460)]


def test_rows_become_objects() -> None:
    pod = OpenBPod("p", 3152, 100, 2, 1000, "T4|A10").as_pod()
    assert pod.request == {"cpu": 3152, "memory": 100 << 20}
    assert pod.shape.gpus is not None
    assert (pod.shape.gpus.count, pod.shape.gpus.models) == (2, frozenset(("T4", "A10")))
    assert OpenBPod("q", 1, 1, 0, 0, "T4").as_pod().shape.gpus is None


def test_a_node_becomes_an_object_of_the_api() -> None:
    node = OpenBNode("a", 64000, 262144, 2, "P100").as_document()
    assert node["status"]["allocatable"] == {
        "cpu": "64000m", "memory": "262144Mi", "pods": "1001", "alibabacloud.com/gpu-count": "2",
    }  # fmt: skip
    assert node["metadata"]["labels"]["alibabacloud.com/gpu-card-model"] == "P100"


@pytest.mark.parametrize(
    ("text", "found"),
    [(NODES, True), (PODS, True), ("arrival,cpu\n0,1\n", False), ("", False), ("\ufeffname,cpu_milli\n", True)],
)
def test_lists_of_openb_are_known_by_their_columns(text: str, found: bool) -> None:
    assert openb.is_list(text.encode()) is found


def test_problems_of_rows_can_be_gathered() -> None:
    problems = InputProblems(skip=True)
    text = f"{PODS}p,1,1\nq,x,1,0,0,\nfine,1,1,0,0,\n"
    assert [pod.name for pod in openb.read_pods(text.encode(), "p.csv", problems)] == ["fine"]
    assert [each.split(": ")[1] for each in problems.named] == ["line 2", "line 3"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "p.csv: has no rows", id="an empty file"),
        pytest.param(PODS, "p.csv: has no rows", id="no rows"),
        pytest.param("name,cpu\n", "p.csv: line 1: the column cpu_milli is missing", id="a missing column"),
        pytest.param(
            PODS.replace("gpu_spec", "colour"), "line 1: the column 'colour' is unknown", id="an unknown column"
        ),
        pytest.param(PODS.replace("gpu_spec", "name"), "line 1: the column name is there twice", id="a column twice"),
        pytest.param(f"{PODS}p,1,1,0,0,\np,1,1,0,0,\n", "line 3: the name 'p' is that of line 2", id="a name twice"),
        pytest.param(f"{PODS},1,1,0,0,\n", "line 2: the row has no name", id="no name"),
        pytest.param(f"{PODS}p,1,1,0\n", "line 2: has 4 fields, and there are 6 columns", id="too few fields"),
        pytest.param(f"{PODS}p,-1,1,0,0,\n", "line 2: cpu_milli is '-1'", id="a negative number"),
        pytest.param(f"{PODS}p,1.5,1,0,0,\n", "line 2: cpu_milli is '1.5'", id="a fraction"),
        pytest.param(f"{PODS}p,1,,0,0,\n", "line 2: memory_mib is ''", id="an empty number"),
        pytest.param(f"{PODS}p,1,1,1,1001,\n", "line 2: gpu_milli is '1001'", id="more than a GPU"),
        pytest.param(f"{PODS}p,1,1,1,0,\n", "line 2: num_gpu is 1, but gpu_milli is 0", id="nothing of a GPU"),
        pytest.param(f"{PODS}p,1,1,2,500,\n", "line 2: num_gpu is 2, but gpu_milli is 500", id="shares of two GPUs"),
        pytest.param(f"{PODS}p,1,1,0,500,\n", "line 2: gpu_milli is 500, but num_gpu is 0", id="a share of no GPU"),
        pytest.param(f'{PODS}"p,1,1,0,0,\n', "line 2: not CSV", id="an open quote"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        openb.read_pods(text.encode(), "p.csv")
    assert problem in str(error.value)


def test_bytes_that_are_no_text_and_a_node_without_a_model_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"p\.csv: line 2: not UTF-8"):
        openb.read_pods(PODS.encode() + b"\xff\xfe\n", "p.csv")
    with pytest.raises(ConfigError, match=r"n\.csv: line 2: a node with 2 GPUs has no model"):
        openb.read_nodes(f"{NODES}a,1,1,2,\n".encode(), "n.csv")
