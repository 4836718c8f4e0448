"""Numbers that are none, or far too long, wherever a client can write one: refused or ignored, never our error."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.embedded.http import protobuf
from stowplan.embedded.numbers import natural
from tests.embedded.client import DEPLOYMENTS, PODS, Client
from tests.embedded.virtual_cluster import VirtualCluster

LONG = "9" * 5000  # more digits than Python reads
ODD = ("²", "--5", "1_0", " 1", "", LONG)
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
SPEC: dict[str, Any] = {"containers": [{"name": "c", "image": "x"}]}
TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"a": "b"}}, "spec": SPEC}
SELECTOR = {"matchLabels": {"a": "b"}}


@pytest.mark.parametrize("text", ODD)
def test_a_text_that_is_no_number(text: str) -> None:
    assert natural(text, -7) == -7
    assert natural("0120", -7) == 120


@pytest.mark.parametrize(
    ("annotations", "code"),
    [
        pytest.param({"stowplan.io/exit-code": "²"}, 1, id="another script's digit"),
        pytest.param({"stowplan.io/exit-code": LONG}, 1, id="very many digits"),
        pytest.param({"stowplan.io/exit-code": "99999999999"}, 2**31 - 1, id="more than the field can hold"),
        pytest.param({"stowplan.io/exit-code": "3"}, 3, id="a code"),
    ],
)
def test_the_exit_code_of_a_pod(annotations: dict[str, str], code: int) -> None:
    cluster = VirtualCluster()
    cluster.nodes(1)
    metadata = {"name": "a", "annotations": {"stowplan.io/run-seconds": "0", **annotations}}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": SPEC})
    cluster.settle()
    (container,) = cluster.get("pods", "default/a")["status"]["containerStatuses"]
    assert container["state"]["terminated"]["exitCode"] == code


@pytest.mark.parametrize("text", ODD)
def test_a_revision_that_is_no_number_is_replaced(text: str) -> None:
    cluster = VirtualCluster()
    spec = {"replicas": 0, "selector": SELECTOR, "template": TEMPLATE}
    cluster.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    cluster.settle()
    (owned,) = cluster.all("replicasets.apps")
    annotations = {**owned["metadata"]["annotations"], "deployment.kubernetes.io/revision": text}
    cluster.update({**owned, "metadata": {**owned["metadata"], "annotations": annotations}})
    cluster.settle()
    (owned,) = cluster.all("replicasets.apps")
    assert owned["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"


@pytest.mark.parametrize("text", ODD)
def test_an_index_that_is_no_number_counts_for_none(text: str) -> None:
    cluster = VirtualCluster(job_seconds=100.0)
    cluster.nodes(1)
    spec = {"completions": 1, "completionMode": "Indexed",
            "template": {"spec": {**SPEC, "restartPolicy": "Never"}}}  # fmt: skip
    cluster.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}, "spec": spec})
    cluster.settle()
    (pod,) = cluster.all("pods")
    annotations = {"batch.kubernetes.io/job-completion-index": text}
    cluster.update({**pod, "metadata": {**pod["metadata"], "annotations": annotations}})
    cluster.settle(200.0)
    assert cluster.get("jobs.batch", "default/once")["status"].get("succeeded", 0) <= 1


def _deployment(**rolling: str) -> dict[str, Any]:
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    return {"metadata": {"name": "web"}, "spec": {"selector": SELECTOR, "template": TEMPLATE, "strategy": strategy}}


def _budget(**least: str) -> dict[str, Any]:
    return {"metadata": {"name": "web"}, "spec": {"selector": SELECTOR, **least}}


NO_PERCENTAGE, TOO_MUCH = "must be an integer or percentage (e.g '5%%')", "must not be greater than 100%"


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        pytest.param(DEPLOYMENTS, _deployment(maxSurge=f"{LONG}%"), NO_PERCENTAGE, id="very many digits"),
        pytest.param(DEPLOYMENTS, _deployment(maxUnavailable="²%"), NO_PERCENTAGE, id="another script's digit"),
        pytest.param(DEPLOYMENTS, _deployment(maxUnavailable="101%"), TOO_MUCH, id="more pods than there are"),
        pytest.param(BUDGETS, _budget(maxUnavailable=f"{LONG}%"), NO_PERCENTAGE, id="very many digits in a budget"),
        pytest.param(BUDGETS, _budget(minAvailable="²%"), NO_PERCENTAGE, id="another script's digit in a budget"),
        pytest.param(BUDGETS, _budget(minAvailable="101%"), TOO_MUCH, id="a budget for more pods than there are"),
    ],
)
def test_percentages_that_are_refused(path: str, body: dict[str, Any], why: str) -> None:
    code, answer = Client().ask("POST", path, body)
    assert (code, answer["message"].endswith(why)) == (422, True), answer


def test_a_surge_may_be_more_than_all() -> None:
    assert Client().ask("POST", DEPLOYMENTS, _deployment(maxSurge="200%"))[0] == 201


@pytest.mark.parametrize("watch", ["false", "true"])
def test_a_version_with_very_many_digits_is_too_large(watch: str) -> None:
    code, answer = Client().ask("GET", PODS, resourceVersion=LONG, watch=watch)
    assert (code, answer["message"].startswith("Timeout: Too large resource version")) == (504, True)


def test_a_column_of_an_item_far_beyond_the_end_is_empty() -> None:
    client = Client()
    paths = (".spec.items[1]", ".spec.items[-1]", f".spec.items[{LONG}]", f".spec.items[-{LONG}]")
    columns = [{"name": f"C{number}", "type": "string", "jsonPath": path} for number, path in enumerate(paths)]
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "additionalPrinterColumns": columns}
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    spec = {"group": "example.io", "scope": "Namespaced", "names": names, "versions": [version]}
    definition = {"metadata": {"name": "things.example.io"}, "spec": spec}
    assert client.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)[0] == 201
    path = "/apis/example.io/v1/namespaces/default/things"
    thing = {"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": {"items": ["a", "b"]}}
    assert client.ask("POST", path, thing)[0] == 201
    code, table = client.ask("GET", path, accept=TABLE)
    assert (code, table["rows"][0]["cells"][1:5]) == (200, ["b", "b", None, None])


def _varint(value: int) -> bytes:
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + _varint(rest) if rest else bytes([low])


def _field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _config_map(created: int) -> bytes:
    about = _field(1, b"v1") + _field(2, b"ConfigMap")
    metadata = _field(1, b"c") + _field(8, _field(1, created))
    return b"k8s\0" + _field(1, about) + _field(2, _field(1, metadata))


def test_the_last_second_of_the_year_9999_in_protobuf() -> None:
    assert protobuf.decode(_config_map(253_402_300_799))["metadata"]["creationTimestamp"] == "9999-12-31T23:59:59Z"


@pytest.mark.parametrize("created", [253_402_300_800, 1 << 62])
def test_a_time_after_it_is_refused(created: int) -> None:
    with pytest.raises(protobuf.MalformedError, match="out of range"):
        protobuf.decode(_config_map(created))


@pytest.mark.parametrize("created", [0, (1 << 64) - 5])
def test_a_time_before_1970_is_none(created: int) -> None:
    assert protobuf.decode(_config_map(created))["metadata"].get("creationTimestamp") is None
