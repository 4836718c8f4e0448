"""A replica that waits for the lease takes in all changes and attempts nothing: it must not keep pods that are gone."""

from __future__ import annotations

import numpy as np
import pytest

from stowplan.engine.scheduler import Scheduler
from stowplan.objects.applications import MINIMA, NAMES
from stowplan.objects.changes import Gone, Put
from stowplan.plugins.nodes.coscheduling.plugin import Coscheduling
from stowplan.testing.builders import a_pod, a_profile_of


@pytest.mark.parametrize("size", [1, 2, 3])
def test_pods_that_come_and_go_leave_nothing(size: int) -> None:
    """`size`: alone, or in groups that are complete, or not."""
    profiles = {"default-scheduler": a_profile_of(Coscheduling())}
    scheduler, now = Scheduler(profiles, np.random.default_rng(1)), 0.0
    for number in range(1000):
        labels = {NAMES[0]: f"g{number // 2}", MINIMA[0]: str(size)} if size > 1 else {}
        now += 1
        scheduler.handle(Put(a_pod(f"p{number}", labels=labels)), now)
        if number >= 10:
            scheduler.handle(Gone(scheduler.pods[a_pod(f"p{number - 10}").uid]), now)
    queue = scheduler.queue
    kept = [len(each) for each in (queue._active, queue._backoff, queue._errors, queue._groups, queue._aging)]
    assert len(scheduler.pods) == 10 and max(kept) <= 150, kept
