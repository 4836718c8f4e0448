"""WorkloadPolicies: every form has the same rule, and all problems are reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from stowplan.objects import kinds
from stowplan.objects.selectors import LabelRequirement
from stowplan.objects.workload_policies import WorkloadPolicy
from tests.plugins.nodes.workload_policy.policies import a_policy

SEED = Path(__file__).parents[1] / "seeds" / "workload_policy"


@pytest.mark.parametrize(
    ("spelled", "type_", "method"),
    [
        pytest.param({}, "Preferred", "Balance", id="the defaults"),
        pytest.param({"allocationType": "Required"}, "Required", "Balance", id="as in the seed's example"),
        pytest.param({"allocationType": "require"}, "Required", "Balance", id="as in the seed's prose"),
        pytest.param({"allocationType": "REQUIRE"}, "Required", "Balance", id="in capitals"),
        pytest.param({"allocationType": "preferred"}, "Preferred", "Balance", id="preferred, as in the prose"),
        pytest.param({"allocationType": "Preferred"}, "Preferred", "Balance", id="Preferred, as in the flow"),
        pytest.param({"allocationMethod": "Fill"}, "Preferred", "Fill", id="Fill"),
        pytest.param({"allocationMethod": "fILL"}, "Preferred", "Fill", id="Fill in any case"),
        pytest.param({"allocationMethod": "balance"}, "Preferred", "Balance", id="balance"),
        pytest.param({"scheduleStrategy": "Fill"}, "Preferred", "Fill", id="as in the seed's design"),
        pytest.param({"scheduleStrategy": "fill"}, "Preferred", "Fill", id="scheduleStrategy in any case"),
        pytest.param(
            {"scheduleStrategy": "Fill", "allocationMethod": "Balance"}, "Preferred", "Balance", id="both: the method"
        ),
    ],
)  # fmt: skip
def test_the_forms_of_a_policy(spelled: dict[str, Any], type_: str, method: str) -> None:
    rule = a_policy(**spelled).rule
    assert (rule.type, rule.method, rule.problems) == (type_, method, ())
    assert (rule.required, rule.fills) == (type_ == "Required", method == "Fill")


@pytest.mark.parametrize(
    ("file", "desired", "type_", "method"),
    [
        pytest.param("design-details.yaml", {"member": 2, "host": 3}, "Preferred", "Fill", id="the design's"),
        pytest.param("workloadpolicy.yaml", {"member": 1, "host": 3}, "Required", "Fill", id="the test plan's"),
    ],
)
def test_the_policies_of_kosmos(file: str, desired: dict[str, int], type_: str, method: str) -> None:
    policy = kinds.convert(WorkloadPolicy, yaml.safe_load((SEED / file).read_text()))
    rule = policy.rule
    assert policy.key == "workload-test/workload-policy-test"
    assert (rule.topology_key, rule.desired(9)) == ("workload-test", desired)
    assert (rule.type, rule.method, rule.problems, rule.remarks) == (type_, method, (), ())


def test_a_selector_has_both_parts() -> None:
    expression = {"key": "tier", "operator": "In", "values": ["b", "a"]}
    rule = a_policy(labelSelector={"matchLabels": {"app": "x"}, "matchExpressions": [expression]}).rule
    assert rule.selector == (LabelRequirement("app", "In", ("x",)), LabelRequirement("tier", "In", ("a", "b")))


def test_two_methods_give_a_remark() -> None:
    both = a_policy(scheduleStrategy="Fill", allocationMethod="Balance").rule
    assert both.remarks == ("allocationMethod Balance is used, scheduleStrategy Fill is ignored",)
    assert a_policy(scheduleStrategy="Fill", allocationMethod="fill").rule.remarks == ()


def shares(**replicas: Any) -> dict[str, Any]:
    return {"allocationPolicy": [{"name": name, "replicas": each} for name, each in replicas.items()]}


@pytest.mark.parametrize(
    ("replicas", "pods", "desired"),
    [
        pytest.param({"a": "37.5%", "b": "62.5%"}, 8, {"a": 3, "b": 5}, id="of 8"),
        pytest.param({"a": "37.5%", "b": "62.5%"}, 16, {"a": 6, "b": 10}, id="of 16"),
        pytest.param({"a": "100%", "b": "0%"}, 5, {"a": 5, "b": 0}, id="all and nothing"),
        pytest.param({"a": 3, "b": 5}, 16, {"a": 3, "b": 5}, id="numbers stay as they are"),
    ],
)
def test_percentages(replicas: dict[str, Any], pods: int, desired: dict[str, int]) -> None:
    rule = a_policy(**shares(**replicas)).rule
    assert (rule.problems, rule.remarks, rule.desired(pods)) == ((), (), desired)


def test_percentages_of_less_than_all_give_a_remark() -> None:
    rule = a_policy(**shares(a="20%", b="70.25%")).rule
    assert (rule.problems, rule.remarks) == ((), ("the percentages of allocationPolicy add up to 90.25% only",))


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param({"topologyKey": ""}, "topologyKey is empty", id="no topology key"),
        pytest.param({"topologyKey": "a b"}, "topologyKey 'a b' is not a label key", id="one that no node can have"),
        pytest.param({"labelSelector": None}, "labelSelector is missing", id="no selector"),
        pytest.param({"labelSelector": {}}, "labelSelector is empty and would select every pod", id="an empty one"),
        pytest.param(
            {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            "labelSelector has an invalid condition",
            id="a selector that cannot be read",
        ),
        pytest.param({"allocationPolicy": []}, "allocationPolicy lists no domain", id="no domains"),
        pytest.param(
            {"allocationPolicy": [{"name": "a", "replicas": -1} for _ in range(257)]},
            "allocationPolicy lists 257 domains; 256 or fewer are right",
            id="too many domains, and no word on each of them",
        ),
        pytest.param(
            {"allocationPolicy": [{"name": "a", "replicas": -1}]},
            "allocationPolicy has -1 replicas for 'a'",
            id="less than nothing",
        ),
        pytest.param(
            {"allocationPolicy": [{"name": "a", "replicas": 1}, {"name": "a", "replicas": 2}]},
            "allocationPolicy lists 'a' 2 times",
            id="a domain twice",
        ),
        pytest.param(
            {"allocationType": "soft"}, "allocationType 'soft' is neither Required nor Preferred", id="a type"
        ),
        pytest.param({"allocationMethod": "x"}, "allocationMethod 'x' is neither Balance nor Fill", id="a method"),
        pytest.param({"scheduleStrategy": "x"}, "scheduleStrategy 'x' is neither Balance nor Fill", id="a strategy"),
        pytest.param(
            shares(a="30 %", b="70%"),
            "allocationPolicy has replicas '30 %' for 'a'; "
            'a number, or a percentage such as "30%" or "37.5%", is right',
            id="no percentage",
        ),
        pytest.param(
            shares(a="30%", b=2),
            "allocationPolicy has both numbers and percentages; choose one of them for all domains",
            id="a percentage and a number",
        ),
        pytest.param(
            shares(a="70%", b="30.5%"),
            "the percentages of allocationPolicy add up to 100.5%, which is more than 100%",
            id="more than all",
        ),
        pytest.param({"rebalance": "often"}, "rebalance 'often' is neither Never nor Evict", id="when to evict"),
        pytest.param({"matchLabelKeys": ["/"]}, "matchLabelKeys has '/', which is not a label key", id="a label key"),
    ],
)
def test_what_makes_a_policy_invalid(spec: dict[str, Any], problem: str) -> None:
    assert a_policy(**spec).rule.problems == (problem,)


def test_all_problems_are_reported() -> None:
    policy = kinds.convert(WorkloadPolicy, {"metadata": {"name": "p"}, "spec": {}})
    assert policy.rule.problems == (
        "topologyKey is empty", "labelSelector is missing", "allocationPolicy lists no domain",
    )  # fmt: skip


@pytest.mark.parametrize("replicas", [pytest.param(0, id="none"), pytest.param(2**31 - 1, id="very many")])
def test_numbers_of_replicas(replicas: int) -> None:
    assert a_policy({"a": replicas}).rule.problems == ()


def test_a_policy_is_decoded_with_its_status() -> None:
    policy = a_policy(generation=3)
    status = {
        "observedGeneration": 3,
        "domains": [{"name": "a", "desired": 1, "current": 2, "pending": 0}],
        "conditions": [{"type": "Valid", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }
    document = {**msgspec.to_builtins(policy), "status": status}
    found = kinds.decode(WorkloadPolicy, msgspec.json.encode(document))
    assert (found.rule, found.metadata.generation) == (policy.rule, 3)
    assert (found.status.domains[0].current, found.status.conditions[0].type) == (2, "Valid")
