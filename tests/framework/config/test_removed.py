"""What older versions of kube-scheduler had is told where it went."""

from __future__ import annotations

import pytest

from stowplan.framework.config import removed
from stowplan.plugins import BUILT_IN
from tests.framework.config.configurations import HEAD, load, refused


@pytest.mark.parametrize("name", sorted(removed.PLUGINS))
def test_a_removed_plugin_is_told_where_it_went(name: str) -> None:
    path = "profiles[0].plugins.filter.enabled[0]"
    error = f'{path}: plugin "{name}" was removed; {removed.PLUGINS[name]}'
    refused(f"{HEAD}profiles: [{{plugins: {{filter: {{enabled: [{{name: {name}}}]}}}}}}]", error)


def test_what_is_named_as_the_successor_exists() -> None:
    for name, text in removed.PLUGINS.items():
        assert name not in BUILT_IN
        assert [plugin for plugin in BUILT_IN if plugin in text], name


@pytest.mark.parametrize(
    ("body", "path", "told"),
    [
        pytest.param("algorithmSource: {provider: Default}", "algorithmSource", removed.POLICY, id="a policy"),
        pytest.param("healthzBindAddress: ''", "healthzBindAddress", "--secure-port (/healthz", id="its health"),
        pytest.param("metricsBindAddress: ''", "metricsBindAddress", "--secure-port (/metrics", id="its metrics"),
        pytest.param(
            "leaderElection: {lockObjectName: x}", "leaderElection.lockObjectName", "it is resourceName now", id="lock"
        ),
        pytest.param(
            "profiles: [{plugins: {unreserve: {}}}]", "profiles[0].plugins.unreserve", "at reserve", id="in a profile"
        ),
        pytest.param("schedulerName: mine", "schedulerName", "it is a field of each profile", id="moved"),
    ],
)
def test_a_removed_field_is_told_where_it_went(body: str, path: str, told: str) -> None:
    assert told in removed.field(path)
    refused(HEAD + body, f"{path}: unknown field; {removed.field(path)}")


def test_a_policy() -> None:
    refused(
        "{kind: Policy, apiVersion: v1, predicates: []}",
        f'kind: found "Policy", expected "KubeSchedulerConfiguration"; {removed.POLICY}',
    )


def test_arguments_of_a_removed_plugin_and_one_that_is_disabled() -> None:
    name = "NodeResourcesMostAllocated"
    listed = f"plugins: {{score: {{disabled: [{{name: {name}}}]}}}}, pluginConfig: [{{name: {name}, args: {{}}}}]"
    notes = load(f"{HEAD}profiles: [{{{listed}}}]").notes
    assert len(notes) == 2
    assert [each for each in notes if not each.endswith(f"It was removed: {removed.PLUGINS[name]}")] == []
