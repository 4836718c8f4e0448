"""The commands that `stowplan up` prints make pods that are scheduled."""

from __future__ import annotations

import json
import shlex

import pytest

from stowplan.apps.up import hints


@pytest.mark.parametrize(
    ("schedulers", "note"),
    [
        pytest.param(("default-scheduler",), "", id="the default profile"),
        pytest.param(("other", "default-scheduler"), "", id="one of several is the default"),
        pytest.param((), "No scheduler runs here", id="no scheduler"),
        pytest.param(("mine", "yours"), "mine, yours", id="names of our own"),
    ],
)
def test_notes(schedulers: tuple[str, ...], note: str) -> None:
    assert note in " ".join(hints.notes(schedulers))
    assert bool(note) is bool(hints.notes(schedulers))


def test_a_deployment_is_for_the_default_scheduler() -> None:
    assert "create deployment web --image=nginx --replicas=5" in hints.commands(("default-scheduler",))


def test_a_pod_names_the_scheduler_that_is_served() -> None:
    words = shlex.split(hints.commands(("it's mine",))[1])
    overrides = next(word.removeprefix("--overrides=") for word in words if word.startswith("--overrides="))
    assert json.loads(overrides) == {"spec": {"schedulerName": "it's mine"}}


def test_with_rbac_it_says_who_you_are() -> None:
    assert hints.notes(("default-scheduler",), rbac=True)[0].startswith("You are the administrator.")
