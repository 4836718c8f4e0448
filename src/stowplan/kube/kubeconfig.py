"""Reads kubeconfig files, merges them as kubectl does, and selects one context.

The first file that sets a name or the current context wins. A relative path in a file is relative to that file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from stowplan.objects import bounded_yaml
from stowplan.objects.errors import ConfigError


class _Entry(msgspec.Struct, frozen=True, rename="kebab"):
    file: str = ""  # the file of the entry; set by `_read`


class KubeconfigCluster(_Entry, frozen=True, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: bytes = b""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: tuple[dict[str, Any], ...] = ()


class ExecVariable(msgspec.Struct, frozen=True):
    name: str
    value: str


class ExecConfig(msgspec.Struct, frozen=True, rename="camel"):
    """An exec plugin: a program that prints credentials."""

    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[ExecVariable, ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class KubeconfigUser(_Entry, frozen=True, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: bytes = b""
    client_key: str = ""
    client_key_data: bytes = b""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    as_: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: dict[str, tuple[str, ...]] = {}
    exec: ExecConfig | None = None
    auth_provider: dict[str, Any] | None = None


class Context(_Entry, frozen=True, rename="kebab"):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class ResolvedContext(msgspec.Struct, frozen=True):
    """A context with its cluster and user."""

    context: str
    cluster: KubeconfigCluster
    user: KubeconfigUser
    namespace: str


PATHS = ("certificate_authority", "client_certificate", "client_key", "token_file")
E = TypeVar("E", bound=_Entry)


def resolve(files: Sequence[Path], context: str | None = None) -> ResolvedContext:
    """The named context, or the current one, of the merged files. Files that do not exist are skipped."""
    documents = [(file, _load(file)) for file in files if file.exists()]
    shown = ":".join(map(str, files))
    if not documents:
        raise ConfigError("no such file", file=shown, remedy="expected a kubeconfig file")
    name = context or next((document["current-context"] for _, document in documents if _current(document)), "")
    if not name:
        raise ConfigError("found nothing", path="current-context", file=shown, remedy="name a context")
    found = _entry(documents, "context", name, Context, shown)
    cluster = _entry(documents, "cluster", found.cluster, KubeconfigCluster, shown)
    user = (
        _entry(documents, "user", found.user, KubeconfigUser, shown) if found.user else KubeconfigUser(file=found.file)
    )
    if not _is_address(cluster.server):
        problem = f'found "{cluster.server}", expected an address such as https://10.0.0.1:6443'
        raise ConfigError(problem, path=f"clusters[{found.cluster}].server", file=cluster.file)
    return ResolvedContext(name, cluster, user, found.namespace or "default")


def _is_address(server: str) -> bool:
    try:
        parts = urlsplit(server)
        return parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # no port, or no IPv6 address
        return False


def _current(document: Mapping[str, Any]) -> bool:
    return isinstance(document.get("current-context"), str) and bool(document["current-context"])


def _load(file: Path) -> Mapping[str, Any]:
    try:
        document = bounded_yaml.load(file.read_bytes(), unique_keys=False)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error}", file=str(file)) from None
    except ConfigError as error:
        raise error.located(str(file)) from None
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        raise ConfigError("expected a kubeconfig: a mapping with clusters, users and contexts", file=str(file))
    return document


def _entry(documents: Sequence[tuple[Path, Mapping[str, Any]]], what: str, name: str, kind: type[E], shown: str) -> E:
    """The first entry of that name in `clusters`, `users` or `contexts`."""
    known = []
    for file, document in documents:
        entries = document.get(f"{what}s")
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, Mapping) and entry.get("name") == name:
                found = entry.get(what) or {}
                if not isinstance(found, Mapping):
                    raise ConfigError("expected a mapping", path=f"{what}s[{name}].{what}", file=str(file))
                return _read(found, kind, file, f"{what}s[{name}]")
            known.append(str(entry.get("name")) if isinstance(entry, Mapping) else str(entry))
    remedy = f"there is {', '.join(sorted(known))}" if known else f"there is no {what} at all"
    raise ConfigError(f'no {what} is called "{name}"', file=shown, remedy=remedy)


def _read(data: Mapping[str, Any], kind: type[E], file: Path, path: str) -> E:
    given = {key: value for key, value in data.items() if value is not None and key != "file"}
    try:
        entry = msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        problem, _, inside = str(error).partition(" - at `$")
        raise ConfigError(problem[:1].lower() + problem[1:], path=path + inside.rstrip("`"), file=str(file)) from None
    folder = file.absolute().parent
    paths = {name: str(folder / value) for name in PATHS if (value := getattr(entry, name, ""))}
    return msgspec.structs.replace(entry, file=str(file), **paths)
