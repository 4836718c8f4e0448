"""Requests without HTTP, and paths and objects to make them with."""

from __future__ import annotations

import json
from typing import Any

from stowplan.embedded.errors import ApiError
from stowplan.embedded.http.handlers import Handlers
from stowplan.embedded.http.requests import Request
from stowplan.embedded.http.responses import ApiResponse
from tests.embedded.virtual_cluster import VirtualCluster

PODS = "/api/v1/namespaces/default/pods"
POD = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
JSON_PATCH, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"


class Client:
    """Requests without HTTP."""

    def __init__(self) -> None:
        self.world = VirtualCluster(controllers=False)
        self.handlers = Handlers(self.world.api, lambda: self.world.now)

    def ask(
        self, method: str, path: str, body: Any = None, kind: str = "application/json", accept: str = "", **query: str
    ) -> tuple[int, Any]:
        sent = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        try:
            found = self.handlers.answer(Request(method, path, query, accept, kind, sent))
        except ApiError as error:
            return error.code, error.status()
        assert isinstance(found, ApiResponse)
        self.warnings = found.warnings
        text = found.media.startswith("text/")
        return found.status, found.body.decode() if text else json.loads(found.body)
