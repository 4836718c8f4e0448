"""Judge the remedies of pending pods by kube-scheduler's own code: are they sound, and as small as they can be?

    python -m tests.oracle.remedies [FILE.jsonl.gz ...] [--count N] [--seed S]

Takes files in the form of the golden records, and looks at the pods that got no node. Each remedy is applied to the
record's documents, and the recorder decides: the pod must be feasible on the node that the remedy names (or, where the
remedy evicts by priority, the node with exactly these victims must be a candidate). Then every change is made smaller
by one step, and no node may be feasible. Without files, scenarios are drawn.

Exit code 1 if a remedy is not sound or not minimal, 2 if a file cannot be read. Without Go to build the recorder
nothing is judged: it says so and ends with 0, or with 2 if there were files to judge.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stowplan.apps import profile_loader
from stowplan.apps.parity import command, node_records
from stowplan.columns.state import ClusterState
from stowplan.diagnosis import patches
from stowplan.diagnosis.remedies.scale_down import NUMBER_OF
from stowplan.diagnosis.remedy import (
    DeleteObject,
    ObjectChange,
    PatchObject,
    Remedy,
)
from stowplan.diagnosis.search import diagnose
from stowplan.framework.profile import Profile
from stowplan.objects import kinds
from stowplan.objects.errors import StowplanError
from stowplan.objects.pods import Pod
from tests.oracle.__main__ import CATEGORIES, build
from tests.oracle.smaller_remedies import LIST_OF, smaller

Scenario = dict[str, Any]
Expect = dict[str, Any]
Decide = Callable[[Sequence[Scenario]], list[Expect]]

BATCH = 400
# A configuration can leave out the step that prepares a plugin's filter or score: then no answer is right.
STEPS = ("Filter ", "PreScore ", "Score ")


@dataclass
class Check:
    """A scenario, and what is right about it: the pod gets this node (with these victims), or none."""

    scenario: Scenario
    what: str
    node: str | None
    victims: tuple[str, ...] | None = None


@dataclass
class Verdicts:
    pods: int = 0
    unsupported: int = 0
    helped: int = 0
    remedies: int = 0
    sound: int = 0
    minimal: int = 0
    unjudged: int = 0  # of the remedies: the configuration leaves out a step, so that no answer is right
    codes: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # why a record is not supported

    @property
    def judged(self) -> int:
        return self.remedies - self.unjudged

    def __str__(self) -> str:
        codes = "".join(f"\n  {number:5} {code}" for code, number in sorted(self.codes.items()))
        return (
            f"{self.pods} pods without a node, {self.unsupported} of them not supported (resource claims, say)\n"
            f"{self.helped} got a remedy, {self.remedies} remedies in all:{codes}\n"
            f"{self.sound} of {self.judged} remedies are sound, {self.minimal} are minimal"
            + (f"; {self.unjudged} more were not judged: kube-scheduler ends in an error" if self.unjudged else "")
        )


def judge(scenarios: Sequence[Scenario], decide: Decide) -> Verdicts:
    """Ask for remedies for every pod that has no node, and let `decide` judge them."""
    verdicts = Verdicts()
    pending = [each for each in scenarios if not each["expect"].get("best") and "error" not in each["expect"]]
    checks: list[tuple[str, bool, Check]] = []
    wrong, unjudged = {True: set[str](), False: set[str]()}, set[str]()
    for scenario in pending:
        verdicts.pods += 1
        try:
            remedies = remedies_of(scenario)
        except StowplanError as error:  # a kind of object, say, that we do not read
            verdicts.notes.append(f"{scenario['id']}: {error}")
            remedies = None
        except Exception as error:
            verdicts.problems.append(f"{scenario['id']}: the diagnosis raised {error!r}")
            continue
        if remedies is None:
            verdicts.unsupported += 1
            continue
        verdicts.helped += bool(remedies)
        if not remedies:
            verdicts.without.append(str(scenario["id"]))
        for number, remedy in enumerate(remedies):
            verdicts.codes[remedy.code] += 1
            verdicts.remedies += 1
            name = f"{scenario['id']} ({verdicts.pods})#{number} {remedy.code}: {remedy.text}"
            try:
                checks.append((name, True, sound_check(scenario, remedy)))
                checks += [(name, False, check) for check in smaller_checks(scenario, remedy)]
            except (LookupError, ValueError, TypeError, StowplanError) as error:
                verdicts.problems.append(f"{name}: its changes do not apply: {error!r}")
                wrong[True].add(name)
                wrong[False].add(name)
    answers = decide([check.scenario for _, _, check in checks])
    for (name, is_sound, check), answer in zip(checks, answers, strict=True):
        if is_unprepared(str(answer.get("error", ""))):
            unjudged.add(name)
            continue
        problem = problem_of(check, answer, is_sound)
        if problem:
            wrong[is_sound].add(name)
            verdicts.problems.append(f"{name}: {problem}")
    verdicts.unjudged = len(unjudged)
    verdicts.sound = verdicts.judged - len(wrong[True] - unjudged)
    verdicts.minimal = verdicts.judged - len(wrong[False] - unjudged)
    return verdicts


def is_unprepared(error: str) -> bool:
    return error.startswith(STEPS) and error.endswith("not found")


def problem_of(check: Check, answer: Expect, is_sound: bool) -> str:
    if "error" in answer:
        return f"{check.what}: kube-scheduler ends in an error: {answer['error']}"
    feasible = [name for name, verdict in (answer.get("filter") or {}).items() if verdict is None]
    candidates = (answer.get("preemption") or {}).get("candidates") or {}
    if not is_sound:
        left = feasible or (check.victims is not None and sorted(candidates))
        return f"{check.what}: it still fits on {', '.join(left)}" if left else ""
    if check.victims is None:
        return "" if check.node in feasible else f"{check.what}: {check.node} is not feasible, but {feasible} are"
    if check.node not in candidates or set(candidates[check.node]["victims"]) != set(check.victims):
        return f"{check.what}: {check.node} with {check.victims} is no candidate; there are {candidates}"
    return ""


# -- remedies


def remedies_of(scenario: Scenario) -> tuple[Remedy, ...] | None:
    """Return the remedies for a scenario's pod; None if it needs what we do not support."""
    state, pod, profiles = loaded(scenario)
    found = diagnose(pod, state, profiles.get(pod.scheduler_name), profiles=profiles)
    if not found.remedies and pod.spec.resource_claims:
        return None
    return found.remedies


