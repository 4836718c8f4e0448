"""Volumes that are not bound to a chosen node: writes that fail, time that runs out, objects that change or go.

Each time the pod gives back what it held, and its next attempt starts in order.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stowplan.engine.binding.assumed_pod import BindStep
from stowplan.engine.unit import QueueStage
from stowplan.objects.actions import Action, Bind, Patch
from stowplan.objects.changes import Result
from stowplan.objects.storage import SELECTED_NODE
from stowplan.testing.builders import a_profile
from stowplan.testing.world import World
from tests.engine.binding.storage import (
    BOTH,
    a_claim,
    a_user,
    a_volume,
    a_world,
    change,
    claim,
    control,
    dynamic,
    patches,
    provision,
    reason,
    stage,
    static,
    step,
    volume,
)

FAILED = 'running PreBind plugin "VolumeBinding": binding volumes: '
LATE = f"{FAILED}context deadline exceeded"


@BOTH
@pytest.mark.parametrize("status", [409, 404, 500, 503, None], ids=["conflict", "gone", "500", "503", "no answer"])
def test_a_patch_that_fails(begin: Callable[[], World], status: int | None) -> None:
    world = a_world("a")

    def answers(action: Action) -> Result | None:
        if not isinstance(action, Patch):
            return Result(action.id)
        return None if status is None else Result(action.id, status, "no")

    world.answers = answers
    kind = "local" if begin is static else "made"
    world.submit(a_claim("data", kind), *([a_volume("disk")] if begin is static else []), a_user("web", "data"))
    world.advance(0 if status else 30)
    assert stage(world) is QueueStage.BACKOFF and reason(world) == "SchedulerError"
    assert 'running PreBind plugin "VolumeBinding": ' in world.event_notes("web", "FailedScheduling")[0]
    assert not world.scheduler.state.assumed.holders() and not world.scheduler.state.pods
    world.answers = lambda action: Result(action.id)
    world.advance(2)
    control(world)
    assert world.bindings == {"web": "a"}


@BOTH
def test_after_a_timeout_the_next_attempt_continues(begin: Callable[[], World]) -> None:
    world = begin()
    node = world.scheduler.assumed_pods[world.pod("web").uid].node_name
    world.advance(599)
    assert step(world) is BindStep.PRE_BINDING
    world.advance(1)
    assert world.event_notes("web", "FailedScheduling") == [LATE] and reason(world) == "SchedulerError"
    assert not world.scheduler.state.assumed.holders()
    world.advance(2)
    assert step(world) is BindStep.PRE_BINDING and len(patches(world)) == 1, (
        "what was written once is not written again"
    )
    control(world)
    assert world.bindings == {"web": node}


def test_the_timeout_is_configurable() -> None:
    args = {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 5}}
    world = a_world("a", profiles={"default-scheduler": a_profile({"profiles": [{"pluginConfig": [args]}]})})
    world.submit(a_claim("data", "made"), a_user("web", "data"))
    world.advance(4)
    assert step(world) is BindStep.PRE_BINDING
    world.advance(1)
    assert world.event_notes("web", "FailedScheduling") == [LATE]


# -- after the writes


def provisioner_gives_up(world: World) -> None:
    change(world, "PersistentVolumeClaim", "default/data", {"metadata": {"annotations": {SELECTED_NODE: None}}})


def claim_gone(world: World) -> None:
    world.delete(claim(world))


def claim_made_anew(world: World) -> None:
    world.delete(claim(world))
    world.submit(a_claim("data", claim_class(world), uid="another"))


def claim_class(world: World) -> str:
    return "local" if ("PersistentVolume", "disk") in world.objects else "made"


def claim_lost(world: World) -> None:
    body = {"spec": {"volumeName": "gone"}, "status": {"phase": "Lost"}}
    change(world, "PersistentVolumeClaim", "default/data", body)


def node_gone(world: World) -> None:
    world.delete(world.objects["Node", "a"])


def volume_gone(world: World) -> None:
    world.delete(volume(world))


def volume_unbound(world: World) -> None:
    change(world, "PersistentVolume", "disk", {"spec": {"claimRef": None}})


def made_elsewhere(world: World) -> None:
    provision(world, "data", "b")


@pytest.mark.parametrize(
    ("begin", "happens", "told"),
    [
        pytest.param(dynamic, provisioner_gives_up, 'selectedNode annotation reset for PVC "data"', id="taken back"),
        pytest.param(
            dynamic, claim_gone, 'failed to check provisioning pvc: persistentvolumeclaims "default/data" not found',
            id="the claim is deleted",
        ),
        pytest.param(
            dynamic, claim_made_anew,
            'failed to check provisioning pvc: persistentvolumeclaims "default/data" not found',
            id="the claim is another one now",
        ),
        pytest.param(
            static, claim_gone, 'failed to check binding: persistentvolumeclaims "default/data" not found',
            id="the claim that was given a volume is deleted",
        ),
        pytest.param(
            static, claim_made_anew, 'failed to check binding: persistentvolumeclaims "default/data" not found',
            id="the claim that was given a volume is another one now",
        ),
        pytest.param(
            static, volume_gone, 'failed to check binding: persistentvolumes "disk" not found',
            id="the volume is deleted",
        ),
        pytest.param(static, volume_unbound, 'ClaimRef got reset for pv "disk"', id="the volume is taken back"),
        pytest.param(dynamic, node_gone, 'failed to get node "a": node "a" not found', id="the node is deleted"),
        pytest.param(
            dynamic, made_elsewhere,
            'pv "made-for-data" node affinity doesn\'t match node "a": no matching NodeSelectorTerms',
            id="the volume was made where the node cannot reach it",
        ),
        pytest.param(
            dynamic, claim_lost, 'persistentvolumeclaim "data" bound to non-existent persistentvolume "gone"',
            id="the volume is lost",
        ),
    ],
)  # fmt: skip
def test_a_pre_binding_that_fails_after_its_writes(
    begin: Callable[[], World], happens: Callable[[World], None], told: str
) -> None:
    world = begin()
    happens(world)
    world.run()
    assert world.event_notes("web", "FailedScheduling")[0] == f"{FAILED}{told}"
    assert reason(world) == "SchedulerError" and stage(world) is QueueStage.BACKOFF
    assert not world.scheduler.assumed_pods and not world.scheduler.state.assumed.holders()
    world.check()
    assert not [each for each in world.actions if isinstance(each, Bind)]


@BOTH
def test_the_pod_is_deleted_while_it_waits(begin: Callable[[], World]) -> None:
    world = begin()
    world.delete(world.pod("web"))
    world.run()
    world.check()
    assert not world.scheduler.assumed_pods and not world.scheduler.state.assumed.holders()
    control(world)
    world.advance(1000)
    assert not world.bindings
