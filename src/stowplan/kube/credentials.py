"""The address of the API server and the credentials for it.

`load` searches where kubectl and kube-scheduler search: the given file, the files in $KUBECONFIG, the service account
of a pod, ~/.kube/config. Tokens are renewed in time, and when a server refuses them (`Access.headers(refused=…)`): a
token file is read each minute, an exec plugin runs again before its credentials expire, and a certificate is loaded
again when its files change. A file that is empty, missing or half written is reported once and read again soon: until
then the last good token or certificate is used.

No library covers this. kubernetes_asyncio 36 comes closest, but importing it costs 38 MB of the 100 that an idle
process may have, and it reads a tokenFile once. lightkube 1.0 (5 MB) merges no files and supports neither proxy-url,
tls-server-name, exec v1 nor expiry. kr8s 0.20 (20 MB) supports neither tokenFile nor expiry, and leaves private keys
in temporary files.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from stowplan.kube import exec_plugin, kubeconfig, proxy, tls
from stowplan.kube.file_versions import versions
from stowplan.kube.kubeconfig import KubeconfigCluster, KubeconfigUser, ResolvedContext
from stowplan.kube.responses import UnreachableError
from stowplan.objects.errors import ConfigError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_FILE_INTERVAL = 60.0  # seconds; a kubelet writes a new token long before the old one expires
RETRY_INTERVAL = 1.0  # seconds until a file that could not be used is read again
EXPIRY_MARGIN = 10.0  # seconds before its expiry at which a credential is no longer used
NEVER = float("inf")

Headers = tuple[tuple[str, str], ...]
# The value of an Authorization header, and the time (wall clock) until which it is valid.
Authorization = tuple[str, float]


class Access:
    """A server and the credentials for it. One for each event loop: a refresh holds a lock."""

    def __init__(
        self,
        resolved: ResolvedContext,
        *,
        environ: Mapping[str, str] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        cluster, self._user = resolved.cluster, resolved.user
        self._chosen, self._environ, self._now = resolved, os.environ if environ is None else environ, now
        self.server = cluster.server.rstrip("/")
        self.namespace = resolved.namespace
        self.server_name = cluster.tls_server_name or urlsplit(cluster.server).hostname or ""
        self.proxy = (
            proxy.parse(cluster.proxy_url, cluster.file)
            if cluster.proxy_url
            else proxy.from_environment(cluster.server, self._environ)
        )
        self.ssl: ssl.SSLContext | None = _ssl(cluster) if self.server.startswith("https:") else None
        self.on_problem: Callable[[str], None] = lambda _: None
        self._problems: dict[str, str] = {}  # that were reported and are not over, by file
        self._files = [each for each in (self._user.client_certificate, self._user.client_key) if each]
        self._loaded_files: object = None  # what the files of the certificate looked like when it was loaded
        self._load_certificate()
        self._token = ""  # the last good one of the file
        self._source = self._choose_source()
        self._lock = asyncio.Lock()
        self._headers: Headers = ()
        self._valid_until = -NEVER

    @property
    def valid_headers(self) -> Headers | None:
        """The headers of each request, if they need not be renewed first."""
        return self._headers if self._now() < self._valid_until else None

    async def headers(self, refused: Headers | None = None) -> Headers:
        """The headers of each request; the same tuple as before while nothing has changed.

        `refused` are the headers that the server answered with 401. If many requests are refused at once, the first one
        refreshes the credentials and the others use the result.
        """
        if refused is not None or self._now() >= self._valid_until:
            async with self._lock:
                if refused is self._headers or self._now() >= self._valid_until:
                    await self._refresh(forced=refused is not None)
        return self._headers

    async def _refresh(self, *, forced: bool) -> None:
        again = self._renew_certificate(forced)
        try:
            authorization, until = await self._source()
        except ConfigError as error:  # a certificate that a plugin printed
            raise UnreachableError(str(error), unsent=True) from None
        self._valid_until = min(until, again)
        pairs = (("Authorization", authorization), *_impersonation(self._user))
        fresh = tuple((name, value.strip()) for name, value in pairs if value)
        if any("\n" in value or "\r" in value for _, value in fresh):
            raise UnreachableError("credentials with a line break in them cannot be sent", unsent=True)
        if forced or fresh != self._headers:
            self._headers = fresh

    @property
    def token_file(self) -> str:
        """The file that the token is read from; "" if there is none."""
        return self._user.token_file if self._user.exec is None else ""

    # -- the source of the Authorization header

    def _choose_source(self) -> Callable[[], Awaitable[Authorization]]:
        user = self._user
        if user.exec is not None:
            return self._from_plugin
        if user.token_file:
            return self._from_file
        pair = f"{user.username}:{user.password}"
        basic = "Basic " + base64.b64encode(pair.encode()).decode() if user.username else ""
        fixed = f"Bearer {user.token}" if user.token else basic

        async def from_kubeconfig() -> Authorization:
            return fixed, NEVER

        return from_kubeconfig

    async def _from_file(self) -> Authorization:
        file, problem = self._user.token_file, ""
        try:
            token = Path(file).read_text(encoding="ascii").strip()
            if not token.isprintable() or not token:
                problem = "holds no token" if token else "is empty"
        except (OSError, UnicodeDecodeError) as error:
            problem = f"cannot be read: {error}"
        if problem and not self._token:
            raise UnreachableError(f"{file}: {problem}", unsent=True)
        self._note(file, problem and f"{file}: {problem}; the last token stays in use")
        if problem:
            return f"Bearer {self._token}", self._now() + RETRY_INTERVAL
        self._token = token
        return f"Bearer {token}", self._now() + TOKEN_FILE_INTERVAL

    async def _from_plugin(self) -> Authorization:
        assert self._user.exec is not None
        found = await exec_plugin.run(self._chosen, self._user.exec, self._environ)
        if found.client_certificate_data and self.ssl is not None:
            chain, key = found.client_certificate_data.encode(), found.client_key_data.encode()
            tls.load_certificate(self.ssl, certificate=chain, key=key)
        expiry = found.expiration_timestamp
        until = NEVER if expiry is None else expiry.timestamp() - EXPIRY_MARGIN
        return f"Bearer {found.token}" if found.token else "", until

    # -- other settings of the user

    def _note(self, file: str, problem: str) -> None:
        """Report a problem with a file once; "": it is over."""
        if problem and self._problems.get(file) != problem:
            self.on_problem(problem)
        self._problems[file] = problem

    def _renew_certificate(self, forced: bool) -> float:
        """Load a certificate whose files changed, or one that was refused. Return when to look again."""
        if not self._files or self.ssl is None:
            return NEVER
        if forced or versions(self._files) != self._loaded_files:
            try:
                self._load_certificate()
            except ConfigError as error:
                self._note(self._files[0], f"{error}; the last certificate stays in use")
                return self._now() + RETRY_INTERVAL
            self._note(self._files[0], "")
        return self._now() + TOKEN_FILE_INTERVAL if self._user.exec is None else NEVER

    def _load_certificate(self) -> None:
        user, found = self._user, versions(self._files)
        if self.ssl is None or not (user.client_certificate or user.client_certificate_data):
            return
        tls.load_certificate(
            self.ssl,
            certificate_file=user.client_certificate,
            certificate=user.client_certificate_data,
            key_file=user.client_key,
            key=user.client_key_data,
        )
        self._loaded_files = found


def _impersonation(user: KubeconfigUser) -> Headers:
    extra = ((f"Impersonate-Extra-{key}", each) for key, values in user.as_user_extra.items() for each in values)
    groups = (("Impersonate-Group", group) for group in user.as_groups)
    return (("Impersonate-User", user.as_), ("Impersonate-Uid", user.as_uid), *groups, *extra)


def load(
    kubeconfig_file: str | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
    now: Callable[[], float] = time.time,
    instead_of_exec: str = "",
    forwarded: str = "",
) -> Access:
    """The cluster that the file, the environment or the service account of this pod names.

    `forwarded`: the address of a server within that cluster, over a connection that the API server forwards. Its
    certificate is not checked: the way there is safe, and the server made it itself.
    `instead_of_exec`: no program may be run for credentials; this is the remedy for somebody who needs one.
    """
    environ = os.environ if environ is None else environ
    resolved = _resolve(kubeconfig_file, context, environ, service_account)
    if resolved.user.auth_provider is not None:
        remedy = "Kubernetes removed them in 1.26; use an exec plugin instead"
        raise ConfigError("found an auth-provider", path="user.auth-provider", file=resolved.user.file, remedy=remedy)
    if resolved.user.exec is not None and instead_of_exec:
        problem = "found an exec plugin, but nothing is run here"
        raise ConfigError(problem, path="user.exec", file=resolved.user.file, remedy=instead_of_exec)
    exec_plugin.check(resolved)
    if forwarded:
        there = KubeconfigCluster(server=forwarded, insecure_skip_tls_verify=True)
        resolved = msgspec.structs.replace(resolved, cluster=there)
    return Access(resolved, environ=environ, now=now)


def _resolve(file: str | None, context: str | None, environ: Mapping[str, str], account: Path) -> ResolvedContext:
    if file:
        return kubeconfig.resolve([Path(file).expanduser()], context)
    if listed := environ.get("KUBECONFIG"):
        return kubeconfig.resolve([Path(each).expanduser() for each in listed.split(os.pathsep) if each], context)
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if host and port and (account / "token").exists():
        return in_cluster(host, port, account)
    home = Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"
    if not home.exists():
        remedy = f"name a file (--kubeconfig), set KUBECONFIG, write {home}, or run in a pod with a service account"
        raise ConfigError("no cluster to connect to", remedy=remedy)
    return kubeconfig.resolve([home], context)


def in_cluster(host: str, port: str, account: Path) -> ResolvedContext:
    """The API server and the service account of the pod that this process runs in."""
    address = f"[{host}]" if ":" in host else host
    ca, namespace = account / "ca.crt", account / "namespace"
    if not ca.exists():
        raise ConfigError("no such file", file=str(ca), remedy="expected the cluster's CA beside the token")
    cluster = KubeconfigCluster(file=str(account), server=f"https://{address}:{port}", certificate_authority=str(ca))
    user = KubeconfigUser(file=str(account), token_file=str(account / "token"))
    own = namespace.read_text(encoding="utf-8").strip() if namespace.exists() else "default"
    return ResolvedContext("in-cluster", cluster, user, own)


def _ssl(cluster: KubeconfigCluster) -> ssl.SSLContext:
    return tls.context(
        ca_file=cluster.certificate_authority,
        ca_data=cluster.certificate_authority_data,
        insecure=cluster.insecure_skip_tls_verify,
    )
