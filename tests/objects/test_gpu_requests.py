"""What a pod asks of GPUs, in the words of three projects."""

from __future__ import annotations

import msgspec
import pytest

from stowplan.objects.gpu_requests import GpuRequest, index_text, indexes
from stowplan.objects.pod_documents import PodDecoder
from stowplan.testing.builders import a_pod

ALIBABA = "alibabacloud.com/gpu-"


@pytest.mark.parametrize(
    ("annotations", "resource", "asked"),
    [
        pytest.param({}, 0, None, id="nothing"),
        pytest.param({}, 2, GpuRequest(2), id="whole GPUs as a resource"),
        pytest.param({ALIBABA + "milli": "810"}, 0, GpuRequest(1, 810), id="thousandths of one GPU"),
        pytest.param({ALIBABA + "milli": "1000", ALIBABA + "count": "8"}, 0, GpuRequest(8), id="whole GPUs"),
        pytest.param({ALIBABA + "count": "2"}, 0, GpuRequest(2), id="a number of GPUs alone means whole ones"),
        pytest.param({ALIBABA + "count": "0", ALIBABA + "milli": "0"}, 0, None, id="no GPU"),
        pytest.param(
            {ALIBABA + "milli": "500", ALIBABA + "card-model": "T4| P100|"},
            0,
            GpuRequest(1, 500, models=frozenset(("T4", "P100"))),
            id="models, divided by |",
        ),
        pytest.param({"gpu-fraction": "0.07"}, 0, GpuRequest(1, 70), id="a part of a GPU, exactly"),
        pytest.param({"gpu-fraction": "0.3333"}, 0, GpuRequest(1, 334), id="a part is rounded up"),
        pytest.param(
            {"gpu-fraction": ".5", "gpu-fraction-num-devices": "2"}, 0, GpuRequest(2, 500), id="a part of two GPUs"
        ),
        pytest.param({"gpu-memory": "2500"}, 0, GpuRequest(1, memory=2500), id="MiB of a GPU's memory"),
    ],
)
def test_what_is_asked(annotations: dict[str, str], resource: int, asked: GpuRequest | None) -> None:
    pod = a_pod(annotations=annotations, requests={"nvidia.com/gpu": resource} if resource else None)
    assert pod.shape.gpus == asked
    assert PodDecoder().decode(msgspec.json.encode(pod, enc_hook=str)).shape is pod.shape


@pytest.mark.parametrize(
    ("annotations", "resource", "problem"),
    [
        pytest.param(
            {ALIBABA + "milli": "1001"}, 0, f"{ALIBABA}milli is '1001', and not a whole", id="more than a GPU"
        ),
        pytest.param({ALIBABA + "count": "two"}, 0, f"{ALIBABA}count is 'two', and not a whole number", id="a word"),
        pytest.param({"gpu-fraction": "1.5"}, 0, "annotation gpu-fraction is '1.5', and not", id="more than one"),
        pytest.param({"gpu-fraction": "0"}, 0, "annotation gpu-fraction is '0', and not", id="nothing of a GPU"),
        pytest.param({"gpu-fraction": "1e-9"}, 0, "annotation gpu-fraction is '1e-9'", id="an exponent"),
        pytest.param({"gpu-memory": "2Gi"}, 0, "gpu-memory is '2Gi', and not a whole number", id="memory with a unit"),
        pytest.param(
            {"gpu-fraction": "0.5", "gpu-memory": "9"}, 0, "gpu-fraction and gpu-memory cannot", id="two ways at once"
        ),
        pytest.param({"gpu-fraction": "0.5"}, 1, "gpu-fraction and nvidia.com/gpu cannot", id="a part and whole ones"),
    ],
)
def test_what_cannot_be_right(annotations: dict[str, str], resource: int, problem: str) -> None:
    asked = a_pod(annotations=annotations, requests={"nvidia.com/gpu": resource} if resource else None).shape.gpus
    assert asked is not None
    assert problem in asked.problem


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        pytest.param("0", (0,), id="one"),
        pytest.param("3-0-12", (3, 0, 12), id="several, in any order"),
        pytest.param("", None, id="nothing"),
        pytest.param("1-1", None, id="one twice"),
        pytest.param("1,2", None, id="other signs"),
        pytest.param("64", None, id="a number that no node has"),
    ],
)
def test_the_numbers_of_gpus(text: str, devices: tuple[int, ...] | None) -> None:
    assert indexes(text) == devices
    assert devices is None or index_text(devices) == text
