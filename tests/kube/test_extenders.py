"""Requests to extenders: Go's field names, with node names or whole documents."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from stowplan.framework.config.document import Seconds
from stowplan.framework.config.settings import Extender, ExtenderTLS
from stowplan.kube.extenders import Extenders
from stowplan.objects.actions import Ask, PodRef, Victims
from stowplan.objects.changes import Result
from stowplan.objects.errors import ConfigError
from tests.kube.certificates import Authority
from tests.kube.fakes import Handler, answered, serving

REF, VICTIM, LABELLED = PodRef("ns", "p", "u1"), PodRef("ns", "v", "u2"), PodRef("ns", "w", "u3")
DOCUMENTS = {
    ("Pod", "ns/p"): b'{"kind":"Pod","metadata":{"name":"p"},"spec":{"unknown":1}}',
    ("Pod", "ns/v"): b'{"kind":"Pod","metadata":{"name":"v"}}',
    ("Pod", "ns/w"): b'{"kind":"Pod","metadata":{"name":"w","labels":{"own":"x","app":"a"},"uid":"u3"},'
    b'"spec":{"unknown":[1.50]}}',
    ("Node", "n1"): b'{"kind":"Node","metadata":{"name":"n1"}}',
    ("Node", "n2"): b'{"kind":"Node","metadata":{"name":"n2"}}',
}
POD = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"unknown": 1}}


def documents(kind: str, key: str) -> bytes | None:
    return DOCUMENTS.get((kind, key))


def an_extender(url: str, **more: Any) -> Extender:
    verbs: dict[str, Any] = {"filter_verb": "f", "prioritize_verb": "p", "preempt_verb": "x", "bind_verb": "b"}
    return Extender(url_prefix=f"{url}/scheduler/", weight=1, **verbs, **more)


async def asked(handler: Handler, question: Ask, **more: Any) -> tuple[Result, list[tuple[str, str, Any]]]:
    async with serving(handler) as fake:
        extenders = Extenders([an_extender(fake.url, **more)], documents)
        result = await extenders.ask(question)
        await extenders.close()
        return result, fake.asked


async def agreeing(request: web.Request) -> web.Response:
    return web.json_response({"NodeNames": ["n1"]})


NODES = {
    "kind": "NodeList",
    "apiVersion": "v1",
    "items": [{"kind": "Node", "metadata": {"name": "n1"}}, {"kind": "Node", "metadata": {"name": "n2"}}],
}


@pytest.mark.parametrize(
    ("question", "caches", "path", "body"),
    [
        pytest.param(
            Ask(extender=0, verb="filter", pod=REF, nodes=("n1", "n2")),
            True,
            "f",
            {"Pod": POD, "Nodes": None, "NodeNames": ["n1", "n2"]},
            id="filter by names",
        ),
        pytest.param(
            Ask(extender=0, verb="filter", pod=REF, nodes=("n1", "n2")),
            False,
            "f",
            {"Pod": POD, "Nodes": NODES, "NodeNames": None},
            id="filter by documents, as they came from the server",
        ),
        pytest.param(
            Ask(extender=0, verb="prioritize", pod=REF, nodes=("n1", "n2")),
            False,
            "p",
            {"Pod": POD, "Nodes": NODES, "NodeNames": None},
            id="prioritize",
        ),
        pytest.param(
            Ask(extender=0, verb="bind", pod=REF, nodes=("n2",)),
            False,
            "b",
            {"PodName": "p", "PodNamespace": "ns", "PodUID": "u1", "Node": "n2"},
            id="bind",
        ),
        pytest.param(
            Ask(extender=0, verb="preempt", pod=REF, victims={"n1": Victims((VICTIM,), 2)}),
            True,
            "x",
            {"Pod": POD, "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "u2"}], "NumPDBViolations": 2}}},
            id="preempt by uids",
        ),
        pytest.param(
            Ask(extender=0, verb="preempt", pod=REF, victims={"n1": Victims((VICTIM,), 0)}),
            False,
            "x",
            {
                "Pod": POD,
                "NodeNameToVictims": {
                    "n1": {"Pods": [{"kind": "Pod", "metadata": {"name": "v"}}], "NumPDBViolations": 0}
                },
            },
            id="preempt by documents",
        ),
        pytest.param(
            Ask(extender=0, verb="filter", pod=VICTIM, nodes=("n1",), labels={"u2": {"app": "b"}, "u9": {"c": "d"}}),
            True,
            "f",
            {
                "Pod": {"kind": "Pod", "metadata": {"name": "v", "labels": {"app": "b"}}},
                "Nodes": None,
                "NodeNames": ["n1"],
            },
            id="a pod without labels is shown with some",
        ),
        pytest.param(
            Ask(extender=0, verb="prioritize", pod=LABELLED, nodes=("n1",), labels={"u3": {"app": "b", "role": "c"}}),
            True,
            "p",
            {
                "Pod": {
                    "kind": "Pod",
                    "metadata": {"name": "w", "labels": {"app": "b", "own": "x", "role": "c"}, "uid": "u3"},
                    "spec": {"unknown": [1.50]},
                },
                "Nodes": None,
                "NodeNames": ["n1"],
            },
            id="one with labels keeps its others, and all else that is in its document",
        ),
        pytest.param(
            Ask(
                extender=0,
                verb="preempt",
                pod=REF,
                victims={"n1": Victims((VICTIM,), 0)},
                labels={"u2": {"app": "b"}},
            ),
            False,
            "x",
            {
                "Pod": POD,
                "NodeNameToVictims": {
                    "n1": {
                        "Pods": [{"kind": "Pod", "metadata": {"name": "v", "labels": {"app": "b"}}}],
                        "NumPDBViolations": 0,
                    }
                },
            },
            id="victims are shown with theirs",
        ),
    ],
)
async def test_a_question_on_the_wire(question: Ask, caches: bool, path: str, body: Any) -> None:
    result, requests = await asked(agreeing, question, node_cache_capable=caches)
    assert requests == [("POST", f"/scheduler/{path}", body)]
    assert result == Result(0, 200, body={"NodeNames": ["n1"]})


FILTER = Ask(id=4, extender=0, verb="filter", pod=REF, nodes=("n1",))


async def says_created(request: web.Request) -> web.Response:
    return answered({}, 201)


async def fails(request: web.Request) -> web.Response:
    return answered({}, 500)


async def sleeps(request: web.Request) -> web.Response:
    await asyncio.sleep(60)
    return answered({})


async def babbles(request: web.Request) -> web.Response:
    return web.Response(text="yes, why not")


@pytest.mark.parametrize(
    ("handler", "question", "status", "problem"),
    [
        pytest.param(says_created, FILTER, 0, "failed filter with extender at URL", id="only 200 is an answer"),
        pytest.param(fails, FILTER, 500, "code 500", id="it fails, and is not retried"),
        pytest.param(sleeps, FILTER, 0, "no answer within 0.5 s", id="it is too slow"),
        pytest.param(babbles, FILTER, 0, "the answer is not JSON", id="it answers with something else"),
        pytest.param(
            agreeing,
            Ask(id=4, extender=0, verb="filter", pod=REF, nodes=("n9",)),
            0,
            "Node n9 is no longer known",
            id="a node has gone since",
        ),
    ],
)
async def test_no_answer_is_a_result_too(handler: Handler, question: Ask, status: int, problem: str) -> None:
    # Whoever answers has time enough for it.
    result, requests = await asked(handler, question, http_timeout=Seconds(0.5 if handler is sleeps else 60.0))
    assert (result.id, result.status, result.body) == (4, status, None)
    assert problem in result.message
    assert len(requests) <= 1


async def test_an_extender_over_tls(authority: Authority) -> None:
    file, key = authority.issue("scheduler")
    checked = ExtenderTLS(ca_file=str(authority.ca), cert_file=str(file), key_data=key.read_bytes())
    unchecked = ExtenderTLS(cert_file=str(file), key_file=str(key))
    async with serving(agreeing, authority.server("127.0.0.1", asks_for_certificates=True)) as fake:
        extenders = Extenders(
            [
                an_extender(fake.url, tls_config=checked),
                an_extender(fake.url, tls_config=unchecked, enable_https=True),
                an_extender(fake.url, tls_config=unchecked),
            ],
            documents,
        )
        results = [
            await extenders.ask(Ask(extender=number, verb="filter", pod=REF, nodes=("n1",))) for number in range(3)
        ]
        await extenders.close()
    assert [result.status for result in results] == [200, 200, 0]
    assert "certificate verify failed" in results[2].message


def test_an_address_that_is_none() -> None:
    with pytest.raises(ConfigError, match=r'extenders\[0\].urlPrefix: found "here:80", expected an address such as'):
        Extenders([Extender(url_prefix="here:80")], documents)
