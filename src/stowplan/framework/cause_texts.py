"""The words of causes: a few names and how many more, amounts, conditions on labels, the nearest spelling."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from stowplan.objects import quantity
from stowplan.objects.selectors import LabelRequirement, NodeTerm, Selector
from stowplan.objects.texts import shortened

MOST_NAMED, MOST_LISTED = 3, 20  # in a text, and in details
MOST_OF_NAME = 120  # bytes of one name in a text
_BINARY = ((1 << 50, "Pi"), (1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))


def few(names: Sequence[str], total: int | None = None, conjunction: str = "") -> str:
    """Return "a, b, c and 4 more". `total`: of how many these are the first. `conjunction`: "or", before the last."""
    shown = [shortened(name, MOST_OF_NAME) for name in names[:MOST_NAMED]]
    more = (len(names) if total is None else total) - len(shown)
    if more > 0:
        return f"{', '.join(shown)} and {more} more"
    if conjunction and len(shown) > 1:
        return f"{', '.join(shown[:-1])} {conjunction} {shown[-1]}"
    return ", ".join(shown)


def listed(names: Iterable[str]) -> tuple[str, ...]:
    """Return the first names, for details."""
    return tuple(name for name, _ in zip(names, range(MOST_LISTED), strict=False))


def amount_text(resource: str, number: int) -> str:
    """Return an amount in the unit of decisions as people write it: "1500m", "4", "2Gi", "1.5Gi"."""
    if resource == "cpu":
        return f"{number // 1000}" if number % 1000 == 0 else f"{number}m"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return bytes_text(number)
    return str(number)


def bytes_text(number: int) -> str:
    """Return "1.5Gi" if that is exact; otherwise the largest unit that has no fraction: "1000Ki", "17"."""
    for size, suffix in _BINARY:
        if abs(number) >= size and number * 10 % size == 0:
            whole, tenths = divmod(number * 10 // size, 10)
            return f"{whole}.{tenths}{suffix}" if tenths else f"{whole}{suffix}"
    return quantity.canonical(f"{number}")


def condition(requirement: LabelRequirement) -> str:
    """Return one condition on a label: "disk=ssd", "zone in (a, b)", "!gpu", "cores > 4"."""
    key, values = requirement.key, requirement.values
    match requirement.operator:
        case "In" if len(values) == 1:
            return f"{key}={values[0]}"
        case "NotIn" if len(values) == 1:
            return f"{key}!={values[0]}"
        case "In" | "NotIn":
            return f"{key} {'in' if requirement.operator == 'In' else 'not in'} ({few(values)})"
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return f"{key} {'>' if requirement.operator == 'Gt' else '<'} {values[0]}"


def selector_text(selector: Selector | None) -> str:
    """Return the conditions of a selector of pods."""
    if selector is None:
        return "no pods"
    return few([condition(each) for each in selector]) if selector else "all pods"


def term_text(term: NodeTerm) -> str:
    """Return the conditions of a node-selector term."""
    return few([condition(each) for each in (*term.named, *term.labels)])


def nearest(wanted: Iterable[str], existing: Collection[str]) -> str:
    """Return what is spelled most like one of the wanted words; empty if nothing is."""
    best: tuple[float, str] = (0.0, "")
    for word in wanted:
        for found in alike(word, tuple(existing))[:1]:
            ratio = difflib.SequenceMatcher(None, word, found).ratio()
            best = max(best, (ratio, found))
    return best[1]


@lru_cache(maxsize=8)
def alike(word: str, existing: tuple[str, ...]) -> tuple[str, ...]:
    """Return the three words that are spelled most like one; causes and remedies ask the same in turn."""
    return tuple(difflib.get_close_matches(word, existing, n=3, cutoff=0.5))
