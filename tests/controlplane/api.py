"""A small HTTP client for kube-apiserver and etcd: for waiting, and for tests that ask about the wire itself.

One connection per request, so that a server that was killed and started again needs no thought.
"""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stowplan.objects import json_text


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes

    def json(self) -> Any:
        """The document; what nests so deep that Python cannot read it is left out: tests create such objects."""
        try:
            return json.loads(self.body)
        except RecursionError:
            return json.loads(json_text.readable(self.body))


class Api:
    """A server at `url`. With `ca` its certificate is checked against that file, without it not at all."""

    def __init__(self, url: str, *, token: str | None = None, ca: Path | None = None) -> None:
        self.url = url
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        trust = ssl.create_default_context(cafile=ca)
        if ca is None:
            trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        # A proxy named by the environment is for the world, not for loopback.
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust)
        )

    def ask(self, method: str, path: str, body: object = None, *, seconds: float = 30) -> Answer:
        """The server's answer, whatever its status; OSError where there is none. Bytes are sent as they are."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, self._headers, method=method)
        try:
            with self._opener.open(request, timeout=seconds) as response:
                return Answer(response.status, response.read())
        except urllib.error.HTTPError as refused:
            with refused:
                return Answer(refused.code, refused.read())

    def stream(self, path: str, *, seconds: float) -> Any:
        """An answer that goes on, to be read line by line; TimeoutError after so many seconds of silence."""
        return self._opener.open(urllib.request.Request(self.url + path, headers=self._headers), timeout=seconds)

    def get(self, path: str) -> Answer:
        return self.ask("GET", path)

    def must(self, method: str, path: str, body: object = None, *, seconds: float = 30) -> Any:
        """The JSON of a success; anything else is an error that shows the answer."""
        answer = self.ask(method, path, body, seconds=seconds)
        if answer.status >= 300:
            raise RuntimeError(f"{method} {self.url}{path} was answered with {answer.status}: {answer.body.decode()}")
        return answer.json()

    def answers(self, path: str) -> bool:
        """Whether a request for `path` succeeds now."""
        try:
            return self.ask("GET", path, seconds=10).status == 200
        except (OSError, http.client.HTTPException):
            return False
