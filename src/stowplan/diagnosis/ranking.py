"""The order of remedies, as one table: own pod before cluster, nothing evicted before evicted, less before more."""

from __future__ import annotations

from collections.abc import Sequence

from stowplan.diagnosis.edits import Edit
from stowplan.diagnosis.remedy import Remedy

# Remedies of one row come before those of the next; in a row, fewer changes first, then in this order, then the
# smaller change. A name is a code, and behind it what makes a change of this kind a worse one, if that counts.
BY_HALF, TO_FILL_IN = "lower-request by more than half", "create-class to be filled in"
OF_DEVICE = "lower-request of an extended resource"
DEVICES_GONE = "lower-request of an extended resource by more than half"
OTHER_DATA = "use-claim with other data"
PROTECTED, SIBLING = "free-room against a budget", "free-room of siblings"
ROWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "the pod alone changes, nothing is evicted",
        (
            *(
                "scheduler-name",
                "remove-gates",
                "selector-value",
                "topology-key",
                "use-claim",
                "tolerate",
                "host-port",
                "honor-taints",
                "honor-node-affinity",
                "raise-max-skew",
            ),
            *("lower-request", "schedule-anyway", "own-spreading", "drop-requirement", "drop-node-affinity"),
            *("drop-anti-affinity-term", "drop-affinity-term", "drop-node-name"),
            *("priority-class", "specify-resources"),
            *("create-members", "create-pod-group", "lower-min-resources", "lower-minimum"),
            *("correct-policy", "label-pod", "drop-policy"),
            *("mend-annotation", "name-reservation", "fewer-executors", "smaller-executors"),
        ),
    ),
    (
        "the cluster changes, nothing is evicted",
        (
            *("uncordon", "create-claim", "name-class", "create-class", "create-volume", "remove-taint", "label-node"),
            *("mend-policy", "raise-policy", "list-domain", "policy-selector", "prefer-policy"),
            *("more-executors", "release-reservation", "raise-quota", "create-priority-class", "add-nodes"),
        ),
    ),
    ("the pod alone changes, but goes to a node that was taken out of service", ("tolerate-cordon",)),
    (
        "the pod alone changes, but hardly works as before: a request is lowered by more than half, or one of a device",
        (BY_HALF, OF_DEVICE),
    ),
    ("the cluster changes, nothing is evicted, but the reader has to find out a value", (TO_FILL_IN,)),
    ("the pod alone changes, but finds other data", (OTHER_DATA,)),
    ("the pod alone changes, but loses more than half of its devices, or all of them", (DEVICES_GONE,)),
    ("the pod alone changes, pods are evicted", ("raise-priority", "allow-preemption")),
    ("the cluster changes, pods are deleted", ("scale-down", "free-room")),
    ("a PodDisruptionBudget changes, then pods are deleted", ("change-budget",)),
    ("pods are deleted although a PodDisruptionBudget protects them: a deletion does not ask it", (PROTECTED,)),
    ("pods of the pod's own owner are deleted: that only moves the problem", (SIBLING,)),
    (
        "the placement alone changes",
        (
            *("correct-mode", "correct-when-missing", "correct-prioritizer", "mend-toleration", "drop-toleration"),
            *("omit-number", "raise-number", "drop-hysteresis", "drop-group-size", "drop-group-selector"),
            *("correct-cluster-set", "predicate-value", "predicate-key", "tolerate-longer", "tolerate-cluster"),
            *("add-cluster-set", "limit-cluster-sets", "when-missing", "raise-cluster-skew", "lower-number"),
            *("spread-anyway", "drop-predicate-requirement", "drop-expression", "drop-prioritizer"),
        ),
    ),
    ("a set of clusters or a binding changes", ("bind-cluster-set", "create-cluster-set", "mend-cluster-set")),
    (
        "managed clusters change",
        (
            *("renew-score", "publish-score", "label-cluster", "remove-cluster-taint", "join-cluster-set"),
            "add-clusters",
        ),
    ),
)

ADDING = 1  # the row of more nodes

_PLACES = {code: (row, place) for row, (_, codes) in enumerate(ROWS) for place, code in enumerate(codes)}
_LAST = (len(ROWS), 0)


def row(edits: Sequence[Edit]) -> int:
    """Return the row of the table that a remedy is in."""
    return max(_PLACES.get(edit.ranked_as or edit.code, _LAST)[0] for edit in edits)


def rank(edits: Sequence[Edit]) -> tuple[object, ...]:
    """Return the key to sort remedies by. The last row that one of the edits is in counts."""
    places = sorted((_PLACES.get(edit.ranked_as or edit.code, _LAST) for edit in edits), reverse=True)
    return places[0][0], len(edits), places, sum(edit.size for edit in edits), [edit.text for edit in edits]


def order(remedy: Remedy) -> tuple[object, ...]:
    """Return the key to sort remedies by whose edits are not known any more."""
    names = (remedy.ranked_as or remedy.code).split("+")
    places = sorted((_PLACES.get(each, _LAST) for each in names), reverse=True)
    return places[0][0], len(places), places, len(remedy.changes), remedy.text


def worst(*names: str) -> str:
    """Return the name that is the last in the table; an empty one counts for nothing."""
    return max(names, key=lambda each: _PLACES.get(each, _LAST) if each else (-1, 0))


def code(edits: Sequence[Edit]) -> str:
    """Return the code of a remedy: the codes of its edits, each once, in the order of the table."""
    return _joined({edit.code for edit in edits})


def of_codes(*codes: str) -> str:
    """Return the code of a remedy that does all that these do."""
    return _joined({each for joined in codes for each in joined.split("+")})


def name(edits: Sequence[Edit]) -> str:
    """Return what the table calls a remedy: its code, with what makes it a worse one."""
    return _joined({edit.ranked_as or edit.code for edit in edits})


def _joined(names: set[str]) -> str:
    return "+".join(sorted(names, key=lambda each: _PLACES.get(each, _LAST)))
