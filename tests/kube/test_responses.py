"""What an answer says, and what is no answer of an API server although its status is 200."""

from __future__ import annotations

import asyncio
import time

import msgspec
import pytest
from aiohttp import web

from stowplan.kube.client import Client
from stowplan.kube.lease import Elector
from stowplan.kube.resources import PODS
from stowplan.kube.responses import Response, UnreachableError, is_text
from stowplan.kube.transport import Transport
from stowplan.kube.writer import Writer
from stowplan.objects.actions import Action, Bind, PodRef, Read
from stowplan.objects.changes import Change
from tests.kube.fakes import a_client, an_access, answered, refused, serving


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("2", 2, id="seconds"),
        pytest.param(" 1 ", 1, id="with blanks"),
        pytest.param("86400", 3, id="a day"),
        pytest.param("9" * 5000, 3, id="longer than there are numbers"),
        pytest.param("Fri, 31 Dec 2100 23:59:59 GMT", None, id="a date"),
        pytest.param("-5", None, id="less than nothing"),
        pytest.param("1e9", None, id="a float"),
        pytest.param("nan", None, id="no number"),
        pytest.param("\xb2", None, id="a digit that is no number"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_a_server_may_ask_for_three_seconds_at_most(text: str, seconds: float | None) -> None:
    assert Response(429, [(b"Retry-After", text.encode("latin-1"))], b"").retry_after == seconds


@pytest.mark.parametrize(
    ("kind", "body", "problem"),
    [
        pytest.param("text/html; charset=utf-8", "<html>log in</html>", "found text/html", id="a page"),
        pytest.param("", "hello", "found application/octet-stream", id="no content type"),
        pytest.param("text/plain", '{"kind": "Status"}', "found text/plain", id="an object that is called a text"),
        pytest.param("application/json", "<html>", "JSON without a kind", id="a page that is called JSON"),
        pytest.param("application/json", "{}", "JSON without a kind", id="JSON of anything"),
        pytest.param("application/json", "[]", "JSON without a kind", id="a list"),
        pytest.param("application/json", '{"kind": 5}', "JSON without a kind", id="a kind that is none"),
        pytest.param("application/json", "", "JSON without a kind", id="nothing"),
        pytest.param("application/json", b'{"kind":"P\xffd"}', "damaged on its way", id="bytes that no text has"),
        pytest.param("application/json", "[" * 100_000, "JSON without a kind", id="nested without an end"),
    ],
)
async def test_a_success_that_is_no_object_is_no_answer(kind: str, body: str | bytes, problem: str) -> None:
    async def handler(request: web.Request) -> web.Response:
        sent = body if isinstance(body, bytes) else body.encode()
        return web.Response(body=sent, headers={"Content-Type": kind} if kind else {})

    async with serving(handler) as fake, a_client(fake) as client:
        with pytest.raises(UnreachableError, match=problem) as raised:
            await client.transport.request("POST", "/")
        assert not raised.value.unsent, "it may have been carried out"
        transport = Transport(an_access(fake.url))  # an extender, say
        assert (await transport.request("POST", "/")).ok
        await transport.close()


@pytest.mark.parametrize("body", ['{"kind":"Status","apiVersion":"v1"}', '{"apiVersion": "v1", "kind": "Pod"}'])
async def test_a_success_is_a_kubernetes_object(body: str) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=body, content_type="application/json", status=201)

    async with serving(handler) as fake, a_client(fake) as client:
        assert (await client.transport.request("POST", "/")).status == 201


async def test_a_page_is_retried_as_a_lost_answer_is() -> None:
    left = [web.Response(text="<html>", content_type="text/html")]

    async def handler(request: web.Request) -> web.Response:
        return left.pop() if left else answered({"kind": "Status"}, 201)

    async with serving(handler) as fake, a_client(fake) as client:
        answer = await client.transport.request("POST", "/", until=asyncio.get_running_loop().time() + 60)
        assert (answer.status, answer.maybe_applied, len(fake.asked)) == (201, True, 2)


@pytest.mark.parametrize("name", ["caf\xe9".encode("latin-1"), b"a\xff"])
async def test_a_damaged_event_breaks_the_watch(name: bytes) -> None:
    """Else its object would be passed over, and nobody would send it again."""

    async def handler(request: web.Request) -> web.Response:
        lines = b'{"type":"ADDED","object":{"metadata":{"name":"%s"}}}\n'
        return web.Response(body=lines % "é".encode() + lines % name, content_type="application/json")

    async with serving(handler) as fake, a_client(fake) as client, client.watch(PODS, "1") as watch:
        with pytest.raises(UnreachableError, match="damaged on its way"):
            _ = [batch async for batch in watch.batches()]


