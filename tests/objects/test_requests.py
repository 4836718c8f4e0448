"""The requests of a pod, computed by hand: cpu in thousandths, memory in bytes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from stowplan.objects import kinds, requests
from stowplan.objects.pods import Pod

MI = 2**20


def pod(text: str) -> Pod:
    return kinds.convert(Pod, yaml.safe_load(text))


def container(name: str = "c", more: str = "", **asked: str) -> str:
    inside = ", ".join(f"{key}: {value}" for key, value in asked.items())
    return f"{{name: {name}, resources: {{requests: {{{inside}}}}}{more}}}"


SIDECAR = ", restartPolicy: Always"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param("containers: [{name: c}]", {}, id="nothing asked for"),
        pytest.param(
            f"containers: [{container('a', cpu='1', memory='64Mi')}, {container('b', cpu='500m')}]",
            {"cpu": 1500, "memory": 64 * MI},
            id="containers add up",
        ),
        pytest.param(
            f"containers: [{container('a', cpu='0.0001')}, {container('b', cpu='0.0001')}]",
            {"cpu": 1},
            id="fractions are added before they are rounded",
        ),
        pytest.param(
            f"containers: [{container(cpu='1', memory='10Mi')}]\n"
            f"initContainers: [{container('i', cpu='3')}, {container('j', cpu='2', memory='5Mi')}]",
            {"cpu": 3000, "memory": 10 * MI},
            id="the largest init container counts, resource by resource",
        ),
        pytest.param(
            f"containers: [{container(cpu='1')}]\ninitContainers: [{container('s', SIDECAR, cpu='2')}]",
            {"cpu": 3000},
            id="a sidecar runs beside the containers",
        ),
        pytest.param(
            f"containers: [{container(cpu='1')}]\n"
            f"initContainers: [{container('s', SIDECAR, cpu='2')}, {container('i', cpu='4')}]",
            {"cpu": 6000},
            id="an init container starts beside the sidecars before it",
        ),
        pytest.param(
            f"containers: [{container(cpu='1')}]\n"
            f"initContainers: [{container('i', cpu='4')}, {container('s', SIDECAR, cpu='2')}]",
            {"cpu": 4000},
            id="but not beside those after it",
        ),
        pytest.param(
            f"containers: [{container(cpu='1')}]\noverhead: {{cpu: 250m, memory: 10Mi}}",
            {"cpu": 1250, "memory": 10 * MI},
            id="overhead is added",
        ),
        pytest.param(
            f"containers: [{container(cpu='1', memory='64Mi')}]\nresources: {{requests: {{cpu: 500m}}}}",
            {"cpu": 500, "memory": 64 * MI},
            id="what the pod itself asks for replaces the sum, resource by resource",
        ),
        pytest.param(
            f"containers: [{container(cpu='1')}]\nresources: {{requests: {{cpu: 2}}}}\noverhead: {{cpu: 1}}",
            {"cpu": 3000},
            id="and overhead is added to that",
        ),
        pytest.param(
            "containers: [{name: c, resources: {requests: {example.com/gpu: 2}}}]\n"
            "resources: {requests: {example.com/gpu: 7, cpu: 1}}",
            {"cpu": 1000, "example.com/gpu": 2},
            id="a pod as a whole asks for cpu, memory and huge pages only",
        ),
        pytest.param(
            "containers: [{resources: {requests: {storage: 5, pods: 3, hugepages-2Mi: 4Mi, x.kubernetes.io/y: 1}}}]",
            {"hugepages-2Mi": 4 * MI, "x.kubernetes.io/y": 1},
            id="what nodes keep no account of is left out",
        ),
    ],
)
def test_the_requests_of_an_incoming_pod(spec: str, expected: dict[str, int]) -> None:
    assert requests.incoming(pod(f"spec:\n{_indented(spec)}")) == expected


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


STATUS = """
status:
  conditions: [{{type: PodResizePending, reason: {reason}}}]
  containerStatuses: [{{name: c, resources: {{requests: {{cpu: {seen}}}}}, allocatedResources: {{cpu: {allocated}}}}}]
