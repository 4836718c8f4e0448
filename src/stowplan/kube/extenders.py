"""HTTP extenders: an Ask of the engine becomes a POST, the JSON of the response becomes the body of the result.

The extender API uses the names of Go fields. An extender that caches nodes (nodeCacheCapable) gets their names; any
other gets the documents as the API server sent them. Any status but 200 is a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import msgspec

from stowplan.framework.config.settings import Extender, ExtenderTLS
from stowplan.kube.credentials import Access
from stowplan.kube.kubeconfig import KubeconfigCluster, KubeconfigUser, ResolvedContext
from stowplan.kube.responses import UnreachableError
from stowplan.kube.transport import Transport
from stowplan.objects import json_text
from stowplan.objects.actions import Ask, PodRef, Victims
from stowplan.objects.changes import Result
from stowplan.objects.errors import ConfigError, StowplanError

DEFAULT_TIMEOUT = 5.0
# Returns the JSON of an object by kind and key; None if it is unknown (`Reflector.cache.documents`).
Documents = Callable[[str, str], bytes | None]


class UnknownObjectError(StowplanError):
    """An object of the request is no longer known."""


class Extenders:
    """The extenders of a configuration, each with its own connections. `Ask.extender` is an index of `configured`."""

    def __init__(self, configured: Sequence[Extender], documents: Documents, *, connections: int = 16) -> None:
        self._configured, self._documents = tuple(configured), documents
        self._transports = [
            Transport(_access(each, f"extenders[{number}]"), connections=connections)
            for number, each in enumerate(configured)
        ]

    async def ask(self, question: Ask) -> Result:
        """The response of the extender, or the reason why there is none."""
        extender = self._configured[question.extender]
        transport = self._transports[question.extender]
        path = f"{urlsplit(extender.url_prefix).path.rstrip('/')}/{_verb(extender, question)}"
        try:
            body = msgspec.json.encode(self._arguments(extender, question))
            timeout = float(extender.http_timeout) or DEFAULT_TIMEOUT
            response = await transport.request("POST", path, body=body, timeout=timeout)
        except (UnknownObjectError, UnreachableError) as error:
            return Result(question.id, 0, f"{extender.url_prefix}: {error}")
        if response.status != 200:
            problem = f"failed {question.verb} with extender at URL {extender.url_prefix}, code {response.status}"
            return Result(question.id, response.status if response.status >= 300 else 0, problem)
        try:
            return Result(question.id, 200, body=msgspec.json.decode(response.body))
        except Exception as error:
            return Result(question.id, 0, f"{extender.url_prefix}: the answer is not JSON: {error}")

    async def close(self) -> None:
        for transport in self._transports:
            await transport.close()

    # -- requests

    def _arguments(self, extender: Extender, question: Ask) -> dict[str, object]:
        pod = question.pod
        if question.verb == "bind":
            node = question.nodes[0]
            return {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node}
        arguments: dict[str, object] = {"Pod": self._pod(pod, question)}
        if question.verb == "preempt":
            if extender.node_cache_capable:
                by_node = {node: _named_victims(each) for node, each in question.victims.items()}
                return {**arguments, "NodeNameToMetaVictims": by_node}
            by_node = {node: self._victims(each, question) for node, each in question.victims.items()}
            return {**arguments, "NodeNameToVictims": by_node}
        if extender.node_cache_capable:
            return {**arguments, "Nodes": None, "NodeNames": question.nodes}
        items = [self._document("Node", name) for name in question.nodes]
        return {**arguments, "Nodes": {"kind": "NodeList", "apiVersion": "v1", "items": items}, "NodeNames": None}

    def _victims(self, victims: Victims, question: Ask) -> dict[str, object]:
        pods = [self._pod(pod, question) for pod in victims.pods]
        return {"Pods": pods, "NumPDBViolations": victims.violations}

    def _pod(self, pod: PodRef, question: Ask) -> msgspec.Raw | dict[str, object]:
        """The document of a pod, with other labels if the Ask has any for it."""
        document, labels = self._document("Pod", _key(pod)), question.labels.get(pod.uid)
        return _labelled(document, labels) if labels else document

    def _document(self, kind: str, key: str) -> msgspec.Raw:
        found = self._documents(kind, key)
        if found is None:
            raise UnknownObjectError(f"{kind} {key} is no longer known")
        return msgspec.Raw(found)


def _labelled(document: msgspec.Raw, labels: dict[str, str]) -> dict[str, object]:
    """The document with more labels; all other fields are passed on without decoding them."""
    try:
        whole = msgspec.json.decode(document, type=dict[str, msgspec.Raw])
    except Exception:
        whole = msgspec.json.decode(json_text.readable(bytes(document)), type=dict[str, msgspec.Raw])
    metadata = msgspec.json.decode(whole["metadata"], type=dict[str, msgspec.Raw])
    own = msgspec.json.decode(metadata.get("labels", b"{}"), type=dict[str, str] | None) or {}
    return {**whole, "metadata": {**metadata, "labels": own | labels}}


def _named_victims(victims: Victims) -> dict[str, object]:
    return {"Pods": [{"UID": pod.uid} for pod in victims.pods], "NumPDBViolations": victims.violations}


def _verb(extender: Extender, question: Ask) -> str:
    verbs = {
        "filter": extender.filter_verb,
        "prioritize": extender.prioritize_verb,
        "preempt": extender.preempt_verb,
        "bind": extender.bind_verb,
    }
    return verbs[question.verb]


def _key(pod: PodRef) -> str:
    return f"{pod.namespace}/{pod.name}"


def _access(extender: Extender, path: str) -> Access:
    """The extender as a server without credentials. Without a CA it is not verified, as in kube-scheduler."""
    given = extender.tls_config or ExtenderTLS()
    parts = urlsplit(extender.url_prefix)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        problem = f'found "{extender.url_prefix}", expected an address such as http://extender.example:8888/scheduler'
        raise ConfigError(problem, path=f"{path}.urlPrefix")
    cluster = KubeconfigCluster(
        file=path,
        server=f"{parts.scheme}://{parts.netloc}",
        certificate_authority=given.ca_file,
        certificate_authority_data=given.ca_data,
        tls_server_name=given.server_name,
        insecure_skip_tls_verify=given.insecure or (extender.enable_https and not (given.ca_file or given.ca_data)),
    )
    user = KubeconfigUser(
        file=path,
        client_certificate=given.cert_file,
        client_certificate_data=given.cert_data,
        client_key=given.key_file,
        client_key_data=given.key_data,
    )
    return Access(ResolvedContext("extender", cluster, user, ""))
