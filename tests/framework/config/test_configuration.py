"""Settings and arguments of configurations that are right: what kube-scheduler 1.36 makes of them.

The goldens' configurations were all accepted by the real kube-scheduler; they are tried when they are at hand. Which
plugins a configuration enables is in `test_plugin_sets.py`.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.framework.config import configuration, document
from stowplan.objects.errors import ConfigError
from tests.framework.config.configurations import DEFAULT_SCORES, FLAVOUR, HEAD, args_of, at, implements, load, of_file

GOLDEN = Path(os.environ.get("STOWPLAN_GOLDEN", Path(__file__).parents[2] / "golden")) / "nodes"


# --- defaults --------------------------------------------------------------------------------------------------------


def test_without_a_file_settings_are_kube_schedulers() -> None:
    loaded = configuration.default(implements)
    assert [profile.scheduler_name for profile in loaded.profiles] == ["default-scheduler"]
    assert loaded.leader_election == configuration.LeaderElection()
    assert (loaded.leader_election.lease_duration, loaded.leader_election.retry_period) == (15.0, 2.0)
    assert (loaded.parallelism, loaded.pod_initial_backoff_seconds, loaded.pod_max_backoff_seconds) == (16, 1, 10)
    assert (loaded.enable_profiling, loaded.enable_contention_profiling) == (True, True)
    assert loaded.percentage_of_nodes_to_score is None
    assert (loaded.extenders, loaded.notes, loaded.delay_cache_until_active) == ((), (), False)


def test_without_a_file_plugins_get_their_default_arguments() -> None:
    both = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
    given = {name: args for name, args in configuration.default(implements).profiles[0].plugin_args.items() if args}
    assert given == {
        "DefaultPreemption": {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100},
        "DynamicResources": {"filterTimeout": 10.0, "bindingTimeout": 600.0},
        "InterPodAffinity": {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": False},
        "NodeResourcesBalancedAllocation": {"resources": both},
        "NodeResourcesFit": {
            "ignoredResources": [],
            "ignoredResourceGroups": [],
            "scoringStrategy": {"type": "LeastAllocated", "resources": both},
        },
        "PodTopologySpread": {"defaultingType": "System", "defaultConstraints": []},
        "VolumeBinding": {"bindTimeoutSeconds": 600},
    }


# --- arguments and settings that are right ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        pytest.param(
            "DynamicResources", "{filterTimeout: 1m30s, bindingTimeout: 1h}", {"filterTimeout": 90.0}, id="times"
        ),
        pytest.param("DynamicResources", "{filterTimeout: 0s}", {"filterTimeout": 0.0}, id="0 turns the timeout off"),
        pytest.param(
            "InterPodAffinity", "{hardPodAffinityWeight: 0}", {"hardPodAffinityWeight": 0}, id="an explicit 0"
        ),
        pytest.param(
            "InterPodAffinity", "{hardPodAffinityWeight: ~}", {"hardPodAffinityWeight": 1}, id="null is unset"
        ),
        pytest.param(
            "NodeResourcesFit",
            "{scoringStrategy: {type: MostAllocated, resources: [{name: nvidia.com/gpu}]}}",
            {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "nvidia.com/gpu", "weight": 1}]}},
            id="a resource without a weight weighs 1",
        ),
        pytest.param(
            "NodeAffinity",
            "{kind: NodeAffinityArgs, addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
            "{nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}]}}}",
            {
                "addedAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
                        ]
                    }
                }
            },
            id="added affinity stays as written",
        ),
        pytest.param("PodTopologySpread", "", {"defaultingType": "System"}, id="a name without arguments"),
    ],
)
def test_arguments(name: str, args: str, expected: dict[str, Any]) -> None:
    assert args_of(name, args).items() >= expected.items()


def test_arguments_of_other_plugins_pass_through() -> None:
    body = f"""
profiles:
- plugins: {{score: {{enabled: [{{name: {FLAVOUR}}}]}}}}
  pluginConfig:
  - name: {FLAVOUR}
    args: {{apiVersion: a/v1, kind: FlavourArgs, labelName: tier, window: 22:30, since: 2024-01-31, deep: [~]}}
