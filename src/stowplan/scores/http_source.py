"""An HTTP server other than Kubernetes: its address, CA and token. Its responses are JSON."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from stowplan.kube.credentials import Access
from stowplan.kube.kubeconfig import KubeconfigCluster, KubeconfigUser, ResolvedContext
from stowplan.kube.responses import Response
from stowplan.kube.transport import Transport
from stowplan.objects.errors import ConfigError, StowplanError


class AnswerError(StowplanError):
    """A response has the wrong form. The text names the path in the response and what was expected."""


class HttpSource:
    """A server by its URL. The token file is read again each minute, since a kubelet renews it."""

    def __init__(
        self, url: str, *, token_file: str = "", ca_file: str = "", insecure: bool = False, timeout: float = 10.0
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f'found "{url}", expected an address such as http://prometheus.example:9090', path="url")
        self.url, self._timeout = url, timeout
        cluster = KubeconfigCluster(
            server=f"{parts.scheme}://{parts.netloc}",
            certificate_authority=ca_file,
            insecure_skip_tls_verify=insecure,
        )
        self._path, self._query = parts.path.rstrip("/"), parts.query
        self._transport = Transport(
            Access(ResolvedContext("site", cluster, KubeconfigUser(token_file=token_file), "")), connections=2
        )

    async def get(self, path: str, params: Mapping[str, str]) -> Response:
        """GET a path below the URL."""
        return await self._transport.request("GET", self._path + path, params=params, timeout=self._timeout)

    async def post(self, document: Mapping[str, object]) -> Response:
        """POST to the URL."""
        target = f"{self._path or '/'}?{self._query}" if self._query else self._path or "/"
        body = msgspec.json.encode(document)
        return await self._transport.request("POST", target, body=body, timeout=self._timeout)

    async def close(self) -> None:
        await self._transport.close()


def with_path(error: msgspec.ValidationError) -> str:
    """The message of a validation error, with the path in front."""
    problem, _, path = str(error).partition(" - at `$")
    where = path.rstrip("`").lstrip(".")
    return f"{where}: {problem[:1].lower()}{problem[1:]}" if where else problem[:1].lower() + problem[1:]
