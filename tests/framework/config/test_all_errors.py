"""All errors of a configuration, each once, with the numbers that items have in the file, and without consequences."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from stowplan.framework.config import all_errors, configuration
from stowplan.objects.errors import ConfigError
from tests.framework.config.configurations import HEAD, implements

RIGHT = {"apiVersion": "kubescheduler.config.k8s.io/v1"}


def errors(body: str, head: str = HEAD) -> list[str]:
    def read(document: dict[str, Any]) -> object:
        return configuration.load(document, implements=implements)

    return [str(each) for each in all_errors.every(yaml.safe_load(head + body), read, RIGHT)]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        pytest.param("", [], id="nothing is wrong"),
        pytest.param(
            "parallelism: 0\nprofils: []\nleaderElection: {leaseDuration: 1}",
            [
                'profils: unknown field; did you mean "profiles"?',
                "parallelism: found 0, expected an integer >= 1",
                "leaderElection.leaseDuration: found 1, expected a duration",
            ],
            id="fields all over the file",
        ),
        pytest.param(
            "profiles: [{plugins: {score: {enabled: "
            "[{name: Nope}, {name: NodeAffinity}, {name: Nil}, {name: NodeAffinity}]}}}]",
            [
                'profiles[0].plugins.score.enabled[0]: there is no plugin "Nope"',
                'profiles[0].plugins.score.enabled[2]: there is no plugin "Nil"',
                'profiles[0].plugins.score.enabled[3]: plugin "NodeAffinity" appears twice; '
                "first at profiles[0].plugins.score.enabled[1]",
            ],
            id="items of a list have their numbers in the file",
        ),
        pytest.param(
            "profiles: [{plugins: {score: {enabled: [{name: 5}, {name: Nope, weight: x}]}}}]",
            [
                "profiles[0].plugins.score.enabled[0].name: found 5, expected a string",
                'profiles[0].plugins.score.enabled[1].weight: found "x", expected an integer',
                'profiles[0].plugins.score.enabled[1]: there is no plugin "Nope"',
            ],
            id="a name that is wrong is not missing besides; two errors of one item are two",
        ),
        pytest.param(
            "profiles: [{schedulerName: a}, {schedulerName: a, plugins: {bind: {enabled: [{name: Nope}]}}}, {}]",
            [
                'profiles[1].plugins.bind.enabled[0]: there is no plugin "Nope"',
                "profiles[2].schedulerName: missing or empty",
                'profiles[1].schedulerName: "a" is the name of profiles[0] already',
            ],
            id="names of profiles, and what is in these profiles",
        ),
        pytest.param(
            "profiles: [{plugins: {queueSort: {disabled: [{name: '*'}], enabled: [{name: Nope}]}}}]",
            ['profiles[0].plugins.queueSort.enabled[0]: there is no plugin "Nope"'],
            id="a point is not empty because of us",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {x: 1, scoringStrategy: {type: Best}}}, "
            "{name: DefaultPreemption, args: {minCandidateNodesPercentage: 101}}]}]",
            [
                "profiles[0].pluginConfig[0].args.x: unknown field",
                'profiles[0].pluginConfig[0].args.scoringStrategy.type: found "Best", expected one of',
                "profiles[0].pluginConfig[1].args.minCandidateNodesPercentage: found 101, expected an integer <= 100",
            ],
            id="arguments",
        ),
    ],
)
def test_all_are_told(body: str, told: list[str]) -> None:
    found = errors(body)
    assert [(said, wanted) for said, wanted in zip(found, told, strict=True) if not said.startswith(wanted)] == []


def test_an_old_version_does_not_hide_the_rest() -> None:
    found = errors("parallelism: 0", HEAD.replace("/v1", "/v1alpha1"))
    assert [each.partition(":")[0] for each in found] == ["apiVersion", "parallelism"]


def test_another_kind_is_all_that_is_wrong() -> None:
    found = errors("parallelism: 0", HEAD.replace("KubeScheduler", "Scheduler"))
    assert [each.partition(":")[0] for each in found] == ["kind"]


def test_an_error_without_a_place_ends_the_search() -> None:
    def read(document: dict[str, Any]) -> object:
        raise ConfigError("it cannot be used")

    assert [str(each) for each in all_errors.every({"a": 1}, read, {})] == ["it cannot be used"]


def test_a_reader_that_is_never_content_ends_the_search() -> None:
    def read(document: dict[str, Any]) -> object:
        raise ConfigError("wrong", path="a.b.c")

    assert [str(each) for each in all_errors.every({"a": {"b": {"c": 1}}}, read, {})] == ["a.b.c: wrong"]
