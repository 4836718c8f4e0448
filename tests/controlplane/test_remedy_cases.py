"""Every cause and remedy of a pod is typed once on a real control plane, or there is a reason why it cannot be."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from stowplan.diagnosis import ranking
from tests.controlplane import remedy_cases, remedy_volume_cases
from tests.controlplane.remedy_cases import Case

ROOT = Path(__file__).parents[2]
EXPLAIN = ROOT / "src" / "stowplan" / "apps" / "explain"
OURS = "a policy of Stowplan's, which kube-scheduler does not have"
GANGS = "a feature of kube-scheduler that is off, and other programs of ours: tests/controlplane/test_gang_native.py"
OF_CLUSTERS = "of a placement, which kube-scheduler does not decide on"
CLAIMS_STAY = "no remedy: the spec of a claim cannot be changed, and no change of a pod gives a node more devices"

NO_CAUSE = {
    "node-name": "a pod that names a node has one: no scheduler looks at it",
    "limited-to-nodes": "of kube-scheduler's pre-filters NodeAffinity alone limits nodes, and its filter says more",
    "claim-not-created": "the controller-manager creates the claim at once",
    "claim-owner": "no remedy: the claim is somebody else's, and explain proposes to delete no claim",
    "volume-missing": "the controller-manager calls such a claim lost at once",
    "volume-source": "an error to kube-scheduler, not a rejection, and no remedy is known",
    "class-invalid": "the API server gives every class a volumeBindingMode",
    **dict.fromkeys(("resource-claim", "claim-elsewhere"), CLAIMS_STAY),
    **dict.fromkeys(("device-request", "device-constraint", "device-together", "device-pool"), CLAIMS_STAY),
    "priority-class": "of a pod that does not exist: the API server refuses it",
    **dict.fromkeys(("quota", "quota-unspecified", "replica-failure"), "of pods that the API server refuses"),
    "extender": "no remedy: explain calls no extenders",
    "plugin-error": "none of kube-scheduler's plugins fails",
    "rejected": "every plugin of kube-scheduler's has causes of its own",
    **dict.fromkeys(("policy-label", "policy-domain", "policy-full", "gpus"), OURS),
    **dict.fromkeys(("policy-missing", "policy-invalid", "policy-selector", "owner-unknown"), OURS),
    **dict.fromkeys(("distribution-policy", "reservation-room", "reservation-zone", "extender-labels"), OURS),
    **dict.fromkeys(("reservation-invalid", "reservation-exists"), OURS),
    **dict.fromkeys(("reservation-order", "reservation-executors", "gpus"), OURS),
    **dict.fromkeys(("group-missing", "group-labels", "group-members", "group-resources"), GANGS),
    **dict.fromkeys(("predicate-label", "predicate-claim", "predicate-expression", "score-missing"), OF_CLUSTERS),
    **dict.fromkeys(("score", "cluster-set", "cluster-set-unbound", "cluster-set-empty"), OF_CLUSTERS),
    **dict.fromkeys(("too-few-clusters", "misconfigured"), OF_CLUSTERS),
}
NO_REMEDY = {
    "drop-node-name": NO_CAUSE["node-name"],
    **dict.fromkeys(("create-priority-class", "priority-class"), NO_CAUSE["priority-class"]),
    **dict.fromkeys(("raise-quota", "specify-resources"), NO_CAUSE["quota"]),
    **dict.fromkeys(("create-members", "create-pod-group", "lower-min-resources", "lower-minimum"), GANGS),
    **dict.fromkeys(("correct-policy", "label-pod", "drop-policy", "mend-policy", "raise-policy"), OURS),
    **dict.fromkeys(("list-domain", "policy-selector", "prefer-policy"), OURS),
    **dict.fromkeys(("mend-annotation", "name-reservation", "fewer-executors", "smaller-executors"), OURS),
    **dict.fromkeys(("more-executors", "release-reservation"), OURS),
}


def cases() -> list[Case]:
    found: list[Any] = [each.values[0] for each in (*remedy_cases.CASES, *remedy_volume_cases.CASES)]
    return found


def known_causes() -> set[str]:
    """Those that docs/causes.md lists, and those that explain itself names."""
    lines = (ROOT / "docs" / "causes.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| `")]
    documented = {code for row in rows for code in re.findall(r"`([a-z-]+)`", row.split("|")[1])}
    text = "\n".join(file.read_text(encoding="utf-8") for file in EXPLAIN.glob("*.py"))
    return documented | set(re.findall(r'Cause\("([a-z-]+)"', text))


def test_every_cause_has_a_case_or_a_reason() -> None:
    known, typed = known_causes(), {case.cause for case in cases()}
    assert known - typed - set(NO_CAUSE) == set(), "causes without a case"
    assert typed - known == set(), "cases of causes that are not known"
    assert set(NO_CAUSE) - known | set(NO_CAUSE) & typed == set(), "reasons that are none any more"


def test_every_remedy_of_pods_has_a_case_or_a_reason() -> None:
    of_pods = [codes for text, codes in ranking.ROWS if "placement" not in text and "clusters" not in text]
    known = {code for codes in of_pods for code in codes if " " not in code}  # others are places for the same codes
    typed = {code for case in cases() for remedy in case.remedies for code in remedy.split("+")}
    assert known - typed - set(NO_REMEDY) == set(), "remedies without a case"
    assert typed - known == set(), "cases of remedies that are not ranked"
    assert set(NO_REMEDY) - known | set(NO_REMEDY) & typed == set(), "reasons that are none any more"


def test_no_case_has_a_name_twice() -> None:
    names = [each.id for each in (*remedy_cases.CASES, *remedy_volume_cases.CASES)]
    assert len(names) == len(set(names))
