"""Which pods the command line means: by name, by owner (`deploy/web`), by labels, or all that are pending."""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from stowplan.apps.explain.kubectl_commands import Owner, PodCount
from stowplan.embedded.api import selectors as label_selectors
from stowplan.embedded.errors import ApiError
from stowplan.objects import selectors
from stowplan.objects.errors import ConfigError
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import Selector
from stowplan.objects.workloads import ReplicaSet

# What kubectl accepts before the slash.
WORDS = {
    "Pod": ("", "pod", "pods", "po"),
    "Deployment": ("deploy", "deployment", "deployments", "deployment.apps", "deployments.apps"),
    "StatefulSet": ("sts", "statefulset", "statefulsets", "statefulset.apps", "statefulsets.apps"),
    "ReplicaSet": ("rs", "replicaset", "replicasets", "replicaset.apps", "replicasets.apps"),
    "DaemonSet": ("ds", "daemonset", "daemonsets", "daemonset.apps", "daemonsets.apps"),
    "Job": ("job", "jobs", "job.batch", "jobs.batch"),
    "ReplicationController": ("rc", "replicationcontroller", "replicationcontrollers"),
}
KIND_OF = {word: kind for kind, words in WORDS.items() for word in words}
WORD_CUTOFF, NAME_CUTOFF = 0.75, 0.6  # how alike a misspelt kind or name must be
HASH = "pod-template-hash"  # a label of every pod of a Deployment


@dataclass(frozen=True)
class Target:
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{WORDS[self.kind][1] if self.kind == 'Pod' else WORDS[self.kind][0]}/{self.name}"


def parse(text: str) -> Target:
    """Read POD, pod/POD, deploy/NAME and so on."""
    word, _, name = text.rpartition("/")
    kind = KIND_OF.get(word.lower())
    if kind is None or not name:
        remedy = "name a pod, or deploy/NAME, sts/NAME, rs/NAME, ds/NAME, job/NAME; its namespace with -n"
        near = difflib.get_close_matches(word.lower(), KIND_OF, 1, WORD_CUTOFF) if name else []
        if near:
            remedy = f"did you mean {near[0]}/{name}?"
        raise ConfigError(f"{text!r} is neither a pod nor a workload", remedy=remedy)
    return Target(kind, name)


def parse_selector(text: str) -> Selector | None:
    """Read a label selector of kubectl; None for an empty text."""
    if not text:
        return None
    try:
        return label_selectors.labels(text)
    except ApiError as error:
        raise ConfigError(error.message, path="-l", remedy="write app=web,tier!=db or 'app in (web, db)'") from None


class WorkloadOwners:
    """The objects that pods are made by."""

    def __init__(self, replica_sets: Iterable[ReplicaSet]) -> None:
        self._sets = {each.key: each for each in replica_sets}

    def add(self, found: ReplicaSet) -> None:
        self._sets[found.key] = found

    def of(self, pod: Pod) -> Owner | None:
        """Return the owner whose template a pod has: of a ReplicaSet's pod its Deployment, if it has one.

        A ReplicaSet that cannot be seen is told from one of a Deployment by the pod's label with the hash.
        """
        found = pod.controller()
        if found is None:
            return None
        key = f"{pod.namespace}/{found.name}"
        if found.kind != "ReplicaSet":
            return Owner(found.kind, key)
        if key in self._sets:
            above = self._sets[key].controller()
            return Owner("ReplicaSet", key) if above is None else Owner(above.kind, f"{pod.namespace}/{above.name}")
        ending = f"-{pod.labels.get(HASH, '')}"
        if len(ending) > 1 and found.name.endswith(ending):
            return Owner("Deployment", f"{pod.namespace}/{found.name.removesuffix(ending)}")
        return Owner("ReplicaSet", key)

    def counts(self, pods: Iterable[Pod], rehearsed: Container[str] = ()) -> dict[Owner, PodCount]:
        """Return how many pods each workload has. `rehearsed`: the keys of those that have a node only here."""
        found: dict[Owner, PodCount] = {}
        for pod in pods:
            owner = None if pod.finished or pod.terminating else self.of(pod)
            if owner is not None:
                before = found.get(owner, PodCount())
                runs = bool(pod.node_name) and pod.key not in rehearsed
                found[owner] = PodCount(before.all + 1, before.running + runs)
        return found

    def owned(self, pods: Iterable[Pod], target: Target, namespace: str) -> list[Pod]:
        """Return the pods of a workload; those of a ReplicaSet also if a Deployment owns it."""
        wanted = Owner(target.kind, f"{namespace}/{target.name}")
        found = []
        for pod in pods:
            if pod.namespace != namespace:
                continue
            above = pod.controller()
            direct = above is not None and (above.kind, above.name) == (target.kind, target.name)
            if direct or self.of(pod) == wanted:
                found.append(pod)
        return found


def nearest(target: Target, pods: Iterable[Pod], owners: WorkloadOwners, namespace: str) -> str:
    """Return what may be meant by a name that is not there: "did you mean web?"; empty if nothing is like it."""
    by_kind: dict[str, dict[str, None]] = {}
    elsewhere: dict[str, None] = {}
    for pod in pods:
        owner = owners.of(pod)
        named = [("Pod", pod.name), *([] if owner is None else [(owner.kind, owner.key.rpartition("/")[2])])]
        for kind, name in named:
            if pod.namespace == namespace:
                by_kind.setdefault(kind, {})[name] = None
            elif (kind, name) == (target.kind, target.name):
                elsewhere[pod.namespace] = None
    return _meant(target, by_kind, list(elsewhere))


def _meant(target: Target, by_kind: Mapping[str, Mapping[str, None]], elsewhere: Sequence[str]) -> str:
    own = by_kind.get(target.kind, {})
    begins = [name for name in own if name.startswith(f"{target.name}-")]
    near = [*difflib.get_close_matches(target.name, own, 1, NAME_CUTOFF), *begins[:1]]
    others = [Target(kind, target.name) for kind, names in by_kind.items() if target.name in names]
    if others:
        return f"did you mean {others[0]}?"
    if near:
        return f"did you mean {near[0] if target.kind == 'Pod' else Target(target.kind, near[0])}?"
    return f"there is one in namespace {elsewhere[0]}: name it with -n" if elsewhere else ""


def selected(pods: Mapping[str, Pod], selector: Selector | None, namespace: str, *, everywhere: bool) -> list[Pod]:
    """Return the pending pods that a selector matches; all pending pods without one."""
    return [
        pod
        for pod in pods.values()
        if pod.pending
        and not pod.terminating
        and (everywhere or pod.namespace == namespace)
        and (selector is None or selectors.matches(selector, pod.labels))
    ]


def pending_first(pods: Sequence[Pod]) -> list[Pod]:
    """Return the pods that wait for a node; all of them if none waits."""
    return [pod for pod in pods if pod.pending] or list(pods)
