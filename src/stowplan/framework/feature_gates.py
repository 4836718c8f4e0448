"""Feature gates: which of Kubernetes' features that are off by default are on, as `--feature-gates` says.

    --feature-gates=TaintTolerationComparisonOperators=true,AllBeta=false

The syntax is that of Kubernetes' programs: pairs with commas between; AllAlpha and AllBeta stand for all gates of that
stage that are not named themselves; `kube:` may stand before a name. Names and defaults are those of Kubernetes 1.36. A
built-in plugin with an attribute `feature_gates` gets the gates when it is made (`registry.py`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from stowplan.objects.errors import ConfigError


@dataclass(frozen=True)
class FeatureGate:
    """One gate: the attribute of FeatureGates that it switches, its stage in Kubernetes 1.36, and what it does."""

    attribute: str
    stage: str
    does: str


@dataclass(frozen=True)
class FeatureGates:
    """Which features are on. The defaults are those of Kubernetes 1.36."""

    taint_toleration_comparison_operators: bool = False


DEFAULT_GATES = FeatureGates()

GATES = {
    "TaintTolerationComparisonOperators": FeatureGate(
        "taint_toleration_comparison_operators", "ALPHA", "tolerations compare numbers with Gt and Lt"
    ),
}
STAGES = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
# What Go's strconv.ParseBool accepts.
BOOLEANS = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "FALSE", "false", "False"), False
)


def parse(texts: Iterable[str]) -> FeatureGates:
    """Return the gates that these values of the flag switch, the later ones last; an error for what is no gate."""
    given: dict[str, bool] = {}
    for text in texts:
        for pair in filter(None, (part.strip() for part in text.split(","))):
            given |= _parse_pair(pair)
    wanted = {gate.attribute: given[all_of] for all_of in STAGES if all_of in given for gate in _of_stage(all_of)}
    wanted |= {GATES[name].attribute: on for name, on in given.items() if name in GATES}
    return replace(DEFAULT_GATES, **wanted)


def _parse_pair(pair: str) -> dict[str, bool]:
    name, equals, value = (part.strip() for part in pair.removeprefix("kube:").partition("="))
    if name not in GATES and name not in STAGES:
        raise ConfigError(f"found the feature gate {name!r}, which this scheduler does not have", remedy=_remedy(name))
    if not equals:
        raise ConfigError(f"found {name} without a value", remedy=f"write {name}=true or {name}=false")
    if value not in BOOLEANS:
        raise ConfigError(f"found {pair!r}", remedy=f"write {name}=true or {name}=false")
    return {name: BOOLEANS[value]}


def _of_stage(all_of: str) -> Iterable[FeatureGate]:
    return (gate for gate in GATES.values() if gate.stage == STAGES[all_of])


def _remedy(name: str) -> str:
    known = (*GATES, *STAGES)
    close = difflib.get_close_matches(name.lower(), [each.lower() for each in known], n=1)
    meant = [each for each in known if each.lower() in close]
    return f"did you mean {meant[0]}?" if meant else f"there is {', '.join(known)}"


def described() -> str:
    """Return a sentence about each gate, as Kubernetes' programs print them in --help."""
    return "; ".join(
        f"{name}=true|false ({gate.stage} - default={str(getattr(DEFAULT_GATES, gate.attribute)).lower()}): {gate.does}"
        for name, gate in GATES.items()
    )
