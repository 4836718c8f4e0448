"""What is asked: pods of one manifest, how many are wanted, and what comes with them.

An API server and its controllers would make the pods (`apps.explain.admission`); they make the first one here, and the
others are like it.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass
from typing import Any

from stowplan.apps.explain import answers, checks
from stowplan.apps.explain.admission import REPLICAS, Admission, Submission
from stowplan.apps.explain.quotas import Quotas
from stowplan.framework.config.document import suggestion
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.objects.storage import PersistentVolumeClaim, StorageClass
from stowplan.simulation.pod_series import PodSeries

COUNTED = ("Pod", *REPLICAS)
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
Document = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """`kind` and `key`: of the manifest. `wanted`: how many pods it asks for; None for a single pod.

    `beside`: other objects of the manifest, which exist then, too. `document`: of the first pod.
    """

    kind: str
    key: str
    series: PodSeries
    wanted: int | None
    beside: tuple[Object, ...]
    document: Mapping[str, Any]

    @property
    def pod(self) -> Pod:
        return self.series.first

    @property
    def name(self) -> str:
        """What texts call it: "pod default/web", "deployment default/web"."""
        return f"{self.kind.lower()} {self.key}"


def read(file: str) -> list[tuple[str, Document]]:
    """Return the documents of a manifest."""
    if not file:
        remedy = "name the manifest of a pod, or of a workload; - is stdin"
        raise ConfigError("found no manifest", path="-f", remedy=remedy)
    return checks.manifests([file], (*COUNTED, "DaemonSet"), f"kinds that can be counted: {', '.join(COUNTED)}")


def asked(
    documents: list[tuple[str, Document]],
    admission: Admission,
    quotas: Quotas,
    namespace: str,
    taken: Container[str],
    classes: Collection[StorageClass],
) -> Question:
    """Return what is asked. Raises ConfigError unless there is exactly one workload, whose pods are all alike."""
    file = documents[0][0]
    main: list[tuple[Submission, Document]] = []
    beside: list[Object] = []
    for each, document in documents:
        if document.get("kind") == "DaemonSet":
            remedy = "stowplan explain -f says which nodes its pods get"
            raise ConfigError("a DaemonSet has one pod for each node", file=each, path="DaemonSet", remedy=remedy)
        if document.get("kind") == "ResourceQuota":
            quotas.add({**document, "metadata": {"namespace": namespace, **(document.get("metadata") or {})}})
            continue
        found = admission.submit(document, each, namespace, 1)
        if found is None:
            continue
        if found.kind in COUNTED:
            main.append((found, document))
        else:
            beside += found.objects
    if len(main) != 1:
        told = ", ".join(f"{each.kind} {each.key}" for each, _ in main) or "none"
        raise ConfigError(f"found {told}, expected one pod or workload", file=file, remedy="ask about one at a time")
    submission, document = main[0]
    if submission.missing_class:
        problem = f"there is no PriorityClass {submission.missing_class}: the API server refuses the pod"
        raise ConfigError(problem, file=submission.file, path=f"{submission.kind} {submission.key}")
    if not submission.pods:
        where = f"{submission.kind} {submission.key}"
        raise ConfigError(
            "it makes no pods", file=submission.file, path=where, remedy="a suspended Job, say, makes none"
        )
    claims = [each for each in submission.objects if isinstance(each, PersistentVolumeClaim)]
    others = [each for each in submission.objects if not isinstance(each, Pod | PersistentVolumeClaim)]
    default = next((each.name for each in classes if each.annotations.get(DEFAULT_CLASS) == "true"), "")
    first = submission.pods[0]
    series = PodSeries(first, claims, taken, default)
    wanted = _wanted(submission.kind, document)
    return Question(submission.kind, submission.key, series, wanted, (*beside, *others), answers.document_of(first))


def _wanted(kind: str, document: Mapping[str, Any]) -> int | None:
    """Return how many pods a workload asks for. The admission has checked the number."""
    if kind not in REPLICAS:
        return None
    found = (document.get("spec") or {}).get(REPLICAS[kind])
    return 1 if found is None else int(found)


def check_most(most: int, wanted: int | None) -> None:
    """Refuse a count that ends before it is known whether as many pods fit as are wanted."""
    if most and wanted is not None and most < wanted:
        raise ConfigError(
            f"found {most:,}, and {wanted:,} pods are wanted", path="--max",
            remedy=f"leave it out, or write --replicas {most} to ask about so many",
        )  # fmt: skip


def check_scheduler(pod: Pod, profiles: Collection[str], file: str) -> None:
    """Refuse a pod that no profile of the configuration serves."""
    name = pod.scheduler_name
    if name not in profiles:
        remedy = suggestion(name, profiles) or f"profiles: {', '.join(profiles)}; --config names a configuration"
        raise ConfigError(f"no profile has the schedulerName {name!r}", file=file, path=f"Pod {pod.key}", remedy=remedy)
