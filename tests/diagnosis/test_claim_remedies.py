"""Remedies for claims: another one, a missing one created, its class."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from stowplan.objects import kinds
from stowplan.objects.meta import Object
from stowplan.objects.storage import PersistentVolumeClaim
from stowplan.testing.builders import a_node, a_pod, a_state
from tests.diagnosis.test_remedies import an_object, codes, found, texts


def test_a_missing_claim_is_replaced_by_a_like_one_or_created() -> None:
    wait = an_object(
        "StorageClass", metadata={"name": "fast"}, provisioner="x", volumeBindingMode="WaitForFirstConsumer"
    )
    claim = an_object(
        "PersistentVolumeClaim",
        metadata={"name": "data", "namespace": "default"},
        spec={"storageClassName": "fast", "accessModes": ["ReadWriteOnce"]},
    )
    pod = a_pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "dta"}}])
    diagnosis = found(pod, a_state(nodes=["a"], others=[wait, claim]))
    assert texts(diagnosis, "use-claim") == [("use the claim data instead of dta", "a")]
    assert texts(diagnosis, "create-claim") == [("create the claim default/dta, of class fast", "a")]


def test_another_claim_instead_of_one_that_exists_comes_after_changes_of_the_cluster() -> None:
    """It has other data."""

    def bound(name: str, *, reachable: bool) -> list[Object]:
        terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z9"]}]}]
        affinity = {} if reachable else {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
        claim = {"storageClassName": "", "accessModes": ["ReadWriteOnce"], "volumeName": name}
        volume = {"accessModes": ["ReadWriteOnce"], "claimRef": {"name": name, "namespace": "default"}, **affinity}
        done = {"pv.kubernetes.io/bind-completed": "yes"}
        metadata = {"name": name, "namespace": "default", "annotations": done}
        return [
            an_object("PersistentVolume", metadata={"name": name}, spec=volume, status={"phase": "Bound"}),
            an_object("PersistentVolumeClaim", metadata=metadata, spec=claim, status={"phase": "Bound"}),
        ]

    pod = a_pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    state = a_state(nodes=["a"], others=[*bound("data", reachable=False), *bound("other", reachable=True)])
    codes = [(each.code, each.also) for each in found(pod, state).remedies]
    where = "the new node must have zone=z9, where the pod's volume can be used"
    assert codes == [("add-nodes", (where,)), ("use-claim", ("the pod would find other data",))]


@pytest.mark.parametrize(
    ("known", "text", "ranked_as"),
    [
        pytest.param(
            ["csi.example.com"],
            "create the storage class fast, with the provisioner csi.example.com",
            "create-class",
            id="another class tells the provisioner",
        ),
        pytest.param(
            [],
            "create the storage class fast; put the name of your provisioner in place of"
            " example.com/fill-in-the-provisioner: no class here tells it",
            "create-class to be filled in",
            id="nothing tells the provisioner",
        ),
    ],
)
def test_a_missing_class_is_created_with_a_provisioner_of_the_cluster(
    known: list[str], text: str, ranked_as: str
) -> None:
    classes = [an_object("StorageClass", metadata={"name": "other"}, provisioner=each) for each in known]
    claim = an_object(
        "PersistentVolumeClaim",
        metadata={"name": "data", "namespace": "default"},
        spec={"storageClassName": "fast", "accessModes": ["ReadWriteOnce"]},
    )
    pod = a_pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    diagnosis = found(pod, a_state(nodes=["a"], others=[*classes, claim]))
    (remedy,) = [each for each in diagnosis.remedies if each.code == "create-class"]
    assert (remedy.text, remedy.ranked_as) == (text, ranked_as)


def a_class(name: str, **more: Any) -> Object:
    """A class that waits for a pod."""
    found = {"provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"} | more
    return an_object("StorageClass", metadata={"name": name, "annotations": found.pop("annotations", {})}, **found)


def mounting(*claims: str) -> list[dict[str, Any]]:
    return [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]


def elsewhere(name: str) -> Object:
    """A class whose volumes are in a zone without nodes."""
    topology = [{"matchLabelExpressions": [{"key": "zone", "values": ["z9"]}]}]
    return a_class(name, allowedTopologies=topology)


@pytest.mark.parametrize(
    ("classes", "offered"),
    [
        pytest.param(
            [a_class("by-hand", provisioner="kubernetes.io/no-provisioner"), elsewhere("far"), a_class("west")],
            ["west"],
            id="the only class that helps, the last by name",
        ),
        pytest.param(
            [a_class("a"), a_class("b", annotations={"storageclass.kubernetes.io/is-default-class": "true"})],
            ["b", "a"],
            id="the default class first",
        ),
    ],
)
def test_a_missing_claim_is_created_with_a_class_that_helps(classes: list[Object], offered: list[str]) -> None:
    diagnosis = found(a_pod(volumes=mounting("data")), a_state(nodes=["a"], others=classes))
    wanted = [(f"create the claim default/data, of class {each}", "a") for each in offered]
    assert texts(diagnosis, "create-claim") == wanted


@pytest.mark.parametrize(
    ("spec", "classes", "offered"),
    [
        pytest.param({}, [a_class("fast")], "give the claim default/data the storage class fast", id="no class"),
        pytest.param(
            {},
            [a_class("now", volumeBindingMode="Immediate", provisioner="csi.example.com")],
            "give the claim default/data the storage class standard; create the storage class standard, with the"
            " provisioner csi.example.com",
            id="no class, and none that waits",
        ),
        pytest.param({"storageClassName": ""}, [a_class("fast")], None, id="a class is not wanted: it cannot be set"),
    ],
)
def test_a_claim_that_names_no_class_gets_one(spec: dict[str, Any], classes: list[Object], offered: str | None) -> None:
    metadata = {"name": "data", "namespace": "default"}
    claim = an_object("PersistentVolumeClaim", metadata=metadata, spec={"accessModes": ["ReadWriteOnce"], **spec})
    diagnosis = found(a_pod(volumes=mounting("data")), a_state(nodes=["a"], others=[*classes, claim]))
    named = [each.text for each in diagnosis.remedies if each.code.startswith("name-class")]
    assert named == ([] if offered is None else [offered])


def test_each_of_two_claims_gets_a_class_though_there_are_many() -> None:
    classes = [a_class(f"c{each}") for each in range(6)]
    claims = [
        an_object("PersistentVolumeClaim", metadata={"name": each, "namespace": "default"}, spec={})
        for each in ("one", "two")
    ]
    diagnosis = found(a_pod(volumes=mounting("one", "two")), a_state(nodes=["a"], others=[*classes, *claims]))
    text = "give the claim default/one the storage class c0; give the claim default/two the storage class c0"
    assert diagnosis.remedies[0].text == text


# -- the cluster


@pytest.mark.parametrize(
    ("mounting", "owner", "offered"),
    [
        pytest.param(None, None, True, id="a claim that nobody uses"),
        pytest.param("on a node", None, False, id="a pod on a node uses it"),
        pytest.param("waiting", None, False, id="a pod that waits uses it"),
        pytest.param(None, "StatefulSet", False, id="the claim is a StatefulSet's, for just this pod"),
    ],
)
def test_nobody_gets_the_data_of_another_pod(mounting: str | None, owner: str | None, offered: bool) -> None:
    lost: dict[str, Any] = {"metadata": {"name": "data-pod", "namespace": "default"}, "status": {"phase": "Lost"}}
    lost["spec"] = {"volumeName": "gone", "storageClassName": "", "accessModes": ["ReadWriteOnce"]}
    fast = an_object(
        "StorageClass", metadata={"name": "fast"}, provisioner="x", volumeBindingMode="WaitForFirstConsumer"
    )
    other = an_object(
        "PersistentVolumeClaim",
        metadata={"name": "other", "namespace": "default"},
        spec={"storageClassName": "fast", "accessModes": ["ReadWriteOnce"]},
    )
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "other"}}]
    pods = [a_pod("user", volumes=volumes, node="a")] if mounting == "on a node" else []
    waiting = [a_pod("user", volumes=volumes)] if mounting == "waiting" else []
    own: dict[str, Any] = (
        {} if owner is None else {"owner": {"kind": owner, "name": "p", "uid": "o", "apiVersion": "apps/v1"}}
    )
    pod = a_pod("pod", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data-pod"}}], **own)
    state = a_state(nodes=["a"], pods=pods, others=[fast, other, an_object("PersistentVolumeClaim", **lost)])
    diagnosis = found(pod, state, others=waiting)
    assert ("use-claim" in codes(diagnosis)) == offered


def test_a_pod_with_two_missing_claims_gets_both() -> None:
    fast = an_object(
        "StorageClass", metadata={"name": "fast"}, provisioner="x", volumeBindingMode="WaitForFirstConsumer"
    )
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in ("one", "two")]
    diagnosis = found(a_pod(volumes=volumes), a_state(nodes=["a"], others=[fast]))
    text = "create the claim default/one, of class fast; create the claim default/two, of class fast"
    assert texts(diagnosis, "create-claim") == [(text, "a")]


def storage_class(name: str, mode: str, provisioner: str = "csi.example.com") -> Object:
    return an_object("StorageClass", metadata={"name": name}, provisioner=provisioner, volumeBindingMode=mode)


def unbound(name: str, of_class: str, **annotations: str) -> PersistentVolumeClaim:
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"storageClassName": of_class, "accessModes": ["ReadWriteOnce"], "resources": resources}
    notes = {key.replace("_", "-"): value for key, value in annotations.items()}
    metadata = {"name": name, "namespace": "default", "annotations": notes}
    return kinds.convert(PersistentVolumeClaim, {"metadata": metadata, "spec": spec})


def using(*claims: str) -> list[dict[str, Any]]:
    return [{"name": f"v{at}", "persistentVolumeClaim": {"claimName": name}} for at, name in enumerate(claims)]


@pytest.mark.parametrize("number", [2, 3])
def test_claims_that_all_lack_a_volume_get_one_each(number: int) -> None:
    names = [f"c{at}" for at in range(number)]
    by_hand = storage_class("local", "WaitForFirstConsumer", "kubernetes.io/no-provisioner")
    state = a_state(nodes=["a"], others=[by_hand, *(unbound(name, "local") for name in names)])
    (remedy, *_) = found(a_pod(volumes=using(*names)), state).remedies
    assert (remedy.code, remedy.node, len(remedy.changes)) == ("create-volume", "a", number)


def test_three_claims_that_are_missing_are_created_together() -> None:
    state = a_state(nodes=["a"], others=[storage_class("fast", "WaitForFirstConsumer")])
    (remedy, *_) = found(a_pod(volumes=using("x", "y", "z")), state).remedies
    assert (remedy.code, len(remedy.changes)) == ("create-claim", 3)


@pytest.mark.parametrize(
    ("mode", "notes", "why"),
    [
        pytest.param("Immediate", {}, "csi.example.com makes its volume", id="a class that binds at once"),
        pytest.param(
            "WaitForFirstConsumer", {"selected_node": "gone"}, "being provisioned for node gone", id="under way"
        ),
        pytest.param("WaitForFirstConsumer", {}, "", id="a class that waits for the pod"),
    ],
)
def test_claims_that_somebody_else_is_to_bind_are_waited_for(mode: str, notes: dict[str, str], why: str) -> None:
    annotations = {f"volume.kubernetes.io/{key}": value for key, value in notes.items()}
    state = a_state(
        nodes=[a_node("a", taints=["k=v:NoSchedule"])],
        others=[storage_class("c", mode), unbound("data", "c", **annotations)],
    )
    waits = [each for each in found(a_pod(volumes=using("data")), state).waits if each.code == "claim-to-bind"]
    assert [why in each.text for each in waits] == ([True] if why else [])


def test_nothing_provisions_a_volume_of_a_class_without_a_provisioner() -> None:
    by_hand = storage_class("c", "Immediate", "kubernetes.io/no-provisioner")
    (wait,) = found(a_pod(volumes=using("data")), a_state(nodes=["a"], others=[by_hand, unbound("data", "c")])).waits
    assert wait.text.endswith("somebody has to create a volume of class c, for nothing provisions one")


def test_a_claim_that_is_being_deleted_is_waited_for() -> None:
    claim = unbound("data", "c")
    leaving = msgspec.structs.replace(claim.metadata, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC))
    going = msgspec.structs.replace(claim, metadata=leaving)
    state = a_state(nodes=["a"], others=[storage_class("c", "WaitForFirstConsumer"), going])
    assert [each.code for each in found(a_pod(volumes=using("data")), state).waits] == ["claim-to-go"]


def test_an_empty_cluster_was_searched_as_far_as_it_goes() -> None:
    diagnosis = found(a_pod(), a_state(nodes=[]))
    assert [each.code for each in diagnosis.waits] == ["no-nodes"] and diagnosis.bounded == ""


def test_a_claim_whose_volume_does_not_exist_is_not_said_to_be_on_its_way() -> None:
    claim = unbound("data", "c")
    named = msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, volume_name="gone"))
    diagnosis = found(
        a_pod(volumes=using("data")), a_state(nodes=["a"], others=[storage_class("c", "Immediate"), named])
    )
    assert diagnosis.waits == ()


def test_a_pod_without_its_resource_claim_is_said_not_to_be_searched() -> None:
    pod = a_pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}])
    diagnosis = found(pod, a_state(nodes=["a"]))
    assert (diagnosis.remedies, "waits for its resource claims" in diagnosis.bounded) == ((), True)