"""
    args = of_file(body).profiles[0].plugin_args[FLAVOUR]
    assert (args.pop("apiVersion"), args.pop("kind")) == ("a/v1", "FlavourArgs")  # the registry knows if it takes them
    assert args == {"labelName": "tier", "window": "22:30", "since": "2024-01-31", "deep": [None]}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15s", 15.0),
        ("1m30s", 90.0),
        ("1.5h", 5400.0),
        ("100ms", 0.1),
        ("0", 0.0),
        ("-2m", -120.0),
        ("15", None),
        ("s", None),
        ("1s2", None),
        ("", None),
        ("1 s", None),
    ],
)
def test_durations_are_gos(text: str, seconds: float | None) -> None:
    assert document.duration(text) == (None if seconds is None else pytest.approx(seconds))


def test_settings_are_read() -> None:
    loaded = of_file("""
parallelism: 4
percentageOfNodesToScore: 0
enableProfiling: no
podInitialBackoffSeconds: 3
podMaxBackoffSeconds: 3
delayCacheUntilActive: y
clientConnection: {kubeconfig: /etc/k, qps: 0, burst: 0}
leaderElection: {leaseDuration: 137s, renewDeadline: 107s, retryPeriod: 0s, resourceNamespace: ""}
profiles: [{schedulerName: a, percentageOfNodesToScore: 30}, {schedulerName: b}]
""")
    assert (loaded.parallelism, loaded.percentage_of_nodes_to_score, loaded.delay_cache_until_active) == (4, 0, True)
    assert (loaded.enable_profiling, loaded.enable_contention_profiling) == (False, False)
    assert [(each.scheduler_name, each.percentage_of_nodes_to_score) for each in loaded.profiles] == [
        ("a", 30),
        ("b", None),
    ]
    assert loaded.client_connection == configuration.ClientConnection(kubeconfig="/etc/k")
    assert loaded.leader_election.lease_duration == 137.0
    assert (loaded.leader_election.retry_period, loaded.leader_election.resource_namespace) == (2.0, "kube-system")


@pytest.mark.parametrize("text", ["parallelism: 2.0", "parallelism: 0x2", "parallelism: 2\n---\n"])
def test_yaml_is_read_as_go_reads_it(text: str) -> None:
    assert of_file(text).parallelism == 2


def test_extenders_are_read_and_their_resources_ignored_by_fit() -> None:
    loaded = of_file("""
extenders:
- urlPrefix: https://127.0.0.1:1/x
  filterVerb: filter
  prioritizeVerb: rank
  weight: 3
  enableHTTPS: true
  tlsConfig: {caData: aGVsbG8=, serverName: x}
  managedResources: [{name: example.com/foo, ignoredByScheduler: true}, {name: example.com/bar}]
