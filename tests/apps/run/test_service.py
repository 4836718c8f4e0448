"""What `stowplan run` makes of its options and configuration, before it is connected to anything."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pytest

from stowplan.apps.logging import Log
from stowplan.apps.run.configuration import LoadedConfiguration, beside_kube_scheduler
from stowplan.apps.run.options import RunOptions
from stowplan.apps.run.service import SchedulerService


def with_election(**settings: Any) -> LoadedConfiguration:
    loaded = beside_kube_scheduler()
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
