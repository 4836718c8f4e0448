"""What `stowplan run` makes of its options and configuration, before it is connected to anything."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from stowplan.apps.logging import Log
from stowplan.apps.run.configuration import LoadedConfiguration, beside_kube_scheduler, instead_of_kube_scheduler
from stowplan.apps.run.options import RunOptions
from stowplan.apps.run.service import SchedulerService
from stowplan.kube.events import EventRecorder
from stowplan.kube.lease_thread import LeaseThread
from stowplan.kube.reflector import Reflector
from stowplan.kube.resources import RESOURCES
from stowplan.kube.unreadable import UnreadableObject
from stowplan.objects import kinds
from stowplan.objects.actions import Record
from stowplan.objects.changes import Put
from stowplan.objects.errors import ConfigError
from stowplan.objects.resource_claims import ResourceClaim
from stowplan.testing.builders import a_node, a_pod


def with_election(loaded: LoadedConfiguration | None = None, **settings: Any) -> LoadedConfiguration:
    loaded = loaded or beside_kube_scheduler()
    election = msgspec.structs.replace(loaded.configuration.leader_election, **settings)
    configuration = msgspec.structs.replace(loaded.configuration, leader_election=election)
    return LoadedConfiguration(configuration, loaded.profiles)


@pytest.mark.parametrize(
    ("options", "configured", "name"),
    [
        pytest.param({}, {}, "stowplan", id="beside kube-scheduler, which has its own"),
        pytest.param({"replace": True}, {}, "kube-scheduler", id="instead of kube-scheduler"),
        pytest.param({"lease_name": "kube-scheduler"}, {}, "kube-scheduler", id="by a flag"),
        pytest.param({}, {"resource_name": "mine"}, "mine", id="by the configuration"),
        pytest.param({"lease_name": "flag"}, {"resource_name": "mine"}, "flag", id="the flag wins"),
    ],
)
def test_the_name_of_the_lease(options: dict[str, Any], configured: dict[str, Any], name: str) -> None:
    election = RunOptions(**options).election(with_election(**configured).configuration)
    assert election is not None and election.name == name


@pytest.mark.parametrize(
    ("options", "configured", "asks"),
    [
        pytest.param({}, {}, True, id="nobody says which lease"),
        pytest.param({"replace": True}, {}, False, id="--replace: kube-scheduler's, as it stands"),
        pytest.param({"lease_name": "stowplan"}, {}, False, id="a flag says it"),
        pytest.param({}, {"resource_name": "mine"}, False, id="the file says it"),
    ],
)
def test_rights_decide_about_the_lease_of_default_scheduler(
    options: dict[str, Any], configured: dict[str, Any], asks: bool
) -> None:
    beside, instead = with_election(**configured), with_election(instead_of_kube_scheduler(), **configured)
    assert RunOptions(**options).rights_decide(instead.configuration) is asks
    assert not RunOptions(**options).rights_decide(beside.configuration), "it serves other pods than kube-scheduler"


def test_flags_go_before_the_file() -> None:
    configuration = with_election(lease_duration=30.0, renew_deadline=20.0, retry_period=5.0).configuration
    election = RunOptions(lease_duration=60.0, retry_period=1.0).election(configuration)
    assert election is not None
    assert (election.lease_duration, election.renew_deadline, election.retry_period) == (60.0, 20.0, 1.0)
    with pytest.raises(ConfigError, match=r"leaseDuration: found 10s, expected more than renewDeadline \(20s\)"):
        RunOptions(lease_duration=10.0).election(configuration)
    limits = RunOptions(kube_api_qps=7.0).connection(configuration)
    assert (limits.qps, limits.burst) == (7.0, 100)
    assert RunOptions().connection(configuration) == configuration.client_connection
    assert RunOptions().serves_profiles(configuration) and not RunOptions(profiling=False).serves_profiles(
        configuration
    )


@pytest.mark.parametrize("flag", [None, True, False])
@pytest.mark.parametrize("configured", [True, False])
def test_whether_there_is_a_lease(flag: bool | None, configured: bool) -> None:
    election = RunOptions(leader_elect=flag).election(with_election(leader_elect=configured).configuration)
    assert (election is not None) == (configured if flag is None else flag)


def test_a_reload_does_not_change_the_election() -> None:
    """A scheduler without a lease goes on writing, although its configuration asks for leader election now."""
    loaded = with_election(leader_elect=False)
    service = SchedulerService(RunOptions(), lambda: loaded, Log(stream=io.StringIO()))
    assert service.leading
    service.loaded = with_election(leader_elect=True)
    assert service.leading


def an_unreadable(kind: str = "Pod", scheduler_name: str = "stowplan") -> UnreadableObject:
    return UnreadableObject(kind, "Pod: shop/x cannot be read", "shop", "x", "u", "7", scheduler_name)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        pytest.param(an_unreadable(), 1, id="a pod of ours"),
        pytest.param(an_unreadable(scheduler_name="other"), 0, id="a pod of another scheduler"),
        pytest.param(an_unreadable("Node", ""), 0, id="another kind"),
    ],
)
def test_a_pod_that_cannot_be_read_gets_one_event_from_the_leader(found: UnreadableObject, told: int) -> None:
    loaded, recorder = with_election(leader_elect=True), Notes()
    service = SchedulerService(RunOptions(), lambda: loaded, Log(stream=io.StringIO()))
    service.recorder = cast(EventRecorder, recorder)
    service.unreadable(found)
    assert recorder.events == [], "another replica leads"
    service.lease = cast(LeaseThread, SimpleNamespace(leading=True))
    pods = SimpleNamespace(cache=SimpleNamespace(unreadable={"shop/x": found}))
    service.reflectors["Pod"] = cast(Reflector, pods)
    for _ in range(2):
        service.leading_begins()
        service.unreadable(found)
    written = [(each.pod.uid, each.type, each.reason) for each in recorder.events]
    assert written == [("u", "Warning", "Unreadable")] * told


class Notes:
    def __init__(self) -> None:
        self.events: list[Record] = []

    def record(self, event: Record) -> None:
        self.events.append(event)


def test_what_a_write_finds_out_goes_to_the_reflector_of_its_kind() -> None:
    service = SchedulerService(RunOptions(), beside_kube_scheduler, Log(stream=io.StringIO()))
    told: list[tuple[str, str]] = []

    def reflector(kind: str) -> Any:
        return SimpleNamespace(
            resource=RESOURCES[kind], learn=lambda change, _: told.append((kind, change.object.key)),
            cache=SimpleNamespace(objects={"default/gpu": a_claim}),
        )  # fmt: skip

    a_claim = kinds.convert(ResourceClaim, {"metadata": {"name": "gpu", "namespace": "default", "uid": "u"}})
    service.reflectors.update({kind: reflector(kind) for kind in ("Pod", "ResourceClaim")})
    service._learn(Put(a_claim))
    service._learn(Put(a_pod("gpu")))
    service._learn(Put(a_node("gpu")))  # nobody follows nodes here
    assert told == [("ResourceClaim", "default/gpu"), ("Pod", "default/gpu")]
    assert service._known("ResourceClaim", "default/gpu") is a_claim
    assert service._known("DeviceClass", "gpu") is None