- {urlPrefix: http://two, httpTimeout: 300ms, ignorable: true, bindVerb: bind}
profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [example.com/old]}}]}]
""")
    one, two = loaded.extenders
    assert (one.url_prefix, one.weight, one.enable_https, one.http_timeout) == ("https://127.0.0.1:1/x", 3, True, 5.0)
    assert one.tls_config is not None
    assert one.tls_config.ca_data == b"hello"
    assert (two.http_timeout, two.ignorable, two.bind_verb) == (0.3, True, "bind")
    assert loaded.profiles[0].plugin_args["NodeResourcesFit"]["ignoredResources"] == ["example.com/foo"]


@pytest.mark.parametrize(
    ("body", "note"),
    [
        pytest.param(
            "profiles: [{pluginConfig: [{name: NodeResourceFit, args: {x: 1}}]}]",
            'profiles[0].pluginConfig[0]: plugin "NodeResourceFit" is not enabled. did you mean "NodeResourcesFit"?',
            id="arguments for a misspelt plugin",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: SPPriority}]}]",
            'profiles[0].pluginConfig[0]: plugin "SPPriority" is not enabled.',
            id="arguments for a plugin that does not run",
        ),
        pytest.param(
            "profiles: [{plugins: {score: {disabled: [{name: ImageLocalty}]}}}]",
            'profiles[0].plugins.score.disabled[0]: there is no plugin "ImageLocalty" to disable. '
            'did you mean "ImageLocality"?',
            id="disabling a misspelt plugin",
        ),
    ],
)
def test_what_has_no_effect_is_noted(body: str, note: str) -> None:
    assert of_file(body).notes == (note,)


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2", "v1beta3"])
def test_old_versions_are_read_with_a_note(version: str) -> None:
    args = f"{{apiVersion: kubescheduler.config.k8s.io/{version}}}"
    body = f"profiles: [{{pluginConfig: [{{name: NodeAffinity, args: {args}}}]}}]"
    loaded = load(HEAD.replace("/v1", f"/{version}") + body)
    assert at(loaded.profiles[0], "score") == DEFAULT_SCORES
    assert len(loaded.notes) == 1
    assert loaded.notes[0].endswith("write kubescheduler.config.k8s.io/v1")


@pytest.mark.parametrize(
    ("plugins", "where", "more"),
    [
        pytest.param(
            "score: {enabled: [{name: NodeAffinity}, {name: SelectorSpread, weight: 1}]}", "score.enabled[1]", "",
            id="at score",
        ),
        pytest.param("multiPoint: {enabled: [{name: SelectorSpread}]}", "multiPoint.enabled[0]", "", id="everywhere"),
        pytest.param("preScore: {disabled: [{name: SelectorSpread}]}", "preScore.disabled[0]", "", id="disabled"),
        pytest.param(
            "score: {enabled: [{name: SelectorSpread}], disabled: [{name: PodTopologySpread}]}", "score.enabled[0]",
            "; enable PodTopologySpread, which this profile does not", id="without its successor",
        ),
    ],
)  # fmt: skip
def test_selector_spread_in_an_old_file_is_left_out_with_a_note(plugins: str, where: str, more: str) -> None:
    body = f"profiles: [{{plugins: {{{plugins}}}}}]"
    loaded = load(HEAD.replace("/v1", "/v1beta3") + body)
    assert all(each.name != "SelectorSpread" for listed in loaded.profiles[0].points.values() for each in listed)
    assert "SelectorSpread" not in loaded.profiles[0].plugin_args
    note = loaded.notes[1]
    assert note.startswith(f"profiles[0].plugins.{where}: SelectorSpread is left out: it ended with v1; ")
    assert note.endswith(f"StatefulSets{more}") and len(loaded.notes) == 2
    if "enabled" in where:
        with pytest.raises(ConfigError, match='plugin "SelectorSpread" was removed; PodTopologySpread spreads'):
            load(HEAD + body)


def test_contention_profiling_is_noted_if_it_is_asked_for() -> None:
    assert of_file("enableContentionProfiling: true").notes == (
        "enableContentionProfiling: has no effect: there is no profile of contended locks",
    )


# --- configurations from elsewhere -----------------------------------------------------------------------------------

SEED = """
enableContentionProfiling: false
enableProfiling: false
percentageOfNodesToScore: 100
profiles:
  - schedulerName: secondary-scheduler
    plugins:
      score:
        enabled:
          - name: FlavourClusterWide
          - name: NodeResourcesFit
          - name: NodeResourcesBalancedAllocation
    pluginConfig:
      - name: FlavourClusterWide
leaderElection: {leaderElect: true, leaseDuration: 137s, renewDeadline: 107s, resourceLock: leases, retryPeriod: 26s}
"""


@pytest.mark.parametrize(
    "form", [str, str.encode, yaml.safe_load, lambda text: json.dumps(yaml.safe_load(text), indent="\t")]
)
def test_the_configuration_of_flavour_cluster_wide_in_any_form(form: Any) -> None:
    profile = load(form(HEAD + SEED)).profiles[0]
    assert at(profile, "score").startswith("NodeResourcesFit 1, NodeResourcesBalancedAllocation 1, TaintToleration 3, ")
    assert at(profile, "score").endswith("ImageLocality 1, FlavourClusterWide 1")
    assert profile.plugin_args[FLAVOUR] == {}


def golden_configurations() -> list[str]:
    found: set[str] = set()
    for file in sorted(GOLDEN.glob("*.jsonl.gz")):
        with gzip.open(file, "rt") as lines:
            found.update(json.dumps(json.loads(line).get("config"), sort_keys=True) for line in lines)
    return sorted(found - {"null"})


@pytest.mark.skipif(not GOLDEN.is_dir(), reason=f"no golden records in {GOLDEN}; set STOWPLAN_GOLDEN")
def test_every_golden_configuration_loads() -> None:
    configurations = golden_configurations()
    assert configurations
    for text in configurations:
        assert load(text).notes == ()
