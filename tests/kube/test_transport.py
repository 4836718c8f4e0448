"""Requests with failures: retries and connections."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from stowplan.kube.connection import MAX_BUFFERED
from stowplan.kube.pool import Pool
from stowplan.kube.responses import RefusedError, StoppedError, UnreachableError
from stowplan.kube.transport import Transport
from tests.kube.fakes import a_client, a_stream, an_access, answered, refused, serving, until


def soon(seconds: float = 60) -> float:
    return asyncio.get_running_loop().time() + seconds


async def test_one_connection_serves_many_requests() -> None:
    async def handler(request: web.Request) -> web.Response:
        return answered({"path": request.path})

    async with serving(handler) as fake, a_client(fake) as client:
        answers = [await client.transport.request("GET", f"/{number}") for number in range(20)]
        assert [json.loads(answer.body)["path"] for answer in answers] == [f"/{number}" for number in range(20)]
        assert len(fake.connections) == 1


async def test_no_more_connections_are_made_than_allowed() -> None:
    async def handler(request: web.Request) -> web.Response:
        await asyncio.sleep(0)
        return answered({})

    async with serving(handler) as fake, a_client(fake, connections=3) as client:
        answers = await asyncio.gather(*(client.transport.request("GET", "/") for _ in range(50)))
        assert all(answer.ok for answer in answers)
        assert len(fake.connections) <= 3


async def test_a_cancelled_request_gives_its_place_to_the_next() -> None:
    release = asyncio.Event()

    async def handler(request: web.Request) -> web.Response:
        if request.path == "/slow":
            await release.wait()
        return answered({"path": request.path})

    async with serving(handler) as fake, a_client(fake, connections=1) as client:
        slow = asyncio.create_task(client.transport.request("GET", "/slow"))
        while not fake.asked:
            await asyncio.sleep(0)
        waiting = [asyncio.create_task(client.transport.request("GET", f"/{number}")) for number in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        slow.cancel()
        answers = await asyncio.gather(slow, *waiting, return_exceptions=True)
        assert [type(answer) for answer in answers[:2]] == [asyncio.CancelledError] * 2
        assert [json.loads(answer.body)["path"] for answer in answers[2:]] == ["/1", "/2"]  # type: ignore[union-attr]
        release.set()


async def test_a_place_that_comes_too_late_is_passed_on() -> None:
    async def handler(request: web.Request) -> web.Response:
        return answered({})

    async with serving(handler) as fake:
        pool = Pool(an_access(fake.url), 1)
        connection = await pool.acquire()
        waiting = asyncio.create_task(pool.acquire())
        await asyncio.sleep(0)
        pool.release(connection)
        waiting.cancel()  # in the same turn of the loop as it got its place
        await asyncio.gather(waiting, return_exceptions=True)
        async with asyncio.timeout(60):
            pool.release(await pool.acquire())
        await pool.close()


async def breaks_off(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return answered({})


@pytest.mark.parametrize(
    ("faults", "maybe_applied"),
    [
        pytest.param([lambda: refused(503), lambda: refused(500)], True, id="a server that is not ready"),
        pytest.param([lambda: refused(429)], False, id="one that is too busy, and so did nothing"),
        pytest.param([None], True, id="a connection that breaks before the answer"),
    ],
)
async def test_temporary_failures_are_retried(
    faults: list[Callable[[], web.Response] | None], maybe_applied: bool
) -> None:
    left = list(faults)

    async def handler(request: web.Request) -> web.Response:
        if not left:
            return answered({"kind": "Status"}, 201)
        fault = left.pop(0)
        return fault() if fault else await breaks_off(request)

    async with serving(handler) as fake, a_client(fake) as client:
        answer = await client.transport.request("POST", "/", body=b'{"a": 1}', until=soon())
        assert (answer.status, answer.maybe_applied) == (201, maybe_applied)
        assert [asked[2] for asked in fake.asked] == [{"a": 1}] * (len(faults) + 1)


@pytest.mark.parametrize("status", [400, 403, 404, 409, 410, 422])
async def test_decisions_of_the_server_are_not_retried(status: int) -> None:
    async def handler(request: web.Request) -> web.Response:
        return refused(status, "because")

    async with serving(handler) as fake, a_client(fake) as client:
        answer = await client.transport.request("POST", "/", until=soon())
        assert (answer.status, answer.message, len(fake.asked)) == (status, "because", 1)


async def test_retry_after_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    left, slept = [1], list[float]()
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    async def handler(request: web.Request) -> web.Response:
        return refused(429, **{"Retry-After": "2"}) if left and left.pop() else answered({})

    async with serving(handler) as fake, a_client(fake) as client:
        monkeypatch.setattr(asyncio, "sleep", note)
        answer = await client.transport.request("GET", "/", until=soon(60))
        monkeypatch.undo()
    assert answer.ok
    assert next(pause for pause in slept if pause) >= 2


async def test_at_the_deadline_the_last_answer_is_left() -> None:
    async def handler(request: web.Request) -> web.Response:
        return refused(503, "shutting down")

    async with serving(handler) as fake, a_client(fake) as client:
        answer = await client.transport.request("GET", "/", until=soon(3))
        assert (answer.status, answer.message) == (503, "shutting down")
        assert len(fake.asked) > 1


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        pytest.param(b"", "the connection broke", id="nothing at all"),
        pytest.param(b"HTTP/1.1 200 OK\r\nDate: today\r\n", "the connection broke", id="half a head"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "the connection broke", id="half a body"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "the connection broke", id="half a chunk"
        ),
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", "not HTTP", id="another protocol"),
    ],
)
async def test_an_answer_that_is_none_is_an_error(answer: bytes, problem: str) -> None:
    async with raw_server(answer) as url:
        transport = Transport(an_access(url))
        with pytest.raises(UnreachableError, match=problem):
            await transport.request("GET", "/")
        await transport.close()


async def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    async with raw_server(b"HTTP/1.0 200 OK\r\nServer: simple\r\n\r\n[1, 2]") as url:
        transport = Transport(an_access(url))
        assert (await transport.request("GET", "/")).body == b"[1, 2]"
        assert (await transport.request("GET", "/")).body == b"[1, 2]"
        await transport.close()


async def test_an_answer_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stowplan.kube.connection.MAX_BODY", 1 << 20)

    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=b"{" * (1 << 22), content_type="application/json")

    async with serving(handler) as fake, a_client(fake) as client:
        with pytest.raises(UnreachableError, match="the response is larger than 1 MiB"):
            await client.transport.request("GET", "/", until=soon(1))


async def test_an_early_hint_is_not_the_answer() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    async with raw_server(early + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as url:
        transport = Transport(an_access(url))
        answer = await transport.request("GET", "/")
        assert (answer.status, answer.body, answer.header(b"link")) == (200, b"{}", "")
        await transport.close()


async def test_nobody_there_is_unreachable_and_surely_not_done() -> None:
    async with raw_server(b"") as url:
        pass
    transport = Transport(an_access(url))
    with pytest.raises(UnreachableError, match=url) as caught:
        await transport.request("GET", "/")
    assert caught.value.unsent


async def test_a_silent_server_is_given_up() -> None:
    async def handler(request: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return answered({})

    async with serving(handler) as fake, a_client(fake) as client:
        with pytest.raises(UnreachableError, match=r"no answer within 1 s"):
            await client.transport.request("GET", "/", timeout=1)


async def test_nothing_is_sent_after_its_deadline_however_long_it_waited_for_its_turn() -> None:
    go_on = asyncio.Event()

    async def handler(request: web.Request) -> web.Response:
        await go_on.wait()
        return answered({})

    async with serving(handler) as fake, a_client(fake, connections=1) as client:
        first = asyncio.create_task(client.transport.request("POST", "/first"))
        await until(lambda: fake.asked)
        too_soon = soon(0.05)
        second = asyncio.create_task(client.transport.request("POST", "/second", until=too_soon))
        third = asyncio.create_task(client.transport.request("POST", "/third", until=soon(30)))
        await until(lambda: soon(0) > too_soon)
        go_on.set()
        with pytest.raises(UnreachableError, match="the deadline passed before") as caught:
            await second
        assert caught.value.unsent
        assert [answer.ok for answer in (await first, await third)] == [True, True]
        assert [path for _, path, _ in fake.asked] == ["/first", "/third"]


async def test_who_may_no_longer_write_may_still_read() -> None:
    async def handler(request: web.Request) -> web.Response:
        return answered({})

    leading = True
    async with serving(handler) as fake, a_client(fake, may_write=lambda: leading) as client:
        assert (await client.transport.request("POST", "/")).ok
        leading = False
        for until_then in (None, soon()):
            with pytest.raises(StoppedError, match="writing is no longer allowed"):
                await client.transport.request("POST", "/", until=until_then)
        assert (await client.transport.request("GET", "/")).ok
        assert [method for method, _, _ in fake.asked] == ["POST", "GET"]


async def test_data_without_a_request_closes_the_connection() -> None:
    """Some servers send a message before they close an idle connection; it is not the next response."""
    fine, goodbye = (b"HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n" % word for word in (b"200 OK", b"408 Timeout"))
    spoken, connections = asyncio.Event(), list[asyncio.StreamWriter]()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(fine)
        await spoken.wait()
        writer.write(goodbye)
        await reader.read()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    transport = Transport(an_access(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
    assert (await transport.request("GET", "/")).status == 200
    spoken.set()
    await until(lambda: not transport._pool._all)
    assert (await transport.request("GET", "/")).status == 200
    assert len(connections) == 2
    await transport.close()
    await asyncio.gather(*(writer.wait_closed() for writer in connections), return_exceptions=True)
    server.close()
    await server.wait_closed()


async def test_the_error_of_a_refused_stream_has_the_reason() -> None:
    async def handler(request: web.Request) -> web.Response:
        return refused(410, "too old resource version: 5 (9)")

    async with serving(handler) as fake, a_client(fake) as client:
        with pytest.raises(RefusedError, match="too old resource version") as caught:
            async with client.transport.stream("/api/v1/pods", {"watch": "1"}):
                raise AssertionError
        assert caught.value.status == 410


async def test_a_stream_that_is_not_read_is_paused() -> None:
    """And nothing of it is lost: more than what is buffered, read only at the end."""
    piece, pieces = bytes(range(256)) * 1024, 64

    async def handler(request: web.Request) -> web.StreamResponse:
        response = a_stream()
        await response.prepare(request)
        for _ in range(pieces):
            await response.write(piece)
        return response

    async with serving(handler) as fake, a_client(fake) as client, client.transport.stream("/") as stream:
        await until(lambda: stream._unread > MAX_BUFFERED)
        read = bytearray()
        while data := await stream.read(10):
            read += data
            await asyncio.sleep(0)
        assert bytes(read) == piece * pieces


async def test_a_silent_stream_is_a_broken_one() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = a_stream()
        await response.prepare(request)
        await asyncio.sleep(60)
        return response

    async with serving(handler) as fake, a_client(fake) as client, client.transport.stream("/") as stream:
        with pytest.raises(UnreachableError, match=r"silent for 0.05 s"):
            await stream.read(0.05)


async def test_no_more_requests_a_second_than_allowed() -> None:
    async def handler(request: web.Request) -> web.Response:
        return answered({})

    async with serving(handler) as fake, a_client(fake, qps=100, burst=5) as client:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await asyncio.gather(*(client.transport.request("GET", "/") for _ in range(25)))
        assert loop.time() - begun >= 0.19  # 5 at once, 20 at 100 a second


async def test_a_closed_transport_makes_no_new_connections() -> None:
    async with raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as url:
        transport = Transport(an_access(url), generator=random.Random(0))
        await transport.request("GET", "/")
        await transport.close()
        with pytest.raises(UnreachableError, match="the client is closed"):
            await transport.request("GET", "/")


class raw_server:  # noqa: N801 - used like a function
    """Answers each request with these bytes and closes."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(self._answer)
        writer.close()

    async def __aexit__(self, *_: Any) -> None:
        self._server.close()
        await self._server.wait_closed()
