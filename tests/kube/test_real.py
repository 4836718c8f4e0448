"""The client against a real kube-apiserver: what only that can do; the rest is in `test_anywhere.py`."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stowplan.kube import credentials
from stowplan.kube.credentials import Access
from stowplan.kube.resources import PODS, RESOURCES
from tests.controlplane.plane import ControlPlane
from tests.kube.certificates import Authority
from tests.kube.fakes import until
from tests.kube.gate import Gate
from tests.kube.live import RecordingSink, as_admin, connected, delete_pod, make_pod, reflecting
from tests.kube.test_credentials import a_plugin, exec_user
from tests.kube.test_kubeconfig import written

pytestmark = pytest.mark.controlplane


def counted(thing: Any, method: str) -> list[Any]:
    """Each call of the method from now on."""
    original, calls = getattr(thing, method), list[Any]()

    def noted(*arguments: Any) -> Any:
        calls.append(arguments)
        return original(*arguments)

    setattr(thing, method, noted)
    return calls


# -- reading


async def test_after_compaction_nothing_is_lost_or_repeated(plane: ControlPlane, namespace: str) -> None:
    same, gone, back, changed = (make_pod(plane, namespace, name) for name in ("same", "gone", "back", "changed"))
    sink = RecordingSink(namespace)
    async with (
        Gate(plane.server) as gate,
        connected(as_admin(plane, gate.url)) as client,
        reflecting(client, PODS, sink, page_size=2) as reflector,
    ):
        compared = counted(reflector.cache, "remove_missing")
        before = list(sink.changes)
        gate.shut()
        delete_pod(plane, gone)
        delete_pod(plane, back)
        make_pod(plane, namespace, "back")
        plane.kubectl("label", "pod", "changed", "a=b", "--namespace", namespace)
        make_pod(plane, namespace, "new")
        plane.compact_etcd()
        await asyncio.to_thread(plane.restart_apiserver)
        gate.open()
        await until(lambda: sink.names == ["back", "changed", "new", "same"])
        await until(lambda: sink.there[changed.uid].labels == {"a": "b"})
        assert sorted(sink.changes[len(before) :]) == ["+back", "+changed", "+new", "-back", "-gone"]
        assert len(compared) == 1, "there was a second list"
        assert same.uid in sink.there
        make_pod(plane, namespace, "after")
        await until(lambda: "after" in sink.names)


async def test_a_server_that_is_killed_and_comes_back_is_followed_on(plane: ControlPlane, namespace: str) -> None:
    sink = RecordingSink(namespace)
    async with connected(as_admin(plane)) as client, reflecting(client, PODS, sink):
        for turn in range(2):
            make_pod(plane, namespace, f"before-{turn}")
            await asyncio.to_thread(plane.restart_apiserver)
            make_pod(plane, namespace, f"after-{turn}")
            await until(partial(sink.has, f"after-{turn}"))
        assert sink.changes == ["+before-0", "+after-0", "+before-1", "+after-1"]


async def test_the_served_version_of_pod_groups_is_found(plane: ControlPlane) -> None:
    async with connected(as_admin(plane)) as client:
        found = await client.served(RESOURCES["PodGroup"])
        assert found is not None
        assert found.versions == ("v1alpha2",)


# -- being let in


def a_kubeconfig(folder: Path, plane: ControlPlane, **user: Any) -> str:
    file = written(
        folder / "config",
        current_context="plane",
        contexts={"plane": {"cluster": "plane", "user": "me"}},
        clusters={"plane": {"server": plane.server, "certificate-authority": str(plane.ca)}},
        users={"me": user},
    )
    return str(file)


async def can_list_nodes(access: Access) -> bool:
    async with connected(access) as client:
        return (await client.transport.request("GET", "/api/v1/nodes")).ok


async def test_an_exec_plugin_is_run_again_when_its_token_no_longer_works(plane: ControlPlane, tmp_path: Path) -> None:
    tokens = json.dumps(["no longer good", plane.tokens["admin"]])
    a_plugin(
        tmp_path,
        f"count = len(list(here.glob('ran-*')))\n(here / f'ran-{{count}}').touch()\n"
        f"status = {{'token': {tokens}[count]}}\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'status': status}))",
    )
    access = credentials.load(a_kubeconfig(tmp_path, plane, **exec_user()))
    assert await can_list_nodes(access)
    assert len(list(tmp_path.glob("ran-*"))) == 2


async def test_a_client_certificate_lets_us_in(plane: ControlPlane, authority: Authority, tmp_path: Path) -> None:
    for group, welcome in (("system:masters", True), ("nobodies", False)):
        file, key = authority.issue(f"one-of-{group}", group=group)
        user = {"client-certificate": str(file), "client-key": str(key)}
        assert await can_list_nodes(credentials.load(a_kubeconfig(tmp_path, plane, **user))) == welcome


async def test_a_service_accounts_token_may_be_renewed_under_us(
    plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    plane.kubectl("create", "serviceaccount", "runner", "--namespace", namespace)
    plane.kubectl(
        "create",
        "clusterrolebinding",
        namespace,
        "--clusterrole=system:kube-scheduler",
        f"--serviceaccount={namespace}:runner",
    )
    (tmp_path / "token").write_text("no longer good")
    (tmp_path / "ca.crt").write_bytes(plane.certificate.read_bytes())
    (tmp_path / "namespace").write_text(namespace)
    host, _, port = plane.server.removeprefix("https://").rpartition(":")
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    access = credentials.load(environ=environ, service_account=tmp_path)
    async with connected(access) as client:
        pods = PODS.collection(access.namespace)
        assert (await client.transport.request("GET", pods)).status == 401
        token = plane.kubectl("create", "token", "runner", "--namespace", namespace)
        (tmp_path / "token").write_text(token)
        assert (await client.transport.request("GET", pods)).status == 200
