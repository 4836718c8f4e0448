"""An embedded cluster in a thread of its own, for tests that talk to it from outside: kubectl, HTTP, processes."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stowplan.embedded.authorization.users import AUTHENTICATED, ApiUser
from stowplan.embedded.cluster import Embedded
from tests.controlplane import credentials
from tests.controlplane.cluster import Cluster


class EmbeddedCluster(Cluster):
    """What tests do with a cluster, done with the embedded one. With RBAC it knows the users of a real one."""

    def __init__(self, embedded: Embedded, kubectl: Path, folder: Path, *, has_controllers: bool = True) -> None:
        self.embedded = embedded
        tokens, ca = dict.fromkeys(("admin", "scheduler", "nobody"), ""), None
        if embedded.rbac:
            tokens = {name: embedded.token_for(_user(name)) for name in credentials.USERS}
            ca = folder / "ca.crt"
            ca.write_bytes(embedded.certificate)
        super().__init__(embedded.url, ca, tokens, kubectl, folder, has_accounts=False, has_kubelets=has_controllers)

    def check(self) -> None:
        assert self.embedded.problems == []

    def kubeconfig(self, user: str = "admin") -> Path:
        file = self.folder / f"{user}.kubeconfig"
        if not file.exists():
            file.write_text(self.embedded.kubeconfig(self.tokens[user]))
        return file


def _user(name: str) -> ApiUser:
    user, group = credentials.USERS[name]
    return ApiUser(user, (*filter(None, [group]), AUTHENTICATED), uid=name)


@contextlib.contextmanager
def served(**options: Any) -> Iterator[Embedded]:
    """Runs until the block ends. Fails if the server reported an internal error."""
    embedded = Embedded(**options)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="embedded cluster", daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(embedded.start(), loop).result(60)
        yield embedded
    finally:
        asyncio.run_coroutine_threadsafe(embedded.stop(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()
    assert embedded.problems == []
