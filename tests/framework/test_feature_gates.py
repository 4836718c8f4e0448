"""What `--feature-gates` accepts, and what it says of the rest."""

from __future__ import annotations

import pytest

from stowplan.framework import feature_gates
from stowplan.framework.feature_gates import DEFAULT_GATES, GATES, FeatureGates
from stowplan.objects.errors import ConfigError

NAME = "TaintTolerationComparisonOperators"
ON = FeatureGates(taint_toleration_comparison_operators=True)


@pytest.mark.parametrize(
    ("texts", "gates"),
    [
        pytest.param([], DEFAULT_GATES, id="nothing: Kubernetes' defaults"),
        pytest.param([""], DEFAULT_GATES, id="an empty text"),
        pytest.param([f"{NAME}=true"], ON, id="on"),
        pytest.param([f" {NAME} = True ,"], ON, id="spaces, a comma at the end, another spelling of true"),
        pytest.param([f"{NAME}=true,{NAME}=false"], DEFAULT_GATES, id="the last one counts"),
        pytest.param([f"{NAME}=false", f"{NAME}=1"], ON, id="the flag repeated: the last one counts"),
        pytest.param(["AllAlpha=true"], ON, id="all of a stage"),
        pytest.param(["AllBeta=true"], DEFAULT_GATES, id="all of another stage"),
        pytest.param([f"{NAME}=false,AllAlpha=true"], DEFAULT_GATES, id="a gate's own name beats all of its stage"),
    ],
)
def test_accepted(texts: list[str], gates: FeatureGates) -> None:
    assert feature_gates.parse(texts) == gates


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("TaintTolerationComparisons=true", f"did you mean {NAME}?", id="a name that is nearly right"),
        pytest.param(f"{NAME.lower()}=true", f"did you mean {NAME}?", id="another case"),
        pytest.param("Nonsense=true", f"there is {NAME}, AllAlpha, AllBeta", id="a name that is not there"),
        pytest.param("=true", "found the feature gate ''", id="no name"),
        pytest.param(NAME, f"found {NAME} without a value; write {NAME}=true or {NAME}=false", id="no value"),
        pytest.param(f"{NAME}=yes", f"found '{NAME}=yes'; write {NAME}=true", id="another value"),
        pytest.param(f"{NAME}:true", f"did you mean {NAME}?", id="another sign"),
    ],
)
def test_refused(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        feature_gates.parse([text])
    assert says in str(refused.value)


def test_each_gate_is_described_and_switches_something() -> None:
    for name, gate in GATES.items():
        assert f"{name}=true|false ({gate.stage} - default=" in feature_gates.described()
        assert feature_gates.parse([f"{name}=true"]) != feature_gates.parse([f"{name}=false"])
