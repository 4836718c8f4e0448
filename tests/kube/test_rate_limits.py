"""Backoff: growing waits with jitter, at least the Retry-After."""

from __future__ import annotations

import random

from stowplan.kube.rate_limits import Backoff


def test_waits_double_up_to_a_limit_and_begin_again() -> None:
    backoff = Backoff(random.Random(3), first=1.0, longest=10.0)
    for ceiling in (1, 2, 4, 8, 10, 10):
        assert ceiling / 2 <= backoff.wait() <= ceiling
    backoff.reset()
    assert backoff.wait() <= 1


def test_two_clients_do_not_wait_equally_long() -> None:
    waits = [Backoff(random.Random(seed)).wait() for seed in range(20)]
    assert len(set(waits)) == 20


def test_a_wait_is_at_least_the_retry_after() -> None:
    assert Backoff(random.Random(1), first=0.1).wait(at_least=7.0) >= 7.0
