"""The client against a real kube-apiserver."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from stowplan.kube import credentials
from stowplan.kube.client import Client
from stowplan.kube.credentials import Access
from stowplan.kube.events import EventRecorder
from stowplan.kube.kubeconfig import Chosen, Cluster, User
from stowplan.kube.lease import Elector
from stowplan.kube.reflector import Reflector
from stowplan.kube.resources import PODS, RESOURCES, Resource
from stowplan.kube.transport import Transport
from stowplan.kube.writer import Writer
from stowplan.objects.actions import Bind, Evict, Nominate, Patch, PodRef, Read, Record, SetCondition
from stowplan.objects.changes import Change, Put
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from tests.controlplane.plane import ControlPlane
from tests.kube.certificates import Authority
from tests.kube.fakes import until
from tests.kube.gate import Gate
from tests.kube.test_credentials import a_plugin, exec_user
from tests.kube.test_kubeconfig import written

pytestmark = pytest.mark.controlplane
NODE = "somewhere"


@asynccontextmanager
async def connected(access: Access) -> AsyncIterator[Client]:
    client = Client(Transport(access, generator=random.Random(1)))
    try:
        yield client
    finally:
        await client.close()


def as_admin(plane: ControlPlane, server: str = "") -> Access:
    cluster = Cluster(server=server or plane.server, certificate_authority=str(plane.ca))
    return Access(Chosen("", cluster, User(token=plane.tokens["admin"]), "default"), environ={})


def make_pod(plane: ControlPlane, namespace: str, name: str, **more: Any) -> PodRef:
    spec = {"containers": [{"name": "c", "image": "i"}], "schedulerName": "nobody", **more}
    made = plane.api().must("POST", f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": name}, "spec": spec})
    return PodRef(namespace, name, made["metadata"]["uid"])


def pod_now(plane: ControlPlane, ref: PodRef) -> Any:
    return plane.api().must("GET", f"/api/v1/namespaces/{ref.namespace}/pods/{ref.name}")


def delete_pod(plane: ControlPlane, ref: PodRef) -> None:
    plane.api().must("DELETE", f"/api/v1/namespaces/{ref.namespace}/pods/{ref.name}?gracePeriodSeconds=0")


@pytest.fixture
def node(plane: ControlPlane) -> Iterator[str]:
    plane.api().must("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})
    yield NODE
    plane.api().must("DELETE", f"/api/v1/nodes/{NODE}")


class Told:
    """Pods of one namespace as a sink was told of them; one change told twice is an error."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self.there: dict[str, Object] = {}
        self.changes: list[str] = []

    def __call__(self, changes: list[Change]) -> None:
        for change in changes:
            found = change.object
            if found.namespace != self._namespace:
                continue
            if isinstance(change, Put):
                known = self.there.get(found.uid)
                assert known is None or known.metadata.resource_version != found.metadata.resource_version
                self.there[found.uid] = found
            else:
                assert self.there.pop(found.uid, None) is not None
            self.changes.append(f"{'+' if isinstance(change, Put) else '-'}{found.name}")

    @property
    def names(self) -> list[str]:
        return sorted(found.name for found in self.there.values())


@asynccontextmanager
async def reflecting(client: Client, resource: Resource, sink: Any, **options: Any) -> AsyncIterator[Reflector]:
    reflector = Reflector(client, resource, sink, **options)
    task = asyncio.create_task(reflector.run())
    async with asyncio.timeout(30):
        await reflector.synced.wait()
    yield reflector
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def counted(thing: Any, method: str) -> list[Any]:
    """Each call of the method from now on."""
    original, calls = getattr(thing, method), list[Any]()
    setattr(thing, method, lambda *arguments: calls.append(arguments) or original(*arguments))
    return calls


# -- reading


