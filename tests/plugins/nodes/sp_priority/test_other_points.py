"""SPPriority listed at score and postBind alone, and in several profiles."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from stowplan.apps import profile_loader
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.actions import Action, Patch
from stowplan.objects.changes import Result
from stowplan.plugins.nodes.sp_priority.plugin import SPPriority
from stowplan.testing.builders import a_profile
from tests.plugins.nodes.sp_priority.replicas import a_replica, an_owner
from tests.plugins.nodes.sp_priority.worlds import Shop, never_twice


def after_the_binding(**owner: Any) -> tuple[Shop, SPPriority]:
    """As the original's code has it: listed at score and postBind alone."""
    plugin = SPPriority(skip_multi_replica=False)
    points = dict(a_profile().points)
    for point in ("score", "postBind"):
        points[point] = (*points[point], EnabledPlugin("SPPriority", plugin, 5))
    shop = Shop(owner=an_owner(**owner))
    shop.world.adopt({"default-scheduler": Profile("default-scheduler", points)})
    return shop, plugin


@pytest.mark.parametrize("pause", [pytest.param(0, id="at once"), pytest.param(3, id="after a while")])
def test_listed_at_score_and_post_bind_it_counts_too(pause: float) -> None:
    """After the binding, so a crash in between loses a pod."""
    shop, plugin = after_the_binding()
    nodes = []
    for _ in range(5):
        shop.make()
        nodes.append(shop.node())
        shop.world.advance(pause)
        shop.delete()
    shop.world.advance(5)
    assert shop.counts == Counter(nodes) and "pending" not in shop.history
    assert never_twice(nodes)
    assert not plugin._unconfirmed._assumed and not plugin._unconfirmed._to_record


@pytest.mark.parametrize("status", [409, 422, 500, 0])
@pytest.mark.parametrize("refusals", [1, 2, 3])
@pytest.mark.parametrize("done", [pytest.param(True, id="done all the same"), pytest.param(False, id="not done")])
def test_and_a_refused_write_loses_no_count(status: int, refusals: int, done: bool) -> None:
    shop, _ = after_the_binding(replicas=3)
    refused = list[Action]()

    def answer(action: Action) -> Result:
        if isinstance(action, Patch) and len(refused) < refusals:
            refused.append(action)
            if done:
                shop.world.perform(action)
            return Result(action.id, status, "no")
        return Result(action.id)

    shop.world.answers = answer
    shop.world.submit(*(a_replica(name) for name in ("one", "two", "three")))
    shop.world.advance(60)
    assert len(refused) == refusals or done
    assert shop.counts == Counter(shop.world.bindings.values()) and "pending" not in shop.history
    assert sum(shop.counts.values()) == 3


def test_and_what_is_left_to_note_goes_with_the_owner() -> None:
    shop, plugin = after_the_binding()
    shop.make()
    shop.node()
    shop.world.delete(shop.owner)
    shop.delete()
    shop.world.advance(3)
    assert not plugin._unconfirmed._assumed and not plugin._unconfirmed._to_record and not plugin._unconfirmed._owner_of


def test_profiles_that_share_it_count_together() -> None:
    enabled = {"multiPoint": {"enabled": [{"name": "SPPriority", "weight": 5}]}}
    _, profiles = profile_loader.configured({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": name, "plugins": enabled} for name in ("one", "two")],
    })  # fmt: skip
    shop, nodes = Shop(), list[str]()
    shop.world.adopt(profiles)
    for number in range(6):
        shop.make(schedulerName=("one", "two")[number % 2])
        nodes.append(shop.node())
        shop.world.advance(number % 3)
        shop.delete()
    shop.world.advance(5)
    assert shop.counts == Counter(nodes) and never_twice(nodes) and "pending" not in shop.history
    unconfirmed = profiles["one"].plugin("SPPriority")._unconfirmed  # type: ignore[union-attr]
    assert not unconfirmed._assumed and not unconfirmed._to_record and len(unconfirmed._writes) <= 1
