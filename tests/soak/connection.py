"""A connection to the API server that is kept open, and opened again after a fault. One thread uses it at a time."""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from urllib.parse import urlsplit


class Connection:
    def __init__(self, url: str, token: str, ca: Path | None) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._context = ssl.create_default_context(cafile=ca)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._open: http.client.HTTPSConnection | None = None

    def ask(self, method: str, path: str, body: object = None, *, kind: str = "application/json") -> tuple[int, bytes]:
        """The status and the body of the answer; 0 if there is none. A body of bytes is sent as it is."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = self._open or http.client.HTTPSConnection(
            self._host, self._port, timeout=30, context=self._context
        )
        try:
            connection.request(method, path, data, self._headers | {"Content-Type": kind})
            answer = connection.getresponse()
            body_of = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            self._open = None
            return 0, str(error).encode()
        self._open = connection
        return answer.status, body_of
