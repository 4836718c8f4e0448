"""VolumeBinding on the way to a node: what it takes, gives back, writes and waits for.

Texts and order were taken from kube-scheduler 1.36.4's own behaviour (AssumePodVolumes, BindPodVolumes, checkBindings).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework.decision import NotYet, RejectPod
from stowplan.objects.changes import Gone, Put
from stowplan.objects.meta import Object
from stowplan.objects.storage import PersistentVolume, PersistentVolumeClaim
from stowplan.plugins.nodes.default.volume_binding import NO_VOLUME, VolumeBinding
from stowplan.testing.builders import a_state
from stowplan.testing.patching import versioned, with_patch
from tests.engine.binding.storage import a_claim, a_host, a_user, a_volume, named

CLASSES = [
    named("StorageClass", name, provisioner=provisioner, volumeBindingMode="WaitForFirstConsumer")
    for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("made", "csi.example.com"))
]
SELECTED = "volume.kubernetes.io/selected-node"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
COMPLETED = "pv.kubernetes.io/bind-completed"
MEANT = {"namespace": "default", "name": "data", "uid": "uid-of-data"}
WRITTEN = {
    "kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": "default", "name": "data", "uid": "uid-of-data",
    "resourceVersion": "7",
}  # fmt: skip
NO_CLAIM = 'persistentvolumeclaims "default/data" not found'
POD = a_user("web", "data")


def a_cluster(*objects: Object) -> ClusterState:
    others = [*CLASSES, *(versioned(each, 7) for each in objects)]
    return a_state(nodes=[a_host("a"), a_host("b")], others=others)


def seen(state: ClusterState) -> dict[str, Object]:
    return {
        key: each for kind in (PersistentVolume, PersistentVolumeClaim) for key, each in state.store.every(kind).items()
    }


def written(state: ClusterState, pod: Any = POD, plugin: VolumeBinding | None = None) -> list[Any]:
    """What is to be patched, noted as sent."""
    found = list((plugin or VolumeBinding()).pre_bind(pod, "a", Cluster(state)))
    for each in found:
        state.assumed.mark_written(each.kind, each.key, pod.uid)
    return [(each.key, each.body) for each in found]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([], [], id="no claim, nothing to write"),
        pytest.param(
            [a_claim(), a_volume("disk", "a")],
            [("disk", {"metadata": {"resourceVersion": "7", "annotations": {BY_CONTROLLER: "yes"}},
                       "spec": {"claimRef": WRITTEN}})],
            id="a free volume is given to the claim, and says that a controller did it",
        ),
        pytest.param(
            [a_claim(), a_volume("disk", "a", claimRef={**MEANT, "uid": ""})],
            [("disk", {"metadata": {"resourceVersion": "7"}, "spec": {"claimRef": WRITTEN}})],
            id="a volume that its owner meant for the claim gets the uid only",
        ),
        pytest.param([a_claim(), a_volume("disk", "a", claimRef=MEANT)], [], id="a volume that names it already"),
        pytest.param(
            [a_claim("data", "made")],
            [("default/data", {"metadata": {"resourceVersion": "7", "annotations": {SELECTED: "a"}}})],
            id="a claim is sent to the node",
        ),
        pytest.param([a_claim("data", "made", **{SELECTED: "a"})], [], id="a claim that was sent there already"),
        pytest.param(
            [a_claim("data", "made"), a_volume("small", "a", storageClassName="made"),
             a_volume("large", "a", storageClassName="made", capacity={"storage": "9Gi"})],
            [("small", {"metadata": {"resourceVersion": "7", "annotations": {BY_CONTROLLER: "yes"}},
                        "spec": {"claimRef": WRITTEN}})],
            id="the smallest volume that exists goes before making one",
        ),
    ],
)  # fmt: skip
def test_reserve_and_pre_bind(objects: Sequence[Object], expected: list[Any]) -> None:
    state, plugin = a_cluster(*objects), VolumeBinding()
    pod = POD if objects else a_user("web")
    before = seen(state)
    assert plugin.reserve(pod, "a", Cluster(state)) is None
    assert written(state, pod, plugin) == expected
    assert (seen(state) != before) == bool(expected)
    assert written(state, pod, plugin) == [], "once is enough"
    plugin.unreserve(pod, "a", Cluster(state))
    assert seen(state) == before and not state.assumed.holders()
    plugin.unreserve(pod, "a", Cluster(state))


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([a_claim(), a_volume("disk", "b")], NO_VOLUME, id="out of reach by now"),
        pytest.param(
            [],
            'error getting PVC "default/data": persistentvolumeclaims "default/data" not found',
            id="the claim is gone",
        ),
    ],
)
def test_reserve_refuses(objects: Sequence[Object], reason: str) -> None:
    state = a_cluster(*objects)
    assert VolumeBinding().reserve(POD, "a", Cluster(state)) == RejectPod((reason,), resolvable=False)
    assert not state.assumed.holders()


def nothing(state: ClusterState) -> None:
    pass


def a_new_smaller_volume(state: ClusterState) -> None:
    state.apply(Put(a_volume("smaller", "a", capacity={"storage": "2Gi"})))


def the_volume_moves(state: ClusterState) -> None:
    state.apply(Put(a_volume("disk", "b")))


def the_host_has_another_label(state: ClusterState) -> None:
    state.apply(Put(named("Node", "a")))


@pytest.mark.parametrize(
    ("change", "taken"),
    [
        pytest.param(nothing, ["disk"], id="as planned by the filter"),
        pytest.param(a_new_smaller_volume, ["smaller"], id="a volume that suits better came since"),
        pytest.param(the_volume_moves, [], id="the planned volume is out of reach since"),
        pytest.param(the_host_has_another_label, [], id="the node lost the label since"),
    ],
)
def test_reserve_takes_what_is_right_when_it_is_asked(change: Callable[[ClusterState], None], taken: list[str]) -> None:
    state, plugin = a_cluster(a_claim(), a_volume("disk", "a", capacity={"storage": "9Gi"})), VolumeBinding()
    assert not [each for each in plugin.filter(POD, Cluster(state).nodes) if each.rows[0]]
    change(state)
    refused = plugin.reserve(POD, "a", Cluster(state))
    assert [each.name for each in state.assumed.taken_by(POD.uid)] == taken
    assert (refused is None) == bool(taken)


def test_a_plan_for_one_pod_is_not_another_ones() -> None:
    state, plugin = a_cluster(a_claim(), a_claim("other"), a_volume("disk"), a_volume("disk-b", "b")), VolumeBinding()
    list(plugin.filter(POD, Cluster(state).nodes))
    second = a_user("second", "other")
    assert plugin.reserve(second, "a", Cluster(state)) is None
    [held] = state.assumed.taken_by(second.uid)
    assert isinstance(held, PersistentVolume) and held.spec.claim_ref is not None
    assert held.spec.claim_ref.name == "other"


def test_a_volume_that_was_taken_is_gone_for_the_next_pod_until_it_is_given_back() -> None:
    state, plugin = a_cluster(a_claim(), a_claim("other"), a_volume("disk")), VolumeBinding()
    second = a_user("second", "other")
    plugin.reserve(POD, "a", Cluster(state))
    assert isinstance(plugin.reserve(second, "a", Cluster(state)), RejectPod)
    plugin.unreserve(POD, "a", Cluster(state))
    assert plugin.reserve(second, "a", Cluster(state)) is None
    assert [key for key, _ in written(state, second)] == ["disk"]


def test_two_pods_with_one_claim_agree_and_the_second_to_leave_gives_it_back() -> None:
    state, plugin = a_cluster(a_claim("data", "made")), VolumeBinding()
    second, before = a_user("second", "data"), seen(state)
    plugin.reserve(POD, "a", Cluster(state))
    assert isinstance(plugin.reserve(second, "b", Cluster(state)), RejectPod)
    assert plugin.reserve(second, "a", Cluster(state)) is None
    assert len(written(state)) == 1 and not written(state, second)
    plugin.unreserve(POD, "a", Cluster(state))
    assert seen(state) != before and len(written(state, second)) == 1, "the first one's write may never arrive"
    plugin.unreserve(second, "a", Cluster(state))
    assert seen(state) == before


def test_a_what_if_takes_and_is_undone_exactly() -> None:
    state, plugin = a_cluster(a_claim(), a_claim("other", "made"), a_volume("disk")), VolumeBinding()
    before = seen(state)
    with state.trial() as trial:
        plugin.reserve(a_user("web", "data", "other"), "a", Cluster(state))
        mark = trial.savepoint()
        plugin.unreserve(POD, "a", Cluster(state))
        assert seen(state) == before
        trial.undo_to(mark)
        assert seen(state) != before and len(state.assumed.taken_by(POD.uid)) == 2
    assert seen(state) == before and not state.assumed.holders() and not state.assumed._objects


def test_the_servers_word_goes_before_what_was_assumed() -> None:
    state, plugin = a_cluster(a_claim("data", "made")), VolumeBinding()
    plugin.reserve(POD, "a", Cluster(state))
    state.apply(Put(versioned(a_claim("data", "made"), 7)))
    assert state.assumed.unconfirmed(a_claim()), "the same version once more says nothing new"
    newer = versioned(a_claim("data", "made", someone="else"), 8)
    state.apply(Put(newer))
    assert seen(state) == {"default/data": newer} and len(state.assumed.taken_by(POD.uid)) == 1
    plugin.unreserve(POD, "a", Cluster(state))
    assert seen(state) == {"default/data": newer}


def test_what_was_written_for_a_pod_that_is_bound_is_assumed_until_the_server_has_it() -> None:
    state, plugin = a_cluster(a_claim(), a_claim("other"), a_volume("disk")), VolumeBinding()
    plugin.reserve(POD, "a", Cluster(state))
    written(state)
    state.assumed.finish(POD.uid)
    assert isinstance(plugin.reserve(a_user("second", "other"), "a", Cluster(state)), RejectPod)
    assert not state.assumed.holders()
    state.apply(Put(versioned(a_volume("disk"), 8)))
    assert plugin.reserve(a_user("second", "other"), "a", Cluster(state)) is None


# -- waiting

BOUND: dict[str, Any] = {
    "metadata": {"annotations": {COMPLETED: "yes"}}, "spec": {"volumeName": "disk"}, "status": {"phase": "Bound"},
}  # fmt: skip
GIVEN = {"spec": {"claimRef": MEANT}}
SENT = {"metadata": {"annotations": {SELECTED: "a"}}}
ELSEWHERE = 'pv "disk" node affinity doesn\'t match node "a": no matching NodeSelectorTerms'
CLAIM, DISK, NODE = ("PersistentVolumeClaim", "default/data"), ("PersistentVolume", "disk"), ("Node", "a")
STATIC, DYNAMIC = [a_claim(), a_volume("disk", "a")], [a_claim("data", "made")]
MADE = a_volume("disk", "a", storageClassName="made")


def with_(found: Object, *bodies: dict[str, Any]) -> Put:
    for body in bodies:
        found = with_patch(found, body)
    return Put(versioned(found, 8))


@pytest.mark.parametrize(
    ("objects", "changes", "expected"),
    [
        pytest.param(STATIC, [], {DISK, CLAIM, NODE}, id="nothing was heard of the volume since it was written"),
        pytest.param(STATIC, [with_(STATIC[1], GIVEN)], {DISK, CLAIM, NODE}, id="given, the claim not bound yet"),
        pytest.param(STATIC, [with_(STATIC[1], GIVEN), with_(STATIC[0], BOUND)], True, id="given and bound"),
        pytest.param(
            STATIC, [with_(STATIC[1], GIVEN), with_(STATIC[0], {"spec": {"volumeName": "disk"}})], {DISK, CLAIM, NODE},
            id="the claim names its volume, but is not said to be done",
        ),
        pytest.param(STATIC, [with_(STATIC[1])], 'ClaimRef got reset for pv "disk"', id="the volume is free again"),
        pytest.param(STATIC, [with_(a_volume("disk", "b"), GIVEN)], ELSEWHERE, id="the volume is out of reach now"),
        pytest.param(
            STATIC, [Gone(STATIC[1])], 'failed to check binding: persistentvolumes "disk" not found', id="no volume"
        ),
        pytest.param(
            STATIC, [Gone(STATIC[0])], f"failed to check binding: {NO_CLAIM}",
            id="no claim for the volume",
        ),
        pytest.param(DYNAMIC, [], {CLAIM, NODE}, id="nothing was heard of the claim since it was written"),
        pytest.param(DYNAMIC, [with_(DYNAMIC[0], SENT)], {CLAIM, NODE}, id="sent, the volume not made yet"),
        pytest.param(
            DYNAMIC, [with_(DYNAMIC[0], SENT, BOUND)], {CLAIM, NODE, DISK}, id="bound to a volume not heard of yet"
        ),
        pytest.param(DYNAMIC, [with_(DYNAMIC[0], SENT, BOUND), Put(MADE)], True, id="sent, made and bound"),
        pytest.param(
            DYNAMIC, [with_(DYNAMIC[0], SENT, BOUND), Put(a_volume("disk", "b"))], ELSEWHERE, id="made out of reach"
        ),
        pytest.param(
            DYNAMIC, [with_(DYNAMIC[0])], 'selectedNode annotation reset for PVC "data"', id="no annotation is left"
        ),
        pytest.param(
            DYNAMIC, [with_(DYNAMIC[0], {"metadata": {"annotations": {"other": "one"}}})],
            'provisioning failed for PVC "data"', id="the provisioner sent the claim back",
        ),
        pytest.param(
            DYNAMIC, [Gone(DYNAMIC[0])], f"failed to check provisioning pvc: {NO_CLAIM}",
            id="no claim",
        ),
        pytest.param(
            DYNAMIC, [with_(a_claim("data", "made", uid="another"), SENT)],
            f"failed to check provisioning pvc: {NO_CLAIM}",
            id="another claim of that name",
        ),
        pytest.param(
            DYNAMIC, [with_(DYNAMIC[0], SENT, BOUND, {"status": {"phase": "Lost"}})],
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "disk"', id="the volume is lost",
        ),
        pytest.param(
            DYNAMIC, [with_(DYNAMIC[0], SENT), Gone(a_host("a"))], 'failed to get node "a": node "a" not found',
            id="the node is gone",
        ),
    ],
)  # fmt: skip
def test_pre_bound(objects: Sequence[Object], changes: Sequence[Put | Gone], expected: Any) -> None:
    state, plugin = a_cluster(*objects), VolumeBinding()
    plugin.reserve(POD, "a", Cluster(state))
    written(state)
    for each in changes:
        state.apply(each)
    answer = plugin.pre_bound(POD, "a", Cluster(state))
    if isinstance(expected, str):
        assert answer == RejectPod((f"binding volumes: {expected}",))
    else:
        assert answer == (expected if expected is True else NotYet(frozenset(expected)))


def test_pods_without_unbound_claims_wait_for_nothing() -> None:
    bound = with_patch(a_claim(), BOUND)
    state = a_cluster(bound, a_volume("disk", "a", claimRef=MEANT))
    for pod in (POD, a_user("plain")):
        assert VolumeBinding().reserve(pod, "a", Cluster(state)) is None
        assert VolumeBinding().pre_bound(pod, "a", Cluster(state)) is True and not state.assumed.holders()
