"""A cluster as users see it: kubeconfig files, kubectl, plain HTTP, and temporary namespaces and nodes."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from tests.controlplane import credentials, manifests
from tests.controlplane.api import Api
from tests.controlplane.process import until

ALL_PODS = 300.0  # seconds that a server may take to delete the pods of a namespace: it answers when thousands are gone


class KubectlError(RuntimeError):
    """kubectl refused; the text has its arguments and what it said."""


class Cluster:
    """An API server at `server`, whose certificate `ca` vouches for and which knows the users of `tokens`.

    `folder` is for files that are deleted with the cluster. `has_accounts`: each namespace gets its `default` service
    account. `has_kubelets`: nodes become ready.
    """

    def __init__(
        self, server: str, ca: Path | None, tokens: Mapping[str, str], kubectl: Path, folder: Path,
        *, has_accounts: bool = True, has_kubelets: bool = True,
    ) -> None:  # fmt: skip
        self.server = server
        self.ca = ca
        self.folder = folder
        self.tokens = tokens
        self.has_accounts = has_accounts
        self.has_kubelets = has_kubelets
        self._kubectl = kubectl
        self._numbers = itertools.count(1)

    @property
    def kubectl_program(self) -> Path:
        return self._kubectl

    def check(self) -> None:
        """Raise an error if a part of the cluster has ended."""

    def api(self, user: str = "admin") -> Api:
        """Plain HTTP as one of `credentials.USERS`."""
        return Api(self.server, token=self.tokens[user], ca=self.ca)

    def kubeconfig(self, user: str = "admin") -> Path:
        """A kubeconfig file for one of `credentials.USERS`."""
        file = self.folder / f"{user}.kubeconfig"
        if not file.exists():  # a program may be reading it just now
            credentials.write_kubeconfig(file, self.server, self.ca, self.tokens[user])
        return file

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """A kubeconfig file for a service account that exists, with a token that the server issues now."""
        token = self.kubectl("create", "token", name, "--namespace", namespace).strip()
        file = self.folder / f"{namespace}-{name}.kubeconfig"
        return credentials.write_kubeconfig(file, self.server, self.ca, token)

    def kubectl(self, *args: str, input: str | None = None, kubeconfig: Path | None = None) -> str:  # noqa: A002
        """Return what kubectl prints, as admin unless another kubeconfig is given. Raise KubectlError if it fails."""
        environment = os.environ | {
            "KUBECONFIG": str(kubeconfig or self.kubeconfig()),
            "KUBECACHEDIR": str(self.folder / "kubectl-cache"),
            "KUBERC": "off",  # no preferences of a user
        }
        command = [str(self._kubectl), *args]
        done = subprocess.run(command, input=input, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise KubectlError(f"kubectl {' '.join(args)} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    @contextlib.contextmanager
    def namespace(self, prefix: str = "test") -> Iterator[str]:
        """A fresh namespace, ready for pods. Afterwards its pods are gone at once, the rest of it soon."""
        name = f"{prefix}-{next(self._numbers)}"
        api = self.api()
        api.must("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        if self.has_accounts:
            until(f"{name} has its service account", lambda: self.has_default_account(name))
        try:
            yield name
        finally:
            # In this order: no pod can be created in a namespace that is being deleted. Without the second step pods
            # would stay for seconds, as work for the scheduler of the next test.
            api.must("DELETE", f"/api/v1/namespaces/{name}")
            until(f"the pods of {name} are deleted", lambda: _deletes_pods(api, name), ALL_PODS)

    def has_default_account(self, namespace: str) -> bool:
        return self.api().answers(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")

    @contextlib.contextmanager
    def nodes(
        self, count: int, prefix: str = "node", *, labels: Mapping[str, str] | None = None,
        capacity: Mapping[str, str] | None = None,
    ) -> Iterator[list[str]]:  # fmt: skip
        """Nodes `prefix`-0, -1, …, ready and without taints, spread over three zones; gone afterwards."""
        names = [f"{prefix}-{number}" for number in range(count)]
        try:
            for number, name in enumerate(names):
                node = manifests.node(name, number, labels or {}, capacity or {}, ready=not self.has_kubelets)
                self.api().must("POST", "/api/v1/nodes", node)
            until(f"{count} nodes are ready", lambda: self._ready_nodes() >= {*names}, 60)
            yield names
        finally:
            for name in names:
                self.api().ask("DELETE", f"/api/v1/nodes/{name}")

    @contextlib.contextmanager
    def having(self, *objects: Any) -> Iterator[None]:
        """Objects without a namespace, gone afterwards."""
        text = "\n---\n".join(json.dumps(each) for each in objects)
        self.kubectl("apply", "--filename=-", input=text)
        try:
            yield
        finally:
            self.kubectl("delete", "--wait=false", "--ignore-not-found", "--filename=-", input=text)

    def _ready_nodes(self) -> set[str]:
        return {node["metadata"]["name"] for node in self.api().must("GET", "/api/v1/nodes")["items"] if is_ready(node)}


def is_ready(node: Any) -> bool:
    """Ready, and rid of the taint that admission gives each new node and the controller-manager takes away."""
    conditions = node["status"].get("conditions", [])
    taints = node["spec"].get("taints", [])
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    return ready and all(taint["key"] != manifests.NOT_READY for taint in taints)


def _deletes_pods(api: Api, namespace: str) -> bool:
    """Delete all pods. False if the server gave up before the last one, as it does with thousands of them."""
    try:
        found = api.ask("DELETE", f"/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0", seconds=ALL_PODS)
    except OSError:
        return False
    return found.status < 300 or found.status == HTTPStatus.NOT_FOUND