async def test_pods_are_listed_in_pages_and_watched(plane: ControlPlane, namespace: str) -> None:
    refs = [make_pod(plane, namespace, f"p{number}") for number in range(8)]
    told = Told(namespace)
    async with connected(as_admin(plane)) as client:
        pages = [page async for page in client.list_pages(PODS, namespace=namespace, limit=3)]
        assert [len(page.items or ()) for page in pages] == [3, 3, 2]
        async with reflecting(client, PODS, told, page_size=3):
            assert told.changes == [f"+p{number}" for number in range(8)]
            delete_pod(plane, refs[3])
            make_pod(plane, namespace, "later")
            status = {"status": {"phase": "Succeeded"}}
            plane.api().must("PUT", f"/api/v1/namespaces/{namespace}/pods/p4/status", pod_now(plane, refs[4]) | status)
            await until(lambda: "-p4" in told.changes)
            # A deletion is two events, even without grace; and a pod that has ended is as good as gone.
            assert told.changes[8:] == ["+p3", "-p3", "+later", "-p4"]


async def test_after_compaction_nothing_is_lost_or_repeated(plane: ControlPlane, namespace: str) -> None:
    same, gone, back, changed = (make_pod(plane, namespace, name) for name in ("same", "gone", "back", "changed"))
    told = Told(namespace)
    async with (
        Gate(plane.server) as gate,
        connected(as_admin(plane, gate.url)) as client,
        reflecting(client, PODS, told, page_size=2) as reflector,
    ):
        compared = counted(reflector.known, "vanished")
        before = list(told.changes)
        gate.shut()
        delete_pod(plane, gone)
        delete_pod(plane, back)
        make_pod(plane, namespace, "back")
        plane.kubectl("label", "pod", "changed", "a=b", "--namespace", namespace)
        make_pod(plane, namespace, "new")
        plane.compact_etcd()
        await asyncio.to_thread(plane.restart_apiserver)
        gate.open()
        await until(lambda: told.names == ["back", "changed", "new", "same"], 40)
        await until(lambda: told.there[changed.uid].labels == {"a": "b"})
        assert sorted(told.changes[len(before) :]) == ["+back", "+changed", "+new", "-back", "-gone"]
        assert len(compared) == 1, "there was a second list"
        assert same.uid in told.there
        make_pod(plane, namespace, "after")
        await until(lambda: "after" in told.names)


async def test_a_server_that_is_killed_and_comes_back_is_followed_on(plane: ControlPlane, namespace: str) -> None:
    told = Told(namespace)
    async with connected(as_admin(plane)) as client, reflecting(client, PODS, told):
        for turn in range(2):
            make_pod(plane, namespace, f"before-{turn}")
            await asyncio.to_thread(plane.restart_apiserver)
            make_pod(plane, namespace, f"after-{turn}")
            await until(lambda turn=turn: f"after-{turn}" in told.names, 40)
        assert told.changes == ["+before-0", "+after-0", "+before-1", "+after-1"]


