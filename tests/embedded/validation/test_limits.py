"""ResourceQuotas and LimitRanges that the API server refuses, in its words."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.embedded.errors import ApiError
from tests.embedded.test_limit_ranges import a_range, per
from tests.embedded.test_quotas import a_quota
from tests.embedded.virtual_cluster import VirtualCluster

WHOLE = 'spec.hard[pods]: Invalid value: "1500m": must be an integer'
SCOPES = "spec.scopes: Invalid value:"
SELECTED = "spec.scopeSelector.matchExpressions"


def selected(**expression: Any) -> dict[str, Any]:
    return a_quota({"pods": "1"}, scopeSelector={"matchExpressions": [expression]})


REFUSED = [
    pytest.param(a_quota({"pods": "1500m"}), [WHOLE], id="half a pod"),
    pytest.param(a_quota({"pods": "-1"}), ['spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0'],
                 id="less than nothing"),
    pytest.param(a_quota({"odd": "1"}),
                 ['spec.hard[odd]: Invalid value: "odd": must be a standard resource type or fully qualified',
                  'spec.hard[odd]: Invalid value: "odd": must be a standard resource for quota'], id="an odd name"),
    pytest.param(a_quota({"pods": "1"}, scopes=["Odd"]), [f'{SCOPES} ["Odd"]: unsupported scope'], id="an odd scope"),
    pytest.param(a_quota({"cpu": "1"}, scopes=["BestEffort"]),
                 [f'{SCOPES} ["BestEffort"]: unsupported scope applied to resource'], id="a scope of other resources"),
    pytest.param(a_quota({"pods": "1"}, scopes=["BestEffort", "NotBestEffort"]),
                 [f'{SCOPES} ["BestEffort","NotBestEffort"]: conflicting scopes'], id="scopes that exclude each other"),
    pytest.param(selected(scopeName="PriorityClass", operator="In"),
                 [f"{SELECTED}.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' "
                  "for scope selector"], id="no values"),
    pytest.param(selected(scopeName="PriorityClass", operator="Odd"),
                 [f'{SELECTED}.operator: Invalid value: "Odd": not a valid selector operator'], id="an odd operator"),
    pytest.param(selected(scopeName="PriorityClass", operator="Exists", values=["x"]),
                 [f'{SELECTED}.values: Invalid value: ["x"]: must be no value when `operator` is \'Exist\' or '
                  "'DoesNotExist' for scope selector"], id="values for nothing"),
    pytest.param(a_range(per("Odd")),
                 ['spec.limits[0].type: Invalid value: "Odd": must be a standard limit type or fully qualified'],
                 id="an odd type"),
    pytest.param(a_range(per(), per()), ['spec.limits[1].type: Duplicate value: "Container"'], id="a type twice"),
    pytest.param(a_range(per(min={"cpu": "2"}, max={"cpu": "1"}, default={"cpu": "1"}, defaultRequest={"cpu": "1"})),
                 ['spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
                  'spec.limits[0].defaultRequest[cpu]: Invalid value: "1": min value 2 is greater than default request '
                  "value 1",
                  'spec.limits[0].default[cpu]: Invalid value: "2": min value 2 is greater than default value 1'],
                 id="bounds in the wrong order"),
    pytest.param(a_range(per(default={"cpu": "1"}, defaultRequest={"cpu": "2"})),
                 ['spec.limits[0].defaultRequest[cpu]: Invalid value: "2": default request value 2 is greater than '
                  "default limit value 1"], id="a request above the limit"),
    pytest.param(a_range(per("Pod", default={"cpu": "1"})),
                 ["spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"],
                 id="a pod's default"),
    pytest.param(a_range(per(maxLimitRequestRatio={"cpu": "500m"})),
                 ['spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1'],
                 id="a small ratio"),
    pytest.param(a_range(per("Pod", maxLimitRequestRatio={"cpu": "9"}, min={"cpu": "1"}, max={"cpu": "2"})),
                 ['spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "9": ratio 9 is greater than '
                  "max/min = 2.000000"], id="a large ratio"),
    pytest.param(a_range(per("PersistentVolumeClaim")),
                 ["spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but "
                  "neither was provided"], id="a claim without storage"),
    pytest.param(a_range(per(max={"storage": "1Gi"}, default={"storage": "1"}, defaultRequest={"storage": "1"})),
                 [f'spec.limits[0].{part}[storage]: Invalid value: "storage": must be a standard resource for '
                  "containers"
                  for part in ("max", "default", "defaultRequest")], id="what no container has"),
    pytest.param(a_range(per(default={"example.com/x": "2"}, defaultRequest={"example.com/x": "1"})),
                 ['spec.limits[0].defaultRequest[example.com/x]: Invalid value: "1": default value 2 must equal to '
                  "defaultRequest value 1 in example.com/x"], id="what cannot be overcommitted"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "expected"), REFUSED)
def test_it_is_refused(document: dict[str, Any], expected: list[str]) -> None:
    with pytest.raises(ApiError) as refused:
        VirtualCluster().create(document)
    kind, name = document["kind"], document["metadata"]["name"]
    told = expected[0] if len(expected) == 1 else f"[{', '.join(expected)}]"
    assert (refused.value.code, refused.value.message) == (422, f'{kind} "{name}" is invalid: {told}')


def test_scopes_cannot_change() -> None:
    cluster = VirtualCluster()
    cluster.create(a_quota({"pods": "1"}, scopes=["Terminating"]))
    with pytest.raises(ApiError, match=r'spec.scopes: Invalid value: \["NotTerminating"\]: field is immutable'):
        cluster.change("resourcequotas", "default/q", scopes=["NotTerminating"])


def test_a_quota_takes_all_names() -> None:
    names = (
        "pods", "cpu", "limits.ephemeral-storage", "requests.storage", "hugepages-2Mi", "requests.hugepages-1Gi",
        "count/deployments.apps", "requests.nvidia.com/gpu", "gold.storageclass.storage.k8s.io/requests.storage",
        "services.nodeports", "resourcequotas",
    )  # fmt: skip
    assert VirtualCluster().create(a_quota(dict.fromkeys(names, "1")))["spec"]["hard"] == dict.fromkeys(names, "1")
