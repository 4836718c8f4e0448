"""Credentials of an exec plugin: a program that the kubeconfig names (client.authentication.k8s.io)."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from stowplan.kube.kubeconfig import ExecConfig, ResolvedContext
from stowplan.kube.responses import UnreachableError
from stowplan.objects.errors import ConfigError

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
TIMEOUT = 60.0


class ExecPluginError(UnreachableError):
    """The plugin returned no credentials, so nothing was sent. It may succeed next time."""

    def __init__(self, text: str) -> None:
        super().__init__(text, unsent=True)


class Credential(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _Printed(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    status: Credential | None = None


_printed = msgspec.json.Decoder(_Printed)


def check(resolved: ResolvedContext) -> None:
    """Raise `ConfigError` if the configuration of the plugin cannot be used."""
    plugin, where = resolved.user.exec, "user.exec"
    if plugin is None:
        return
    if plugin.api_version not in VERSIONS:
        problem = f'found "{plugin.api_version}", expected {" or ".join(VERSIONS)}'
        raise ConfigError(problem, path=f"{where}.apiVersion", file=resolved.user.file)
    if plugin.interactive_mode == "Always":
        problem = "found Always, but there is no terminal for a prompt"
        raise ConfigError(problem, path=f"{where}.interactiveMode", file=resolved.user.file)


async def run(resolved: ResolvedContext, plugin: ExecConfig, environ: Mapping[str, str]) -> Credential:
    """Run the plugin and return its credentials."""
    process = await _start(plugin, _command(resolved, plugin), _environment(resolved, plugin, environ))
    try:
        async with asyncio.timeout(TIMEOUT):
            output, errors = await process.communicate()
    except TimeoutError:
        raise ExecPluginError(f"{plugin.command}: printed no credentials within {TIMEOUT:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        stderr = " ".join(errors.decode(errors="replace").split())
        raise ExecPluginError(f"{plugin.command}: ended with {process.returncode}: {stderr}")
    return _read(plugin, output)


async def _start(plugin: ExecConfig, command: str, environment: dict[str, str]) -> asyncio.subprocess.Process:
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        return await asyncio.create_subprocess_exec(
            command, *plugin.args, env=environment, stdin=nothing, stdout=pipe, stderr=pipe
        )
    except OSError as error:
        hint = " ".join(plugin.install_hint.split()) or "is it installed?"
        raise ExecPluginError(f"{plugin.command}: cannot be run: {error.strerror}; {hint}") from None


def _command(resolved: ResolvedContext, plugin: ExecConfig) -> str:
    """The command: a bare name is searched on the PATH, a relative path is relative to the kubeconfig."""
    if os.sep in plugin.command:
        return str(Path(resolved.user.file).absolute().parent / plugin.command)
    return shutil.which(plugin.command) or plugin.command


def _environment(resolved: ResolvedContext, plugin: ExecConfig, environ: Mapping[str, str]) -> dict[str, str]:
    spec: dict[str, object] = {"interactive": False}
    if plugin.provide_cluster_info:
        spec["cluster"] = _cluster(resolved)
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    added = {variable.name: variable.value for variable in plugin.env}
    return {**environ, **added, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}


def _cluster(resolved: ResolvedContext) -> dict[str, object]:
    """The cluster for KUBERNETES_EXEC_INFO, with files as data."""
    cluster = resolved.cluster
    ca = cluster.certificate_authority_data
    if not ca and cluster.certificate_authority:
        ca = Path(cluster.certificate_authority).read_bytes()
    info = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": ca,
        "proxy-url": cluster.proxy_url,
        "config": next(
            (each.get("extension") for each in cluster.extensions if each.get("name") == f"{GROUP}/exec"), None
        ),
    }
    return {key: value for key, value in info.items() if value}


def _read(plugin: ExecConfig, output: bytes) -> Credential:
    try:
        printed = _printed.decode(output)
    except msgspec.DecodeError as error:
        raise ExecPluginError(f"{plugin.command}: did not print an ExecCredential: {error}") from None
    if printed.api_version != plugin.api_version:
        problem = f'printed credentials of "{printed.api_version}", expected {plugin.api_version}'
        raise ExecPluginError(f"{plugin.command}: {problem}")
    found = printed.status
    if found is None or not (found.token or (found.client_certificate_data and found.client_key_data)):
        raise ExecPluginError(f"{plugin.command}: printed neither a token nor a certificate with its key")
    return found
