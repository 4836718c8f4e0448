"""The client against the embedded cluster and against a real kube-apiserver, with the same results."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from stowplan.kube.client import Client
from stowplan.kube.events import EventRecorder
from stowplan.kube.lease import Elector
from stowplan.kube.reflector import Reflector
from stowplan.kube.resources import PODS, ApiResource
from stowplan.kube.writer import Writer
from stowplan.objects.actions import Bind, Evict, Nominate, Patch, PodRef, Read, Record, SetCondition
from stowplan.objects.pods import Pod
from tests.controlplane.cluster import Cluster
from tests.kube.fakes import until
from tests.kube.live import RecordingSink, as_admin, connected, delete_pod, make_pod, pod_now, reflecting

NODE = "somewhere"


@pytest.fixture
def node(cluster: Cluster) -> Iterator[str]:
    cluster.api().must("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})
    yield NODE
    cluster.api().must("DELETE", f"/api/v1/nodes/{NODE}")


async def test_pods_are_listed_in_pages_and_watched(cluster: Cluster, namespace: str) -> None:
    refs = [make_pod(cluster, namespace, f"p{number}") for number in range(8)]
    sink = RecordingSink(namespace)
    async with connected(as_admin(cluster)) as client:
        pages = [page async for page in client.list_pages(PODS, namespace=namespace, limit=3)]
        assert [len(page.items or ()) for page in pages] == [3, 3, 2]
        async with reflecting(client, PODS, sink, page_size=3):
            assert sink.changes == [f"+p{number}" for number in range(8)]
            delete_pod(cluster, refs[3])
            make_pod(cluster, namespace, "later")
            status = {"status": {"phase": "Succeeded"}}
            cluster.api().must(
                "PUT", f"/api/v1/namespaces/{namespace}/pods/p4/status", pod_now(cluster, refs[4]) | status
            )
            await until(lambda: "-p4" in sink.changes)
            # A deletion is two events, even without grace; and a pod that has ended is as good as gone.
            assert sink.changes[8:] == ["+p3", "-p3", "+later", "-p4"]


async def test_a_kind_that_appears_later(cluster: Cluster) -> None:
    resource = ApiResource("Berth", "berths", "stowplan.test", versions=(), namespaced=False)
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
    sink = RecordingSink("")
    async with (
        connected(as_admin(cluster)) as client,
        reflecting(client, resource, sink, recheck_after=0.1) as reflector,
    ):
        assert not reflector.served
        cluster.api().must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        await until(lambda: reflector.served)
        berth = {"apiVersion": "stowplan.test/v2", "kind": "Berth", "metadata": {"name": "a"}}
        cluster.api().must("POST", "/apis/stowplan.test/v2/berths", berth)
        await until(lambda: sink.names == ["a"])
        crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/berths.stowplan.test"
        cluster.api().must("DELETE", crd)
        await until(lambda: not sink.names and not reflector.served)


# -- writing


class Recorded:
    def record(self, event: Record) -> None:
        raise AssertionError


@asynccontextmanager
async def writing(cluster: Cluster, namespace: str) -> AsyncIterator[tuple[Writer, Reflector, RecordingSink]]:
    sink = RecordingSink(namespace)
    async with connected(as_admin(cluster)) as client, reflecting(client, PODS, sink) as pods:
        writer = Writer(client, learn=pods.learn, recorder=Recorded(), pod=pods.cache.objects.get)
        yield writer, pods, sink


async def test_a_pod_is_bound_once_and_only_that_very_pod(cluster: Cluster, namespace: str, node: str) -> None:
    ref = make_pod(cluster, namespace, "p")
    async with writing(cluster, namespace) as (writer, _, sink):
        other = PodRef(namespace, "p", "00000000-0000-0000-0000-000000000000")
        nobody = PodRef(namespace, "nobody", ref.uid)
        refused = await writer.perform(Bind(id=1, pod=other, node_name=node))
        assert (refused.status, "uid" in refused.message.lower()) == (409, True)
        assert (await writer.perform(Bind(id=2, pod=nobody, node_name=node))).status == 404
        bound = await writer.perform(Bind(id=3, pod=ref, node_name=node))
        assert (bound.id, bound.status) == (3, 201)
        again = await writer.perform(Bind(id=4, pod=ref, node_name="elsewhere"))
        assert (again.status, "already assigned" in again.message) == (409, True)
        await until(lambda: isinstance(pod := sink.there[ref.uid], Pod) and pod.node_name == node)


async def test_conditions_and_nominations(cluster: Cluster, namespace: str, node: str) -> None:
    ref = make_pod(cluster, namespace, "p")
    async with writing(cluster, namespace) as (writer, pods, _):
        key = f"{namespace}/p"
        first = SetCondition(pod=ref, status="False", reason="Unschedulable", message="0/1", nominated_node=node)
        assert (await writer.perform(first)).succeeded
        status = pod_now(cluster, ref)["status"]
        (condition,) = [each for each in status["conditions"] if each["type"] == "PodScheduled"]
        assert (condition["reason"], condition["message"], condition["observedGeneration"]) == (
            "Unschedulable",
            "0/1",
            1,
        )
        assert status["nominatedNodeName"] == node
        since = datetime.fromisoformat(condition["lastTransitionTime"])
        assert abs((datetime.now(UTC) - since).total_seconds()) < 60
        await until(lambda: pods.cache.objects[key].condition("PodScheduled") is not None)  # type: ignore[attr-defined]
        second = SetCondition(pod=ref, status="False", reason="Unschedulable", message="0/2", nominated_node="")
        writer._now = lambda: datetime(2001, 1, 1, tzinfo=UTC)
        assert (await writer.perform(second)).succeeded
        status = pod_now(cluster, ref)["status"]
        (after,) = [each for each in status["conditions"] if each["type"] == "PodScheduled"]
        assert (after["message"], after["lastTransitionTime"]) == ("0/2", condition["lastTransitionTime"])
        assert "nominatedNodeName" not in status
        assert (await writer.perform(Nominate(pod=ref, node_name="other"))).succeeded
        assert pod_now(cluster, ref)["status"]["nominatedNodeName"] == "other"
        stale = PodRef(namespace, "p", "00000000-0000-0000-0000-000000000000")
        refused = await writer.perform(Nominate(pod=stale, node_name="x"))
        assert (refused.status, "metadata.uid" in refused.message) == (422, True)


async def test_an_eviction_sets_a_condition_and_deletes(cluster: Cluster, namespace: str, node: str) -> None:
    ref = make_pod(cluster, namespace, "p", nodeName=node)
    other = PodRef(namespace, "p", "00000000-0000-0000-0000-000000000000")
    async with writing(cluster, namespace) as (writer, pods, _):
        assert (await writer.perform(Evict(pod=other, reason="r", message="m"))).status == 422
        evict = Evict(pod=ref, reason="PreemptionByScheduler", message="for a better one")
        assert (await writer.perform(evict)).succeeded
        await until(lambda: pods.cache.objects[f"{namespace}/p"].terminating)
        found = pod_now(cluster, ref)
        (condition,) = [each for each in found["status"]["conditions"] if each["type"] == "DisruptionTarget"]
        assert (condition["status"], condition["reason"]) == ("True", "PreemptionByScheduler")
        delete_pod(cluster, ref)
        assert (await writer.perform(evict)).status == 404


async def test_a_patch_for_an_older_version_is_refused(cluster: Cluster, namespace: str, node: str) -> None:
    found = cluster.api().must("GET", f"/api/v1/nodes/{node}")["metadata"]
    labels = {"resourceVersion": found["resourceVersion"], "labels": {"a": "b"}}
    async with writing(cluster, namespace) as (writer, _, _):
        patch = Patch(kind="Node", key=node, body={"metadata": labels})
        assert (await writer.perform(patch)).succeeded
        assert (await writer.perform(patch)).status == 409
        status = Patch(kind="Node", key=node, body={"status": {"phase": "Running"}})
        assert (await writer.perform(status)).succeeded
        assert cluster.api().must("GET", f"/api/v1/nodes/{node}")["status"]["phase"] == "Running"


async def test_a_pod_is_read_again(cluster: Cluster, namespace: str) -> None:
    ref = make_pod(cluster, namespace, "p")
    async with writing(cluster, namespace) as (writer, _, sink):
        assert (await writer.perform(Read(pod=ref))).succeeded
        delete_pod(cluster, ref)
        assert (await writer.perform(Read(pod=ref))).status == 404
        assert sink.names == []
        make_pod(cluster, namespace, "p")
        await until(lambda: sink.names == ["p"])
        assert (sink.changes[0], sink.changes[-2:], sink.changes.count("-p")) == ("+p", ["-p", "+p"], 1)


async def test_events_and_their_series(cluster: Cluster, namespace: str) -> None:
    ref = make_pod(cluster, namespace, "p")
    problems = list[str]()
    async with connected(as_admin(cluster)) as client:
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
        recorder.record(
            Record(
                pod=ref,
                type="Normal",
                reason="Scheduled",
                action="Binding",
                note="Successfully assigned",
                reporting_controller="stowplan",
            )
        )
        async with asyncio.timeout(60):
            await recorder.drain()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert problems == []
    events = cluster.api().must("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    found = {event["reason"]: event for event in events}
    assert len(events) == 2
    assert (found["FailedScheduling"]["note"], found["FailedScheduling"]["series"]["count"]) == (
        "0/0 nodes are available",
        4,
    )
    assert found["Scheduled"]["regarding"]["uid"] == ref.uid
    shown = cluster.kubectl("describe", "pod", "p", "--namespace", namespace)
    assert "0/0 nodes are available" in shown
    assert "Successfully assigned" in shown


async def test_two_electors_share_one_lease(cluster: Cluster, namespace: str) -> None:
    def an_elector(client: Client, identity: str) -> Elector:
        return Elector(
            client,
            namespace=namespace,
            name="stowplan",
            identity=identity,
            lease_duration=4.0,  # a busy machine may delay the test
            renew_deadline=3.5,
            retry_period=0.1,
        )

    async def lead(elector: Elector) -> None:
        await elector.acquire()
        await elector.renew()

    async with connected(as_admin(cluster)) as client:
        electors = [an_elector(client, name) for name in ("a", "b")]
        tasks = {elector.identity: asyncio.create_task(lead(elector)) for elector in electors}
        await until(lambda: any(elector.leading for elector in electors))
        deadline = time.monotonic() + 5  # longer than the lease: it is renewed
        while time.monotonic() < deadline:
            assert sum(elector.leading for elector in electors) == 1
            await asyncio.sleep(0.01)
        first, second = sorted(electors, key=lambda elector: not elector.leading)
        tasks[first.identity].cancel()  # it dies without a word
        while not second.leading:
            assert sum(elector.leading for elector in electors) <= 1
            await asyncio.sleep(0.01)
        spec = cluster.api().must("GET", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/stowplan")["spec"]
        assert (spec["holderIdentity"], spec["leaseTransitions"]) == (second.identity, 1)
        tasks[second.identity].cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        await second.release()
        third = an_elector(client, "c")
        assert await third._try_acquire_or_renew(), "a released lease is free at once"
