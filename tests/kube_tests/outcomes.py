"""How the tests of a package ended, from the events of `go tool test2json`.

A test with subtests counts by these. It counts by itself, too, if it failed and none of them did.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

PASSED, FAILED, CUT_OFF, NOT_APPLICABLE = "passed", "failed", "cut off", "not applicable"
ENDINGS = {"pass": PASSED, "fail": FAILED, "skip": NOT_APPLICABLE, "run": CUT_OFF}
BAD = (FAILED, CUT_OFF)
LONGEST = 4000  # lines of a test that are kept
_NOT_ASKED = re.compile(r"EXTERNAL-NA: (.*)")
_TELLING = re.compile(r"_test\.go:\d+: |util\.go:\d+: |queue\.go:\d+: |external\.go:\d+: |EXTERNAL-|ERROR:|panic")
_INFO = re.compile(r"^.{0,40} I ")  # a line of the log, not of the test


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a test ended: `reason` says why it is not applicable; `said` are the telling lines of one that failed."""

    ending: str
    seconds: float = 0.0
    reason: str = ""
    said: tuple[str, ...] = ()
    commit: str = ""


class Collector:
    """Takes the lines of test2json one by one; `outcomes` are those of the tests so far."""

    def __init__(self) -> None:
        self._actions: dict[str, str] = {}
        self._seconds: dict[str, float] = {}
        self._lines: dict[str, list[str]] = {}

    def take(self, line: str) -> tuple[str, str]:
        """Take a line. Return the test that ended with it, if one did, and the text that was printed, if one was."""
        try:
            event: dict[str, Any] = json.loads(line)
        except ValueError:
            return "", line
        test, action = event.get("Test", ""), event.get("Action", "")
        if action == "output":
            if test and len(self._lines.setdefault(test, [])) < LONGEST:
                self._lines[test].append(event["Output"])
            return "", event["Output"]
        if not test or action not in ENDINGS:
            return "", ""
        self._actions[test], self._seconds[test] = action, event.get("Elapsed", 0.0)
        return (test if action != "run" else ""), ""

    def outcomes(self, commit: str = "") -> dict[str, Outcome]:
        return {test: self._outcome(test, commit) for test in sorted(counted(self._actions))}

    def _outcome(self, test: str, commit: str) -> Outcome:
        ending, text = ENDINGS[self._actions[test]], "".join(self._lines.get(test, ()))
        reason, said = "", tuple[str, ...]()
        if ending == NOT_APPLICABLE:
            found = _NOT_ASKED.search(text)
            reason = found[1] if found else "skips itself"
        elif ending in BAD:
            said = tuple(telling(text.splitlines()))[-12:]
        return Outcome(ending, self._seconds[test], reason, said, commit)


def telling(lines: Iterable[str]) -> Iterator[str]:
    """The lines that say what went wrong."""
    return (line.strip() for line in lines if _TELLING.search(line) and not _INFO.match(line))


def counted(actions: dict[str, str]) -> set[str]:
    """The tests without subtests, and those that failed although no subtest did."""
    inner = {parent for test in actions for parent in parents(test)}
    inner_failed = {parent for test, action in actions.items() if action in ("fail", "run") for parent in parents(test)}
    by_themselves = {test for test, action in actions.items() if action == "fail" and test not in inner_failed}
    return (actions.keys() - inner) | by_themselves


def parents(test: str) -> Iterator[str]:
    while "/" in test:
        test = test.rpartition("/")[0]
        yield test
