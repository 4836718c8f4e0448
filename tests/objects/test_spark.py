"""The executors that drivers announce, in both spellings, and problems with the annotations."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.objects import kinds, spark
from stowplan.objects.pods import Pod
from stowplan.objects.spark import Executors

SIZE = {"spark-executor-cpu": "2", "spark-executor-mem": "4Gi"}
DYNAMIC = {
    **SIZE,
    "spark-dynamic-allocation-enabled": "true",
    "spark-dynamic-allocation-min-executor-count": "1",
    "spark-dynamic-allocation-max-executor-count": "3",
}


def a_pod(annotations: dict[str, str], role: str = "driver") -> Pod:
    labels = {"spark-role": role, "spark-app-id": "app"} if role else {}
    return kinds.convert(Pod, {"metadata": {"name": "d", "labels": labels, "annotations": annotations}})


def found(annotations: dict[str, Any], role: str = "driver") -> Executors | None:
    return spark.executors(a_pod({key: str(value) for key, value in annotations.items()}, role))


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param(
            {**SIZE, "spark-executor-count": 4}, Executors({"cpu": "2", "memory": "4Gi"}, 4, 4), id="so many of them"
        ),
        pytest.param(DYNAMIC, Executors({"cpu": "2", "memory": "4Gi"}, 1, 3), id="between two numbers"),
        pytest.param(
            {**DYNAMIC, "spark-dynamic-allocation-enabled": "false", "spark-executor-count": 2},
            Executors({"cpu": "2", "memory": "4Gi"}, 2, 2),
            id="not dynamic after all",
        ),
        pytest.param(
            {**SIZE, "spark-executor-count": 1, "spark-executor-nvidia.com/gpu": 1},
            Executors({"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"}, 1, 1),
            id="with GPUs",
        ),
        pytest.param(
            {
                "kubenexus.io/executor-cpu": "500m", "kubenexus.io/executor-memory": "1Gi",
                "kubenexus.io/dynamic-allocation-enabled": "True",
                "kubenexus.io/min-executors": 0, "kubenexus.io/max-executors": 9,
            },
            Executors({"cpu": "500m", "memory": "1Gi"}, 0, 9),
            id="in KubeNexus' spelling",
        ),
        pytest.param(
            {**SIZE, "kubenexus.io/executor-cpu": "9", "kubenexus.io/executor-count": "2"},
            Executors({"cpu": "2", "memory": "4Gi"}, 2, 2),
            id="a mixture, Palantir's first",
        ),
    ],
)  # fmt: skip
def test_the_executors_of_a_driver(annotations: dict[str, Any], expected: Executors) -> None:
    assert found(annotations) == expected


@pytest.mark.parametrize(
    ("annotations", "problem"),
    [
        pytest.param({"spark-executor-mem": "1Gi"}, "annotation spark-executor-cpu is missing", id="no cpu"),
        pytest.param(SIZE, "annotation spark-executor-count is missing", id="no number"),
        pytest.param(
            {**SIZE, "spark-executor-count": "many"},
            "annotation spark-executor-count: expected a number of executors up to 100000, found 'many'",
            id="not a number",
        ),
        pytest.param(
            {**SIZE, "spark-executor-count": "-1"},
            "annotation spark-executor-count: expected a number of executors up to 100000, found '-1'",
            id="less than none",
        ),
        pytest.param(
            {**SIZE, "spark-executor-count": 2, "spark-executor-mem": "4GB"},
            "annotation spark-executor-mem: expected a quantity such as 500m or 1Gi, found '4GB'",
            id="not a quantity",
        ),
        pytest.param(
            {**DYNAMIC, "spark-dynamic-allocation-max-executor-count": "0"},
            "the maximum of 0 executors is less than the minimum of 1",
            id="less than the least",
        ),
        pytest.param(
            {**DYNAMIC, "spark-dynamic-allocation-enabled": "perhaps"},
            "annotation spark-dynamic-allocation-enabled: expected true or false, found 'perhaps'",
            id="neither true nor false",
        ),
        pytest.param(
            {**SIZE, "spark-dynamic-allocation-enabled": "true"},
            "annotation spark-dynamic-allocation-min-executor-count is missing",
            id="dynamic without a minimum",
        ),
    ],
)
def test_problems_of_the_annotations(annotations: dict[str, Any], problem: str) -> None:
    needs = found(annotations)
    assert needs is not None and needs.problem == problem


@pytest.mark.parametrize(
    ("annotations", "role"),
    [
        pytest.param({}, "driver", id="a driver that says nothing"),
        pytest.param({"spark-driver-cpu": "1"}, "driver", id="a driver that speaks of itself alone"),
        pytest.param(DYNAMIC, "executor", id="an executor"),
        pytest.param(DYNAMIC, "", id="a pod of no application"),
    ],
)
def test_pods_without_executors(annotations: dict[str, Any], role: str) -> None:
    assert found(annotations, role) is None


def test_the_hint_names_the_annotations() -> None:
    assert "spark-executor-cpu, spark-executor-mem and spark-executor-count" in spark.hint_for_driver(a_pod({}))
    assert spark.hint_for_driver(a_pod(DYNAMIC)) == ""
    assert spark.hint_for_driver(a_pod({}, "executor")) == ""
