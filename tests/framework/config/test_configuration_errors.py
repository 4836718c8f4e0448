"""Configurations that are wrong: one line that names the place, what was found there and what would be right.

kube-scheduler 1.36 refuses them too; but it takes a pluginConfig without a name, arguments that are no mapping (of a
plugin that is not its own) and the first of several documents.
"""

from __future__ import annotations

from collections.abc import Collection

import pytest

from stowplan.framework.config import configuration, document
from stowplan.objects.errors import ConfigError
from tests.framework.config.configurations import HEAD, implements, load, of_file, refused

MINIMAL = document.MINIMAL
TOO_MANY = "line {}: found more than 100,000 values; expected at most 100,000, each alias counted as what it stands for"
MERGE_BOMB = f"{HEAD}x:\n- &a0 {{k: v}}\n" + "".join(f"- &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 40))
ALIAS_BOMB = f"{HEAD}a0: &a0 [{', '.join('x' * 10)}]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("", f"the configuration is empty; {MINIMAL}", id="nothing"),
        pytest.param("# only a comment\n", f"the configuration is empty; {MINIMAL}", id="only a comment"),
        pytest.param("- a", f"found a list, expected one KubeSchedulerConfiguration; {MINIMAL}", id="a list"),
        pytest.param("hello", f'found "hello", expected one KubeSchedulerConfiguration; {MINIMAL}', id="a word"),
        pytest.param(
            HEAD + "profiles: [}", "line 3: not YAML: did not find expected node content", id="not YAML: its line"
        ),
        pytest.param("a: 1\nb:\n\tc: 1", "line 3: not YAML: found character that cannot start any token", id="tabs"),
        pytest.param(b"a: 1\nb: \xff\xfe", "line 2: not UTF-8 text: found the byte 0xff", id="not text"),
        pytest.param("parallelism: !!int x", "line 1: found 'x', expected what the tag !!int says", id="a false tag"),
        pytest.param('{"a":' * 500 + "1" + "}" * 500, "nested too deeply; expected at most 100 levels", id="deep JSON"),
        pytest.param("a: " + "[" * 500, "line 1: nested too deeply; expected at most 100 levels", id="deep YAML"),
        pytest.param(
            "#" * 4_000_000, "found a text of 4,000,000 characters, expected at most 3,145,728", id="too long"
        ),
        pytest.param(MERGE_BOMB, TOO_MANY.format(18), id="merge keys of merge keys"),
        pytest.param(ALIAS_BOMB, TOO_MANY.format(7), id="aliases of aliases"),
        pytest.param(HEAD + "---\n" + HEAD, "found 2 documents, expected one", id="two documents"),
        pytest.param(HEAD + "kind: x", 'line 3: the key "kind" appears twice', id="a key twice in YAML"),
        pytest.param('{"kind": "a",\t"kind": "b"}', 'the key "kind" appears twice', id="a key twice in JSON"),
        pytest.param(
            "{kind: x}", 'kind: found "x", expected "KubeSchedulerConfiguration"', id="a flow mapping is YAML, not JSON"
        ),
        pytest.param(
            "apiVersion: v1\nkind: ConfigMap",
            'kind: found "ConfigMap", expected "KubeSchedulerConfiguration"; give the text under its data',
            id="the ConfigMap around it",
        ),
        pytest.param(
            "kind: KubeSchedulerConfiguration",
            'apiVersion: found null, expected "kubescheduler.config.k8s.io/v1"',
            id="no version",
        ),
        pytest.param(
            HEAD.replace("/v1", "/v1alpha1"),
            'apiVersion: found "kubescheduler.config.k8s.io/v1alpha1", expected "kubescheduler.config.k8s.io/v1"',
            id="a version too old to read",
        ),
    ],
)
def test_texts_that_are_no_configuration(text: str | bytes, error: str) -> None:
    refused(text, error)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        pytest.param("profile: []", 'profile: unknown field; did you mean "profiles"?', id="an unknown field"),
        pytest.param("nonsense: ~", "nonsense: unknown field; known here: ", id="an unknown field, though null"),
        pytest.param(
            'parallelism: "16"', 'parallelism: found "16", expected an integer; write it without quotes', id="quoted"
        ),
        pytest.param("parallelism: 0", "parallelism: found 0, expected an integer >= 1", id="no parallelism"),
        pytest.param("parallelism: 1.5", "parallelism: found 1.5, expected an integer", id="a fraction"),
        pytest.param(
            "percentageOfNodesToScore: 101",
            "percentageOfNodesToScore: found 101, expected an integer <= 100",
            id="101 %",
        ),
        pytest.param(
            "profiles: [{percentageOfNodesToScore: -1}]",
            "profiles[0].percentageOfNodesToScore: found -1, expected an integer >= 0",
            id="a profile's percentage",
        ),
        pytest.param(
            'enableProfiling: "true"',
            'enableProfiling: found "true", expected true or false; write it without quotes',
            id="a quoted boolean",
        ),
        pytest.param(
            "profiles: [{schedulerName: on}]",
            "profiles[0].schedulerName: found true, expected a string; "
            "YAML reads yes, no, on and off as true and false: put it in quotes",
            id="a name that YAML takes for a boolean",
        ),
        pytest.param("profiles: {}", "profiles: found a mapping, expected a list", id="a mapping for a list"),
        pytest.param(
            "podInitialBackoffSeconds: 0",
            "podInitialBackoffSeconds: found 0, expected an integer >= 1",
            id="no backoff",
        ),
        pytest.param(
            "podInitialBackoffSeconds: 20",
            "podMaxBackoffSeconds: found 10, expected at least podInitialBackoffSeconds (20)",
            id="a backoff that shrinks",
        ),
        pytest.param(
            "clientConnection: {burst: -1}", "clientConnection.burst: found -1, expected an integer >= 0", id="burst"
        ),
        pytest.param(
            "leaderElection: {leaseDuration: 15}",
            'leaderElection.leaseDuration: found 15, expected a duration such as "15s" or "1m30s"',
            id="a duration without a unit",
        ),
        pytest.param(
            "leaderElection: {leaseDuration: 10s}",
            "leaderElection.leaseDuration: found 10s, expected more than renewDeadline (10s)",
            id="a lease as short as its renewal",
        ),
        pytest.param(
            "leaderElection: {leaseDuration: 1900ms, renewDeadline: 1500ms, retryPeriod: 100ms}",
            "leaderElection.leaseDuration: found 1.9s, which a Lease has as 1s; write whole seconds, more than "
            "renewDeadline (1.5s)",
            id="a lease that others take for shorter",
        ),
        pytest.param(
            "leaderElection: {retryPeriod: 9s}",
            "leaderElection.renewDeadline: found 10s, expected more than 1.2 times retryPeriod (10.8s)",
            id="a retry after the deadline",
        ),
        pytest.param(
            "leaderElection: {retryPeriod: -1s}",
            "leaderElection.retryPeriod: found -1s, expected more than 0s",
            id="retry",
        ),
        pytest.param(
            "leaderElection: {resourceLock: endpoints}",
            'leaderElection.resourceLock: found "endpoints", expected "leases"',
            id="an old lock",
        ),
        pytest.param(
            "profiles: [{schedulerName: a}, {}]",
            "profiles[1].schedulerName: missing or empty; give every profile a name",
            id="a nameless profile of two",
        ),
        pytest.param(
            'profiles: [{schedulerName: ""}]',
            "profiles[0].schedulerName: missing or empty; give every profile a name",
            id="an empty name",
        ),
        pytest.param(
            "profiles: [{schedulerName: a}, {schedulerName: a}]",
            'profiles[1].schedulerName: "a" is the name of profiles[0] already',
            id="a name twice",
        ),
        pytest.param(
            "profiles: [{schedulerName: a}, "
            "{schedulerName: b, plugins: {queueSort: {enabled: [{name: PrioritySort}]}}}]",
            "profiles[1].plugins.queueSort: differs from profiles[0]; write the same queueSort in every profile",
            id="queueSort written differently, though it means the same",
        ),
        pytest.param(
            "profiles: [{schedulerName: a}, {schedulerName: b, pluginConfig: [{name: PrioritySort, args: {x: 1}}]}]",
            "profiles[1].pluginConfig: the arguments of PrioritySort, the queueSort plugin, differ from profiles[0]",
            id="queueSort with other arguments",
        ),
    ],
)
def test_settings_that_are_refused(body: str, error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        of_file(body)
    assert str(caught.value).startswith(error)
    assert error.endswith(": ") or str(caught.value) == error


@pytest.mark.parametrize(
    ("plugins", "error"),
    [
        pytest.param("scores: {}", '.scores: unknown field; did you mean "score"?', id="an unknown point"),
        pytest.param("score: {enable: []}", '.score.enable: unknown field; did you mean "enabled"?', id="enable"),
        pytest.param("score: {enabled: [{weight: 1}]}", '.score.enabled[0]: "name" is missing', id="no name"),
        pytest.param(
            "score: {enabled: [SPPriority]}", '.score.enabled[0]: found "SPPriority", expected a mapping', id="a word"
        ),
        pytest.param(
            "score: {enabled: [{name: SPPriority, weight: -3}]}",
            ".score.enabled[0].weight: found -3, expected an integer >= 0",
            id="a negative weight",
        ),
        pytest.param(
            "score: {enabled: [{name: SPPriority, weight: 9223372036854775807}]}",
            ".score.enabled[0].weight: found 9223372036854775807, expected an integer <= 2147483647",
            id="a weight whose score would overflow",
        ),
        pytest.param(
            "score: {enabled: [{name: SPPriority}, {name: ImageLocality, weight: 2.5}]}",
            ".score.enabled[1].weight: found 2.5, expected an integer",
            id="half a weight",
        ),
        pytest.param(
            "score: {enabled: [{name: NodeResourceFit}]}",
            '.score.enabled[0]: there is no plugin "NodeResourceFit"; did you mean "NodeResourcesFit"?',
            id="a misspelt plugin",
        ),
        pytest.param(
            "multiPoint: {enabled: [{name: Quux}]}",
            '.multiPoint.enabled[0]: there is no plugin "Quux"; is it registered with this scheduler?',
            id="an unknown plugin",
        ),
        pytest.param(
            "filter: {enabled: [{name: ImageLocality}]}",
            '.filter.enabled[0]: plugin "ImageLocality" does not implement filter; it can be listed at score',
            id="a plugin at a point it does not have",
        ),
        pytest.param(
            "score: {enabled: [{name: SPPriority}, {name: SPPriority}]}",
            '.score.enabled[1]: plugin "SPPriority" appears twice; first at profiles[0].plugins.score.enabled[0]',
            id="twice at a point",
        ),
        pytest.param(
            "multiPoint: {enabled: [{name: ImageLocality}, {name: ImageLocality}]}",
            '.multiPoint.enabled[1]: plugin "ImageLocality" appears twice; '
            "first at profiles[0].plugins.multiPoint.enabled[0]",
            id="twice in multiPoint",
        ),
        pytest.param(
            "filter: {enabled: [{name: EBSLimits}]}",
            '.filter.enabled[0]: plugin "EBSLimits" was removed; NodeVolumeLimits counts the volumes of every driver',
            id="a removed plugin",
        ),
        pytest.param(
            "queueSort: {enabled: [{name: Coscheduling}]}",
            ".queueSort: found 2 (PrioritySort, Coscheduling), expected exactly one plugin; "
            'disable the default with {disabled: [{name: "*"}]}',
            id="two queue sorts",
        ),
        pytest.param(
            "queueSort: {disabled: [{name: PrioritySort}]}",
            ".queueSort: found none, expected exactly one plugin; enable PrioritySort",
            id="no queue sort",
        ),
        pytest.param(
            'bind: {disabled: [{name: "*"}]}',
            ".bind: found none, expected one plugin or more; enable DefaultBinder",
            id="nobody binds",
        ),
    ],
)
def test_plugins_that_are_refused(plugins: str, error: str) -> None:
    refused(HEAD + f"profiles: [{{plugins: {{{plugins}}}}}]", f"profiles[0].plugins{error}")


@pytest.mark.parametrize(
    ("entries", "error"),
    [
        pytest.param("{name: A}, {name: A}", '[1]: plugin "A" appears twice', id="twice"),
        pytest.param("{name: CinderLimits}", '[0]: plugin "CinderLimits" was removed; remove the entry', id="removed"),
        pytest.param("{args: {}}", '[0]: "name" is missing', id="nameless"),
        pytest.param("{name: A, args: 5}", "[0].args: found 5, expected a mapping", id="another plugin's number"),
    ],
)
def test_plugin_configs_that_are_refused(entries: str, error: str) -> None:
    refused(HEAD + f"profiles: [{{pluginConfig: [{entries}]}}]", f"profiles[0].pluginConfig{error}")


@pytest.mark.parametrize(
    ("extenders", "error"),
    [
        pytest.param(
            "{urlprefix: x}", '[0].urlprefix: unknown field; did you mean "urlPrefix"?', id="an unknown field"
        ),
        pytest.param(
            "{prioritizeVerb: rank}",
            "[0].weight: found 0, expected an integer >= 1 because there is a prioritizeVerb",
            id="a ranking that weighs nothing",
        ),
        pytest.param(
            "{bindVerb: a}, {}, {bindVerb: b}",
            "[2].bindVerb: extenders[0] binds already, and only one extender may",
            id="two that bind",
        ),
        pytest.param(
            "{managedResources: [{name: cpu}]}",
            '[0].managedResources[0].name: found "cpu", expected an extended resource such as example.com/gpu',
            id="a resource that is not extended",
        ),
        pytest.param(
            "{managedResources: [{name: a.b/c}]}, {managedResources: [{name: a.b/c}]}",
            '[1].managedResources[0].name: "a.b/c" is managed twice',
            id="a resource twice",
        ),
        pytest.param(
            "{httpTimeout: fast}",
            '[0].httpTimeout: found "fast", expected a duration such as "15s" or "1m30s"',
            id="fast",
        ),
        pytest.param(
            "{tlsConfig: {caData: '!'}}", '[0].tlsConfig.caData: found "!": Invalid base64 encoded string', id="base64"
        ),
        pytest.param(
            "{tlsConfig: {insecure: true, caFile: /ca}}",
            "[0].tlsConfig.insecure: found true beside a CA, which then would not be used; remove one of the two",
            id="insecure with a CA",
        ),
    ],
)
def test_extenders_that_are_refused(extenders: str, error: str) -> None:
    refused(HEAD + f"extenders: [{extenders}]", f"extenders{error}")


def test_an_error_of_the_registry_gets_its_path() -> None:
    def broken(name: str) -> Collection[str] | None:
        if name == "x.py:X":
            raise ConfigError("there is no file x.py")
        return implements(name)

    with pytest.raises(ConfigError, match=r"^profiles\[0\]\.plugins\.filter\.enabled\[0\]: there is no file x\.py$"):
        configuration.load(HEAD + "profiles: [{plugins: {filter: {enabled: [{name: 'x.py:X'}]}}}]", implements=broken)


def test_an_error_names_the_file() -> None:
    with pytest.raises(ConfigError, match=r"^scheduler\.yaml: parallelism: found 0"):
        load(HEAD + "parallelism: 0", file="scheduler.yaml")
