"""Arguments of kube-scheduler's plugins that are refused, each with its path and what would be right."""

from __future__ import annotations

import pytest

from stowplan.framework.config import document
from tests.framework.config.configurations import HEAD, refused

MINIMAL = document.MINIMAL

FIT = "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: %s}}}"
SPREAD = "{defaultingType: List, defaultConstraints: [%s]}"
ZONE = "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}"
NEEDS = "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{%s}]}}}"
TERM = ".addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"


@pytest.mark.parametrize(
    ("name", "args", "error"),
    [
        pytest.param(
            "NodeResourcesFit",
            "{scoringstrategy: {}}",
            '.scoringstrategy: unknown field; did you mean "scoringStrategy"?',
            id="an unknown argument",
        ),
        pytest.param("NodeResourcesFit", "[]", ": found a list, expected a mapping", id="a list"),
        pytest.param(
            "NodeAffinity",
            "{kind: InterPodAffinityArgs}",
            '.kind: found "InterPodAffinityArgs", expected "NodeAffinityArgs"',
            id="another plugin's arguments",
        ),
        pytest.param(
            "NodeAffinity",
            "{apiVersion: kubescheduler.config.k8s.io/v1beta3}",
            '.apiVersion: found "kubescheduler.config.k8s.io/v1beta3", expected "kubescheduler.config.k8s.io/v1"',
            id="arguments older than the file",
        ),
        pytest.param(
            "DefaultPreemption",
            "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}",
            ".minCandidateNodesPercentage: found 0, and minCandidateNodesAbsolute is 0 too; raise one of the two",
            id="no candidates",
        ),
        pytest.param(
            "DefaultPreemption",
            "{minCandidateNodesPercentage: 101}",
            ".minCandidateNodesPercentage: found 101, expected an integer <= 100",
            id="101 % of candidates",
        ),
        pytest.param(
            "InterPodAffinity",
            "{hardPodAffinityWeight: 101}",
            ".hardPodAffinityWeight: found 101, expected an integer <= 100",
            id="too hard an affinity",
        ),
        pytest.param(
            "NodeResourcesFit",
            "{scoringStrategy: {resources: [{name: cpu}]}}",
            '.scoringStrategy.type: found "", expected one of LeastAllocated, MostAllocated, RequestedToCapacityRatio',
            id="a strategy that is given needs its type",
        ),
        pytest.param(
            "NodeResourcesFit",
            "{scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 101}]}}",
            ".scoringStrategy.resources[0].weight: found 101, expected an integer from 1 to 100",
            id="too heavy a resource",
        ),
        pytest.param(
            "NodeResourcesFit",
            "{ignoredResourceGroups: [example.com/gpu]}",
            '.ignoredResourceGroups[0]: found "example.com/gpu", expected the part before the slash',
            id="a resource for a group",
        ),
        pytest.param(
            "NodeResourcesFit",
            "{ignoredResources: ['a b']}",
            '.ignoredResources[0]: found "a b", expected a name such as cpu or example.com/gpu',
            id="no resource name",
        ),
        pytest.param(
            "NodeResourcesFit",
            "{scoringStrategy: {type: RequestedToCapacityRatio}}",
            ".scoringStrategy.requestedToCapacityRatio.shape: missing or empty; "
            "give it a point such as {utilization: 0, score: 10}",
            id="a ratio without a shape",
        ),
        pytest.param(
            "NodeResourcesFit",
            FIT % "[{utilization: 5, score: 1}, {utilization: 5, score: 2}]",
            ".scoringStrategy.requestedToCapacityRatio.shape[1].utilization: found 5, expected more than 5",
            id="a shape that does not rise",
        ),
        pytest.param(
            "NodeResourcesFit",
            FIT % "[{utilization: 5, score: 11}]",
            ".scoringStrategy.requestedToCapacityRatio.shape[0].score: found 11, expected an integer <= 10",
            id="a shape that scores 11",
        ),
        pytest.param(
            "NodeResourcesFit",
            "{scoringStrategy: {type: MostAllocated, requestedToCapacityRatio: {}}}",
            ".scoringStrategy.requestedToCapacityRatio: not allowed when type is MostAllocated",
            id="a shape for another strategy",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            "{resources: [{name: cpu, weight: 2}]}",
            ".resources[0].weight: found 2, expected 1",
            id="a balance with weights",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            "{resources: [{name: cpu}, {name: cpu}]}",
            '.resources[1].name: "cpu" appears twice',
            id="a resource twice",
        ),
        pytest.param(
            "PodTopologySpread",
            f"{{defaultConstraints: [{ZONE}]}}",
            ".defaultingType: System brings its own constraints, but defaultConstraints is not empty; "
            "write defaultingType: List, or remove defaultConstraints",
            id="constraints beside System",
        ),
        pytest.param(
            "PodTopologySpread",
            "{defaultingType: Lists}",
            '.defaultingType: found "Lists", expected one of List, System',
            id="an unknown defaulting",
        ),
        pytest.param(
            "PodTopologySpread",
            SPREAD % f"{ZONE}, {ZONE}",
            ".defaultConstraints[1]: zone with DoNotSchedule appears twice",
            id="twice",
        ),
        pytest.param(
            "PodTopologySpread",
            SPREAD % "{}",
            ".defaultConstraints[0].maxSkew: found 0, expected an integer >= 1",
            id="no skew",
        ),
        pytest.param(
            "PodTopologySpread",
            SPREAD % "{maxSkew: 1}",
            '.defaultConstraints[0].topologyKey: found "", expected a name such as cpu or example.com/gpu',
            id="no key",
        ),
        pytest.param(
            "PodTopologySpread",
            SPREAD % "{maxSkew: 1, topologyKey: zone}",
            '.defaultConstraints[0].whenUnsatisfiable: found "", expected one of DoNotSchedule, ScheduleAnyway',
            id="no action",
        ),
        pytest.param(
            "PodTopologySpread",
            SPREAD % ZONE.replace("}", ", labelSelector: {}}"),
            ".defaultConstraints[0].labelSelector: not allowed: each pod brings its own; remove it",
            id="a selector",
        ),
        pytest.param(
            "VolumeBinding",
            "{bindTimeoutSeconds: -1}",
            ".bindTimeoutSeconds: found -1, expected an integer >= 0",
            id="time",
        ),
        pytest.param(
            "VolumeBinding",
            "{shape: [{utilization: 0, score: 1}]}",
            ".shape: not allowed; remove it: it needs the feature gate StorageCapacityScoring",
            id="a shape for volumes",
        ),
        pytest.param(
            "DynamicResources", "{filterTimeout: -1s}", ".filterTimeout: found -1s, expected 0s or more", id="negative"
        ),
        pytest.param(
            "DynamicResources",
            "{bindingTimeout: 500ms}",
            ".bindingTimeout: found 0.5s, expected 1s or more",
            id="short",
        ),
        pytest.param(
            "NodeAffinity",
            NEEDS % "matchExpressions: [{key: zone, operator: Is, values: [a]}]",
            f'{TERM}.matchExpressions[0].operator: found "Is", expected one of DoesNotExist, Exists, Gt, In, Lt, NotIn',
            id="an unknown operator",
        ),
        pytest.param(
            "NodeAffinity",
            NEEDS % "matchExpressions: [{key: zone, operator: In}]",
            f"{TERM}.matchExpressions[0].values: found 0 values, but In takes at least one value",
            id="In nothing",
        ),
        pytest.param(
            "NodeAffinity",
            NEEDS % 'matchExpressions: [{key: size, operator: Gt, values: ["big"]}]',
            f'{TERM}.matchExpressions[0].values[0]: found "big", expected a whole number in quotes',
            id="more than big",
        ),
        pytest.param(
            "NodeAffinity",
            NEEDS % "matchFields: [{key: metadata.name, operator: Exists}]",
            f'{TERM}.matchFields[0].operator: found "Exists", expected one of In, NotIn',
            id="a field that exists",
        ),
    ],
)
def test_arguments_that_are_refused(name: str, args: str, error: str) -> None:
    refused(
        HEAD + f"profiles: [{{pluginConfig: [{{name: {name}, args: {args}}}]}}]",
        f"profiles[0].pluginConfig[0].args{error}",
    )