"""


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(f"containers: [{container(cpu='0.0001', memory='1.5Ki', gpu='2')}]", id="a single container"),
        pytest.param(
            f"containers: [{container('a', cpu='1', memory='1')}, {container('b', cpu='1', memory='1')}]",
            id="several containers",
        ),
        pytest.param(
            f"containers: [{container(cpu='1', memory='1Mi')}]\n"
            f"initContainers: [{container('i', cpu='3', memory='1')}]",
            id="an init container",
        ),
        pytest.param(
            f"containers: [{container(cpu='1', memory='1Mi')}]\noverhead: {{cpu: 250m}}", id="overhead of the pod"
        ),
    ],
)
def test_plain_requests_are_the_same_for_all_purposes(spec: str) -> None:
    plain = pod(f"spec:\n{_indented(spec)}")
    assert requests.of_plain(plain) == requests.balanced(plain) == requests.scored(plain) != {}


@pytest.mark.parametrize(
    ("seen", "allocated", "reason", "incoming", "running"),
    [
        pytest.param("1", "1", "", 2000, 2000, id="growing: what it asks for is taken already"),
        pytest.param("3", "1", "", 2000, 3000, id="shrinking: what it still has is taken"),
        pytest.param("1", "4", "", 2000, 4000, id="what the kubelet has set aside is taken"),
        pytest.param("1", "1", "Deferred", 2000, 2000, id="deferred: it may still come"),
        pytest.param("1", "1", "Infeasible", 2000, 1000, id="infeasible: it will not come"),
    ],
)
def test_resizes_in_progress(seen: str, allocated: str, reason: str, incoming: int, running: int) -> None:
    status = STATUS.format(seen=seen, allocated=allocated, reason=reason or "None")
    made = pod(f"spec:\n  containers: [{container(cpu='2')}]\n{status}")
    assert (requests.incoming(made)["cpu"], requests.running(made)["cpu"]) == (incoming, running)


def test_only_sidecars_among_init_containers_resize() -> None:
    status = {"initContainerStatuses": [{"name": "i", "resources": {"requests": {"cpu": 9}}}]}
    spec = {"containers": [{"name": "c"}], "initContainers": [{"name": "i", "resources": {"requests": {"cpu": 1}}}]}
    assert requests.running(kinds.convert(Pod, {"spec": spec, "status": status})) == {"cpu": 1000}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [{}]}, (100, 200 * MI), id="a container without requests"),
        pytest.param({"containers": [{}, {}]}, (200, 400 * MI), id="two of them"),
        pytest.param(
            {"containers": [{"resources": {"requests": {"cpu": "0"}}}]}, (0, 200 * MI), id="zero was asked for"
        ),
        pytest.param(
            {"containers": [{}], "resources": {"requests": {"cpu": 2}}},
            (2000, 200 * MI),
            id="asked for by the pod itself",
        ),
    ],
)
def test_defaults_for_missing_requests(spec: dict[str, Any], expected: tuple[int, int]) -> None:
    assert requests.running_presumed(kinds.convert(Pod, {"spec": spec})) == expected


@pytest.mark.parametrize(
    ("resource", "counted", "extended"),
    [
        pytest.param("cpu", True, False, id="cpu"),
        pytest.param("ephemeral-storage", True, False, id="scratch space"),
        pytest.param("storage", False, False, id="storage is a claim's"),
        pytest.param("example.com/gpu", True, True, id="an extended resource"),
        pytest.param("gpu", False, False, id="a name without a domain"),
        pytest.param("requests.example.com/gpu", False, False, id="a quota's name"),
        pytest.param("kubernetes.io/thing", True, False, id="kubernetes.io's own"),
        pytest.param("hugepages-1Gi", True, False, id="huge pages"),
        pytest.param("attachable-volumes-csi", True, False, id="attachable volumes"),
        pytest.param("example.com/not a name", False, False, id="a broken name"),
    ],
)
def test_resources_that_nodes_account_for(resource: str, counted: bool, extended: bool) -> None:
    assert (requests.is_counted(resource), requests.is_extended(resource)) == (counted, extended)