def loaded(scenario: Scenario) -> tuple[ClusterState, Pod, dict[str, Profile]]:
    state = node_records.cluster(scenario["cluster"])
    config = scenario.get("config")
    _, profiles = profile_loader.defaults() if config is None else profile_loader.configured(config)
    for profile in profiles.values():
        profile.attach(state)
    return state, kinds.convert(Pod, scenario["pod"]), profiles


def documents_of(scenario: Scenario) -> dict[tuple[str, str], Any]:
    found: dict[tuple[str, str], Any] = {}
    for name, kind in node_records.LISTS.items():
        for document in scenario["cluster"].get(name) or ():
            found[kind, patches.key_of(document)] = document
    found["Pod", patches.key_of(scenario["pod"])] = scenario["pod"]
    return found


def changed(scenario: Scenario, changes: Sequence[ObjectChange], name: str) -> Scenario:
    """Return the scenario after the changes, without what was decided before."""
    pod_key = ("Pod", patches.key_of(scenario["pod"]))
    documents = documents_of(scenario)
    for change in changes:  # workloads that a record does not list
        if isinstance(change, PatchObject) and change.kind in NUMBER_OF:
            documents.setdefault((change.kind, change.key), {"spec": {}})
    after = patches.apply(documents, changes)
    lists: dict[str, list[Any]] = {name: [] for name in scenario["cluster"]}
    for key, document in after.items():
        if key != pod_key and key[0] in LIST_OF:
            lists.setdefault(LIST_OF[key[0]], []).append(document)
    kept = {key: value for key, value in scenario.items() if key not in ("expect", "apiValid")}
    return {**kept, "id": name, "cluster": lists, "pod": after[pod_key]}


def sound_check(scenario: Scenario, remedy: Remedy) -> Check:
    victims = _victims(remedy)
    after = changed(scenario, [*remedy.changes, *_taken_away(remedy)], "sound")
    return Check(after, "with the remedy", remedy.node, victims)


def _victims(remedy: Remedy) -> tuple[str, ...] | None:
    """Return the names of the pods that kube-scheduler itself would evict; None if the remedy evicts none."""
    deleted = {change.key for change in remedy.changes if isinstance(change, DeleteObject)}
    if _taken_away(remedy):
        return None
    names = tuple(key.rpartition("/")[2] for key in remedy.evicted if key not in deleted)
    return names or None


