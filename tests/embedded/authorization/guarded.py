"""Requests without HTTP to a cluster with RBAC, each with its own headers."""

from __future__ import annotations

import json
from typing import Any

from stowplan.embedded.authorization import default_roles
from stowplan.embedded.authorization.escalation import EscalationGuard
from stowplan.embedded.authorization.role_kinds import GROUP
from stowplan.embedded.authorization.users import ADMIN
from stowplan.embedded.errors import ApiError
from stowplan.embedded.http.access_control import access_to
from stowplan.embedded.http.handlers import Handlers
from stowplan.embedded.http.requests import Request
from stowplan.embedded.http.responses import ApiResponse
from tests.embedded.virtual_cluster import VirtualCluster

ROOT = "root"  # the administrator's token


class GuardedCluster:
    """`access` has the administrator's token, and those of service accounts."""

    def __init__(self, *, enforced: bool = True) -> None:
        self.world = VirtualCluster(controllers=False)
        for document in default_roles.documents():
            self.world.create(document)
        self.access = access_to(self.world.store, b"secret", enforced=enforced)
        self.access.authenticator.add(ROOT, ADMIN)
        self.world.api.escalation = EscalationGuard(self.access.authorizer) if enforced else None
        self.handlers = Handlers(self.world.api, lambda: self.world.now, access=self.access)

    def ask(
        self, method: str, path: str, body: Any = None, *, token: str = "", kind: str = "application/json",
        query: dict[str, str] | None = None, headers: tuple[tuple[str, str], ...] = (),
    ) -> tuple[int, Any]:  # fmt: skip
        sent = [("Authorization", f"Bearer {token}"), *headers] if token else list(headers)
        data = b"" if body is None else json.dumps(body).encode()
        try:
            user = self.access.admitted(method, path, query or {}, sent, self.world.now)
            found = self.handlers.answer(Request(method, path, query or {}, "", kind, data, user=user))
        except ApiError as error:
            return error.code, error.status()
        assert isinstance(found, ApiResponse)
        return found.status, json.loads(found.body) if found.media.startswith("application/json") else found.body

    def as_user(self, name: str, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        """A request that the administrator sends as somebody else."""
        return self.ask(method, path, body, token=ROOT, headers=(("Impersonate-User", name),), **more)

    def grant(self, name: str, user: str, *rules: dict[str, Any]) -> None:
        """Rules for the whole cluster."""
        self.world.create({"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole",
                           "metadata": {"name": name}, "rules": list(rules)})  # fmt: skip
        subjects = [{"kind": "User", "name": user}]
        self.world.create({"apiVersion": f"{GROUP}/v1", "kind": "ClusterRoleBinding",
                           "metadata": {"name": name}, "subjects": subjects,
                           "roleRef": {"kind": "ClusterRole", "name": name}})  # fmt: skip

    def account(self, name: str) -> None:
        self.world.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})

    def token(self, account: str, **spec: Any) -> str:
        """A token of an account in the default namespace."""
        path = f"/api/v1/namespaces/default/serviceaccounts/{account}/token"
        status, found = self.ask("POST", path, {"spec": spec}, token=ROOT)
        assert status == 201, found
        return str(found["status"]["token"])
