"""Every node that a filter rejects has a cause, by the plugin that rejects it; and asking changes nothing."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.apps.parity import node_records
from stowplan.columns.state import ClusterState
from stowplan.diagnosis.causes import cause_groups, pod_causes
from stowplan.diagnosis.rejections import Rejections, rejections
from stowplan.framework import cause_calls
from stowplan.framework.causes import REJECTED
from stowplan.framework.checks.answers import picture
from stowplan.framework.profile import Profile
from stowplan.framework.random_clusters import draw
from stowplan.objects import kinds
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_profile
from tests.hypothesis_settings import at_most

GOLDEN = sorted((Path(__file__).parents[1] / "golden" / "nodes").glob("*.jsonl.gz"))
PROFILE = a_profile()
SAMPLE = 12  # one record of so many, outside of long runs


def check(pod: Pod, state: ClusterState, profile: Profile) -> Rejections:
    profile.attach(state)
    found = rejections(pod, state, profile)
    before, counted = picture(state), set(state.match_counts.questions)
    groups = cause_groups(pod, found, state, profile)
    whole = pod_causes(pod, found, state, profile)
    assert picture(state) == before
    assert set(state.match_counts.questions) == counted
    _check_groups(found, groups)
    assert bool(whole) == bool(found.gated or found.refused)
    plugins: dict[str, Any] = {each.name: each for each in profile.filters}
    for name, rejected in found.filters.items():
        nodes = found.nodes.where(rejected.rows)
        named = cause_calls.named_causes(plugins[name], pod, nodes)
        assert not cause_calls.unnamed(named, len(nodes)).any(), f"{name} names a cause for each node"
    msgspec.json.encode([each.cause.details for each in whole])
    return found


def _check_groups(found: Rejections, groups: Any) -> None:
    rejected = found.outside()
    for each in found.filters.values():
        rejected |= each.rows
    rejected[list(found.beside)] = True
    names = [name for group in groups for name in group.nodes]
    assert sorted(names) == sorted(np.array(found.nodes.names, object)[rejected].tolist())
    assert [len(group.nodes) for group in groups] == sorted((len(group.nodes) for group in groups), reverse=True)
    for group in groups:
        assert group.causes
        assert all(each.cause.code != REJECTED for each in group.causes), "plugins of ours name the thing itself"
        msgspec.json.encode([each.cause.details for each in group.causes])


@given(st.integers(0, 100_000))
@at_most(150)
def test_random_clusters(seed: int) -> None:
    drawn = draw(seed)
    check(drawn.pod, drawn.state(), PROFILE)


def _records(file: Path, step: int) -> Iterator[tuple[Pod, ClusterState, Profile]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number % step == 0:
                record = json.loads(line)
                pod = kinds.convert(Pod, record["pod"])
                yield pod, node_records.cluster(record["cluster"]), node_records.profile_of(pod, record.get("config"))


def _check_file(file: Path, step: int) -> None:
    number = 0
    for pod, state, profile in _records(file, step):
        check(pod, state, profile)
        number += 1
    assert number > 0


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.name.partition(".")[0])
def test_some_recorded_clusters(file: Path) -> None:
    _check_file(file, SAMPLE)


@pytest.mark.full
@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.name.partition(".")[0])
def test_all_recorded_clusters(file: Path) -> None:
    _check_file(file, 1)