def _taken_away(remedy: Remedy) -> list[DeleteObject]:
    """Return the pods that the controller of a workload deletes because the remedy scales it down, in its order."""
    if not any(isinstance(change, PatchObject) and change.kind in NUMBER_OF for change in remedy.changes):
        return []
    return [DeleteObject("Pod", key) for key in remedy.evicted]


# -- one step less


def smaller_checks(scenario: Scenario, remedy: Remedy) -> Iterator[Check]:
    documents, gone = documents_of(scenario), _taken_away(remedy)
    means = [each for each in remedy.changes if gone and _is_means(each)]
    others = [each for each in remedy.changes if each not in means]
    if gone:  # with one replica more the last of them stays
        yield Check(changed(scenario, [*remedy.changes, *gone[:-1]], "smaller"), "with one replica more", None)
    for what, changes in smaller(others, documents):
        after = [*means, *changes, *gone]
        yield Check(changed(scenario, after, "smaller"), f"with {what}", None, _victims(remedy))


def _is_means(change: ObjectChange) -> bool:
    """True for the number of a workload's pods, and for annotations that say which of them go."""
    if not isinstance(change, PatchObject):
        return False
    return change.kind in NUMBER_OF or all("annotations" in each.path for each in change.operations)


# -- who decides


def recorded(recorder: Path) -> Decide:
    """Return what asks the recorder, many scenarios at once."""

    def decide(scenarios: Sequence[Scenario]) -> list[Expect]:
        answers: list[Expect] = []
        for start in range(0, len(scenarios), BATCH):
            batch = scenarios[start : start + BATCH]
            lines = "".join(json.dumps({**each, "id": str(at)}) + "\n" for at, each in enumerate(batch))
            done = subprocess.run([recorder], input=lines, stdout=subprocess.PIPE, check=True, text=True)
            rows = [json.loads(line) for line in done.stdout.splitlines()]
            answers += [row["expect"] if "expect" in row else {"error": row["error"]} for row in rows]
        return answers

    return decide


def drawn(recorder: Path, count: int, seed: int, categories: Sequence[str]) -> list[Scenario]:
    """Draw scenarios, as an API server would store them, with what kube-scheduler decides."""
    found: list[Scenario] = []
    for category in categories:
        draw = [sys.executable, "-m", "tests.oracle.draw", "--category", category]
        draw += ["--count", str(count), "--seed", str(seed)]
        lines = subprocess.run(draw, check=True, stdout=subprocess.PIPE).stdout
        done = subprocess.run(
            [recorder, "-admit", "-drop"], input=lines, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
        )
        found += [json.loads(line) for line in done.stdout.splitlines()]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="files in the form of the golden records")
    parser.add_argument("--count", type=int, default=60, help="scenarios per category, if they are drawn (default 60)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="what they are drawn from (the time)")
    parser.add_argument("--category", nargs="+", default=["pending", *CATEGORIES], help="what is drawn (all)")
    parser.add_argument("--show", type=int, default=20, help="problems that are shown (default 20)")
    options = parser.parse_args()
    recorder = build()
    if recorder is None:
        sys.stderr.write("SKIPPED: no Go on this machine, so the recorder cannot be built; nothing was judged\n")
        return 2 if options.files else 0
    decide = recorded(recorder)
    if options.files:
        try:
            scenarios = [scenario for file in options.files for _, scenario in command.read(file)]
        except StowplanError as error:
            sys.stderr.write(f"{error}\n")
            return 2
        unknown = [scenario for scenario in scenarios if "expect" not in scenario]
        for scenario, answer in zip(unknown, decide(unknown), strict=True):
            scenario["expect"] = answer
    else:
        categories = options.category
        sys.stdout.write(f"seed {options.seed}, {options.count} scenarios in each of {len(categories)} categories\n")
        sys.stdout.flush()
        scenarios = drawn(recorder, options.count, options.seed, categories)
    verdicts = judge(scenarios, decide)
    for problem in verdicts.problems[: options.show]:
        sys.stdout.write(f"{problem}\n")
    for note in verdicts.notes[: options.show]:
        sys.stdout.write(f"not supported: {note}\n")
    if verdicts.without:
        sys.stdout.write(f"without a remedy: {', '.join(verdicts.without)}\n")
    sys.stdout.write(f"{verdicts}\n")
    return 1 if verdicts.problems else 0


if __name__ == "__main__":
    sys.exit(main())