async def test_a_kind_that_appears_later(plane: ControlPlane) -> None:
    resource = Resource("Berth", "berths", "stowplan.test", versions=(), namespaced=False)
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "berths.stowplan.test"},
        "spec": {
            "group": "stowplan.test",
            "scope": "Cluster",
            "names": {"kind": "Berth", "plural": "berths"},
            "versions": [
                {"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    told = Told("")
    async with (
        connected(as_admin(plane)) as client,
        reflecting(client, resource, told, look_again_after=0.1) as reflector,
    ):
        assert not reflector.served
        plane.api().must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        await until(lambda: reflector.served)
        berth = {"apiVersion": "stowplan.test/v2", "kind": "Berth", "metadata": {"name": "a"}}
        plane.api().must("POST", "/apis/stowplan.test/v2/berths", berth)
        await until(lambda: told.names == ["a"])
        crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/berths.stowplan.test"
        plane.api().must("DELETE", crd)
        await until(lambda: not told.names and not reflector.served, 40)


async def test_the_served_version_of_pod_groups_is_found(plane: ControlPlane) -> None:
    async with connected(as_admin(plane)) as client:
        found = await client.served(RESOURCES["PodGroup"])
        assert found is not None
        assert found.versions == ("v1alpha2",)


# -- writing


class Recorded:
    def record(self, event: Record) -> None:
        raise AssertionError


@asynccontextmanager
async def writing(plane: ControlPlane, namespace: str) -> AsyncIterator[tuple[Writer, Reflector, Told]]:
    told = Told(namespace)
    async with connected(as_admin(plane)) as client, reflecting(client, PODS, told) as pods:
        writer = Writer(client, learn=pods.learn, recorder=Recorded(), pod=pods.known.objects.get)
        yield writer, pods, told


async def test_a_pod_is_bound_once_and_only_that_very_pod(plane: ControlPlane, namespace: str, node: str) -> None:
    ref = make_pod(plane, namespace, "p")
    async with writing(plane, namespace) as (writer, _, told):
        other = PodRef(namespace, "p", "00000000-0000-0000-0000-000000000000")
        nobody = PodRef(namespace, "nobody", ref.uid)
        refused = await writer.perform(Bind(id=1, pod=other, node_name=node))
        assert (refused.status, "uid" in refused.message.lower()) == (409, True)
        assert (await writer.perform(Bind(id=2, pod=nobody, node_name=node))).status == 404
        bound = await writer.perform(Bind(id=3, pod=ref, node_name=node))
        assert (bound.id, bound.status) == (3, 201)
        again = await writer.perform(Bind(id=4, pod=ref, node_name="elsewhere"))
        assert (again.status, "already assigned" in again.message) == (409, True)
        await until(lambda: isinstance(pod := told.there[ref.uid], Pod) and pod.node_name == node)


async def test_conditions_and_nominations(plane: ControlPlane, namespace: str, node: str) -> None:
    ref = make_pod(plane, namespace, "p")
    async with writing(plane, namespace) as (writer, pods, _):
        key = f"{namespace}/p"
        first = SetCondition(pod=ref, status="False", reason="Unschedulable", message="0/1", nominated_node=node)
        assert (await writer.perform(first)).fine
        status = pod_now(plane, ref)["status"]
        (condition,) = [each for each in status["conditions"] if each["type"] == "PodScheduled"]
        assert (condition["reason"], condition["message"], condition["observedGeneration"]) == (
            "Unschedulable",
            "0/1",
            1,
        )
        assert status["nominatedNodeName"] == node
        since = datetime.fromisoformat(condition["lastTransitionTime"])
        assert abs((datetime.now(UTC) - since).total_seconds()) < 60
        await until(lambda: pods.known.objects[key].condition("PodScheduled") is not None)  # type: ignore[attr-defined]
        second = SetCondition(pod=ref, status="False", reason="Unschedulable", message="0/2", nominated_node="")
        writer._now = lambda: datetime(2001, 1, 1, tzinfo=UTC)
        assert (await writer.perform(second)).fine
        status = pod_now(plane, ref)["status"]
        (after,) = [each for each in status["conditions"] if each["type"] == "PodScheduled"]
        assert (after["message"], after["lastTransitionTime"]) == ("0/2", condition["lastTransitionTime"])
        assert "nominatedNodeName" not in status
        assert (await writer.perform(Nominate(pod=ref, node_name="other"))).fine
        assert pod_now(plane, ref)["status"]["nominatedNodeName"] == "other"
        stale = PodRef(namespace, "p", "00000000-0000-0000-0000-000000000000")
        refused = await writer.perform(Nominate(pod=stale, node_name="x"))
        assert (refused.status, "metadata.uid" in refused.message) == (422, True)


async def test_an_eviction_says_why_and_deletes(plane: ControlPlane, namespace: str, node: str) -> None:
    ref = make_pod(plane, namespace, "p", nodeName=node)
    other = PodRef(namespace, "p", "00000000-0000-0000-0000-000000000000")
    async with writing(plane, namespace) as (writer, pods, _):
        assert (await writer.perform(Evict(pod=other, reason="r", message="m"))).status == 422
        evict = Evict(pod=ref, reason="PreemptionByScheduler", message="for a better one")
        assert (await writer.perform(evict)).fine
        await until(lambda: pods.known.objects[f"{namespace}/p"].terminating)
        found = pod_now(plane, ref)
        (condition,) = [each for each in found["status"]["conditions"] if each["type"] == "DisruptionTarget"]
        assert (condition["status"], condition["reason"]) == ("True", "PreemptionByScheduler")
        delete_pod(plane, ref)
        assert (await writer.perform(evict)).status == 404


async def test_a_patch_for_an_older_version_is_refused(plane: ControlPlane, namespace: str, node: str) -> None:
    found = plane.api().must("GET", f"/api/v1/nodes/{node}")["metadata"]
    labels = {"resourceVersion": found["resourceVersion"], "labels": {"a": "b"}}
    async with writing(plane, namespace) as (writer, _, _):
        patch = Patch(kind="Node", key=node, body={"metadata": labels})
        assert (await writer.perform(patch)).fine
        assert (await writer.perform(patch)).status == 409
        status = Patch(kind="Node", key=node, body={"status": {"phase": "Running"}})
        assert (await writer.perform(status)).fine
        assert plane.api().must("GET", f"/api/v1/nodes/{node}")["status"]["phase"] == "Running"


async def test_a_pod_is_read_again(plane: ControlPlane, namespace: str) -> None:
    ref = make_pod(plane, namespace, "p")
    async with writing(plane, namespace) as (writer, _, told):
        assert (await writer.perform(Read(pod=ref))).fine
        delete_pod(plane, ref)
        assert (await writer.perform(Read(pod=ref))).status == 404
        assert told.names == []
        make_pod(plane, namespace, "p")
        await until(lambda: told.names == ["p"])
        assert (told.changes[0], told.changes[-2:], told.changes.count("-p")) == ("+p", ["-p", "+p"], 1)


async def test_events_and_their_series(plane: ControlPlane, namespace: str) -> None:
    ref = make_pod(plane, namespace, "p")
    problems = list[str]()
    async with connected(as_admin(plane)) as client:
        recorder = EventRecorder(client, host="here", on_problem=problems.append)
        task = asyncio.create_task(recorder.run())
        for turn in range(4):
            recorder.record(
                Record(
                    pod=ref,
                    type="Warning",
                    reason="FailedScheduling",
                    action="Scheduling",
                    note=f"0/{turn} nodes are available",
                    reporting_controller="stowplan",
                )
            )
        scheduled = {"type": "Normal", "reason": "Scheduled", "action": "Binding", "note": "Successfully assigned"}
        recorder.record(Record(pod=ref, reporting_controller="stowplan", **scheduled))
        async with asyncio.timeout(30):
            await recorder.drain()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert problems == []
    events = plane.api().must("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    found = {event["reason"]: event for event in events}
    assert len(events) == 2
    assert (found["FailedScheduling"]["note"], found["FailedScheduling"]["series"]["count"]) == (
        "0/0 nodes are available",
        4,
    )
    assert found["Scheduled"]["regarding"]["uid"] == ref.uid
    shown = plane.kubectl("describe", "pod", "p", "--namespace", namespace)
    assert "0/0 nodes are available" in shown
    assert "Successfully assigned" in shown


async def test_two_electors_share_one_lease(plane: ControlPlane, namespace: str) -> None:
    def an_elector(client: Client, identity: str) -> Elector:
        times = {"lease_duration": 1.0, "renew_deadline": 0.8, "retry_period": 0.1}
        return Elector(client, namespace=namespace, name="stowplan", identity=identity, **times)

    async def lead(elector: Elector) -> None:
        await elector.acquire()
        await elector.renew()

    async with connected(as_admin(plane)) as client:
        electors = [an_elector(client, name) for name in ("a", "b")]
        tasks = {elector.identity: asyncio.create_task(lead(elector)) for elector in electors}
        await until(lambda: any(elector.leading for elector in electors))
        deadline = time.monotonic() + 1.5
        while time.monotonic() < deadline:
            assert sum(elector.leading for elector in electors) == 1
            await asyncio.sleep(0.01)
        first, second = sorted(electors, key=lambda elector: not elector.leading)
        tasks[first.identity].cancel()  # it dies without a word
        while not second.leading:
            assert sum(elector.leading for elector in electors) <= 1
            await asyncio.sleep(0.01)
        spec = plane.api().must("GET", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/stowplan")["spec"]
        assert (spec["holderIdentity"], spec["leaseTransitions"]) == (second.identity, 1)
        tasks[second.identity].cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        await second.release()
        third = an_elector(client, "c")
        assert await third._try(), "a released lease is free at once"


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
        return (await client.transport.request("GET", "/api/v1/nodes")).fine


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
    (tmp_path / "ca.crt").write_bytes(plane.ca.read_bytes())
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
