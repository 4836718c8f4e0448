"""Which methods of a plugin had a say: gave, for at least one pod (or placement), an answer that makes a difference.

A filter that rejects no node on any drawn cluster was not tried, whatever its code does for pods that were not drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from stowplan.framework.checks.lines import LinesRun, in_words
from stowplan.framework.extension_points import CLUSTERS, NODES, PluginKind

# What a method did not do if it had no say. `reserve`, `unreserve` and `post_bind` are missing: they may have nothing
# to answer. So are `why` and `changes_at` of cluster plugins.
NEVER = {
    "pre_enqueue": "never gated a pod",
    "sort_key": "gave all pods the same key",
    "cluster_key": "gave all pods the same key",
    "group_of": "never put a pod into a group",
    "pre_filter": "always answered None",
    "filter": "never rejected a node",
    "avoid": "never named nodes to avoid",
    "score": "never preferred one node to another",
    "permit": "never rejected a pod, nor made one wait",
    "pre_bind": "never gave an action",
    "gauges": "never gave a metric",
}
NO_HELP = "never said that an event helps a pod"
NEVER_OF_CLUSTERS = {
    "filter": "never rejected a cluster",
    "score": "never preferred one cluster to another",
}
BEFORE = ("pre_filter", "filter", "score")  # each sees what the ones before it left
PER_NODE = {"filter": "fits", "score": "rate"}  # the methods that `@per_node` makes one of


class Says:
    """Counts calls, failures and answers that make a difference, by method.

    `drawn` says where the pods or placements are from. `checks`: sentences name the parameters of `check_plugin`, too.
    """

    def __init__(self, kind: PluginKind = NODES, *, drawn: str = "drawn", checks: bool = True) -> None:
        self.kind = kind
        self._drawn, self._checks = drawn, checks
        self.never = NEVER_OF_CLUSTERS if kind is CLUSTERS else NEVER
        self.calls: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.differences: Counter[str] = Counter()
        self.asked = 0  # how many pods or placements

    def note(self, method: str, difference: bool) -> None:
        self.calls[method] += 1
        self.differences[method] += difference

    def idle(
        self, plugin: object, hints: Mapping[str, str], lines: LinesRun, accepted: Mapping[str, str]
    ) -> Iterator[tuple[str, str]]:
        """Yield each method that never had a say, and a sentence that says what to do.

        `hints`: the methods that `wakes_on` names, with the kinds of their events. `accepted`: methods that need not
        have a say here, with the reason.
        """
        expected = {name: text for name, text in self.never.items() if callable(getattr(plugin, name, None))}
        for method, never in {**expected, **dict.fromkeys(hints, NO_HELP)}.items():
            if not self.differences[method] and method not in accepted and not self._could_not(method):
                yield method, self._sentence(plugin, method, never, hints, lines)

    def _could_not(self, method: str) -> bool:
        """True if a failure, which is a problem of its own, is all that kept a method from having a say."""
        if self.calls[method]:
            return False
        return any(self.failures[each] for each in (*_before(method), method))

    def _sentence(self, plugin: object, method: str, never: str, hints: Mapping[str, str], lines: LinesRun) -> str:
        drawn, objects = f"{self.asked} {self._drawn} {self.kind.asked}s", self._option("objects")
        give = f"give {self.kind.asked}s that it acts on with {self._option(f'{self.kind.asked}s')}"
        if self.kind is CLUSTERS:
            give += f", and clusters and scores with {objects}"
        if not self.calls[method] and not self.failures[method]:
            if method in hints:
                return f"{method} was never called: no {hints[method]} was drawn; give some with {objects}"
            before = [each for each in _before(method) if callable(getattr(plugin, each, None))]
            why = (
                f"{' and '.join(before)} left it nothing to do for all {drawn}" if before else f"not for any of {drawn}"
            )
            return f"{method} was never called: {why}; {give}"
        why = f"none of the {drawn} made it"
        if method == "gauges":
            why = f"not for any of the {self.asked} drawn clusters"
        if self.failures[method]:
            why += f", and it failed for {self.failures[method]} of them"
            give = f"mend that first, then {give}"
        written = PER_NODE.get(method, method) if not lines.ran(method) else method
        never_ran = lines.never(written) if lines.ran(written) else []
        where = f"; {in_words(never_ran)} never ran" if never_ran else ""
        return f"{method} {never}: {why}{where}; {give}"

    def _option(self, name: str) -> str:
        return f"--{name} FILE (or {name}= in check_plugin)" if self._checks else f"--{name} FILE"


def _before(method: str) -> tuple[str, ...]:
    return BEFORE[: BEFORE.index(method)] if method in BEFORE else ()