@pytest.mark.parametrize(
    ("data", "whole"),
    [
        pytest.param(b'{"managedFields":[{"f:\xff":{"a]":["]",[]]}}],"name":"web"}', True, id="in managedFields"),
        pytest.param(b'{"managedFields":[{"f:\xff":{}}],"name":"w\xffb"}', False, id="and beside them"),
        pytest.param(b'{"a":{"managedFields":["\xff"]},"b":{"managedFields":["\xff\\""]}}', True, id="in two objects"),
        pytest.param(b'{"note":"\\"managedFields\\":[\xff"}', False, id="in a text that imitates them"),
        pytest.param(b'{"managedFields":["\xff"', True, id="without an end"),
        pytest.param(b'{"name":"\xff"}', False, id="in a name"),
        pytest.param("{'name': 'é'}".encode(), True, id="none"),
    ],
)
def test_only_bytes_outside_of_managed_fields_are_damage(data: bytes, whole: bool) -> None:
    """The API server passes on what somebody wrote into managedFields, and sends only text elsewhere."""
    assert is_text(data) is whole


async def test_a_page_is_no_watch() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text="<html>\n</html>\n", content_type="text/html")

    async with serving(handler) as fake, a_client(fake) as client:
        with pytest.raises(UnreachableError, match="found text/html"):
            async with client.transport.stream("/"):
                raise AssertionError("there is no stream")


# -- what it means to those who ask

REF = PodRef("ns", "p", "u1")
PAGE = ("<html>", "text/html")
STATUS = ('{"kind":"Status","status":"Success"}', "application/json")


def a_writer(client: Client, learned: list[Change]) -> Writer:
    class Recorder:
        def record(self, event: object) -> None: ...

    return Writer(client, learn=lambda change, _=b"": learned.append(change), recorder=Recorder())


@pytest.mark.parametrize(
    ("action", "answer"),
    [
        pytest.param(Bind(pod=REF, node_name="n"), PAGE, id="a page for a binding"),
        pytest.param(Read(pod=REF), PAGE, id="a page for a pod"),
        pytest.param(Read(pod=REF), STATUS, id="a Status for a pod"),
    ],
)
async def test_an_action_is_in_doubt_and_nothing_is_learned(action: Action, answer: tuple[str, str]) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=answer[0], content_type=answer[1])

    learned = list[Change]()
    async with serving(handler) as fake, a_client(fake) as client:
        due = msgspec.structs.replace(action, id=7, deadline=time.monotonic() + 0.5)
        result = await a_writer(client, learned).perform(due)
        assert (result.id, result.status, learned) == (7, 0, [])


async def test_a_binding_behind_a_page_was_carried_out() -> None:
    """The page answers a binding that the server carried out; the second attempt conflicts with the first."""
    left = [web.Response(text=PAGE[0], content_type=PAGE[1])]

    async def handler(request: web.Request) -> web.Response:
        if request.method == "GET":
            return answered({"kind": "Pod", "metadata": {"uid": "u1"}, "spec": {"nodeName": "n"}})
        return left.pop() if left else refused(409, "pod p is already assigned to node n")

    async with serving(handler) as fake, a_client(fake) as client:
        result = await a_writer(client, []).perform(Bind(pod=REF, node_name="n", id=7))
        assert (result.status, [method for method, _, _ in fake.asked]) == (201, ["POST", "POST", "GET"])


@pytest.mark.parametrize("answer", [PAGE, STATUS], ids=["a page", "a Status"])
async def test_a_list_is_not_empty_because_something_else_came(answer: tuple[str, str]) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=answer[0], content_type=answer[1])

    async with serving(handler) as fake, a_client(fake) as client:
        with pytest.raises(UnreachableError):
            _ = [page async for page in client.list_pages(PODS)]


@pytest.mark.parametrize("answer", [PAGE, STATUS], ids=["a page", "a Status"])
async def test_a_lease_is_not_renewed_by_something_else(answer: tuple[str, str]) -> None:
    good = True

    async def handler(request: web.Request) -> web.Response:
        if good:
            return refused(404) if request.method == "GET" else answered(await request.json(), 201)
        return web.Response(text=answer[0], content_type=answer[1])

    problems, at = list[str](), [0.0]
    async with serving(handler) as fake, a_client(fake) as client:
        elector = Elector(
            client, namespace="ns", name="l", identity="me", clock=lambda: at[0], on_problem=problems.append
        )
        assert await elector._try_acquire_or_renew()
        good, at[0] = False, 5.0
        assert not await elector._try_acquire_or_renew()
        assert elector.leading and problems, "it leads until the lease runs out, and tries again"
        good = True
        assert await elector._try_acquire_or_renew()
        good, at[0] = False, 21.0
        assert not elector.leading
