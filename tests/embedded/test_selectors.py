"""Selectors of a URL."""

from __future__ import annotations

import pytest

from stowplan.embedded.api import selectors
from stowplan.embedded.errors import ApiError


def matches(labels: str, found: dict[str, str]) -> bool:
    matcher = selectors.matcher(selectors.labels(labels), ())
    return matcher is None or matcher({"metadata": {"labels": found}})


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        pytest.param("", {}, True, id="no selector"),
        pytest.param("a=b", {"a": "b"}, True, id="equal"),
        pytest.param("a==b", {"a": "c"}, False, id="not equal"),
        pytest.param("a!=b", {}, True, id="a label that is missing is unequal"),
        pytest.param("a", {"a": ""}, True, id="there"),
        pytest.param("!a", {"a": ""}, False, id="not there"),
        pytest.param("a in (b, c)", {"a": "c"}, True, id="one of several"),
        pytest.param("a notin (b,c)", {"a": "c"}, False, id="none of several"),
        pytest.param("a in (b),c=d,!e", {"a": "b", "c": "d"}, True, id="all of it"),
        pytest.param("a=", {"a": ""}, True, id="an empty value"),
        pytest.param("n>3", {"n": "4"}, True, id="greater"),
        pytest.param("x.io/y=z", {"x.io/y": "z"}, True, id="a key with a prefix"),
    ],
)
def test_label_selectors(text: str, labels: dict[str, str], expected: bool) -> None:
    assert matches(text, labels) is expected


@pytest.mark.parametrize("text", ["a b c", "a in b", "a in (b", "=b", "a=b,", "a=!", ",", "a in", "(", "a=b c", "a>x"])
def test_label_selectors_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ApiError) as refused:
        selectors.labels(text)
    assert (refused.value.code, refused.value.reason) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("text", "collection", "document", "expected"),
    [
        pytest.param("spec.nodeName=n", "pods", {"spec": {"nodeName": "n"}}, True, id="a pod's node"),
        pytest.param("spec.nodeName=", "pods", {"spec": {}}, True, id="a missing field is empty"),
        pytest.param("status.phase!=Failed,status.phase!=Succeeded", "pods", {"status": {"phase": "Running"}}, True,
                     id="two conditions"),
        pytest.param("metadata.name=x", "nodes", {"metadata": {"name": "y"}}, False, id="a name"),
        pytest.param("spec.unschedulable=false", "nodes", {"spec": {}}, True, id="a missing flag is false"),
        pytest.param("regarding.name=x", "events", {"involvedObject": {"name": "x"}}, True, id="events' other names"),
        pytest.param("source=kubelet", "events", {"source": {"component": "kubelet"}}, True, id="an event's source"),
    ],
)  # fmt: skip
def test_field_selectors(text: str, collection: str, document: dict[str, object], expected: bool) -> None:
    matcher = selectors.matcher((), selectors.fields(text, collection))
    assert matcher is not None
    assert matcher(document) is expected


@pytest.mark.parametrize("text", ["a", "spec.foo=x", "spec.nodeName"])
def test_unsupported_field_selectors(text: str) -> None:
    with pytest.raises(ApiError) as refused:
        selectors.fields(text, "pods")
    assert refused.value.code == 400
