"""Stories about controllers, to be told in two clusters: what is applied, waited for, and then compared.

Pods that a story must see waiting, failing or getting ready one by one have a scheduler that does not exist; the story
sets their status itself, as a kubelet would.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.controlplane.cluster import Cluster
from tests.controlplane.process import until

PATIENCE = "--timeout=180s"
RESTRICTED = "automountServiceAccountToken: false"


class Stage:
    """A cluster and a namespace for one story. `seen` is what the story wants compared."""

    def __init__(self, cluster: Cluster, namespace: str, nodes: list[str]) -> None:
        self.cluster, self.namespace, self.nodes = cluster, namespace, nodes
        self.seen: list[dict[str, Any]] = []

    def kubectl(self, command: str, manifest: str | None = None) -> str:
        return self.cluster.kubectl(*command.split(" "), "--namespace", self.namespace, input=manifest)

    def apply(self, manifest: str) -> None:
        self.kubectl("apply -f -", manifest)

    def wait(self, what: str, *paths: str) -> None:
        """Wait for paths with values, such as ".status.replicas=3"."""
        for each in paths:
            path, _, value = each.partition("=")
            self.kubectl(f"wait {what} --for=jsonpath={{{path}}}{'=' + value if value else ''} {PATIENCE}")

    def rollout(self, what: str) -> None:
        self.kubectl(f"rollout status {what} {PATIENCE}")

    def rolled_out(self, name: str, replicas: int) -> None:
        """Wait for a deployment with so many pods, and none that leave."""
        self.rollout(f"deployment/{name}")
        self.wait(f"deployment/{name}", f".status.replicas={replicas}", ".status.terminatingReplicas=0")

    def pods(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.items("pods")
        return items

    def items(self, kinds: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.kubectl(f"get {kinds} -o json"))["items"]
        return found

    def see(self, kinds: str) -> None:
        self.seen += self.items(kinds)

    def until_pods(self, what: str, agree: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        until(what, lambda: agree(self.pods()), 120)
        return self.pods()

    def set_status(self, pod: str, **status: Any) -> None:
        patch = json.dumps({"status": status}).replace(" ", "")
        self.kubectl(f"patch pod {pod} --subresource=status --type=merge -p {patch}")

    @contextmanager
    def labelled(self, node: str, label: str) -> Iterator[None]:
        """A node with a label, such as "disk=fast". All stories share the nodes: it goes, also if the story fails."""
        self.kubectl(f"label node {node} {label}")
        try:
            yield
        finally:
            self.kubectl(f"label node {node} {label.partition('=')[0]}-")

    @contextmanager
    def tainted(self, node: str, taint: str) -> Iterator[None]:
        """A node with a taint, such as "busy=yes:NoExecute", which goes like a label."""
        self.kubectl(f"taint node {node} {taint}")
        try:
            yield
        finally:
            self.kubectl(f"taint node {node} {taint.partition('=')[0]}-")

    def evict(self, pod: str) -> int:
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}/eviction"
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": self.namespace}}
        return self.cluster.api().ask("POST", path, body).status


def deployment(replicas: int, more: str = "", container: str = "") -> str:
    return f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      {RESTRICTED}
      {more}
      containers: [{{name: web, image: "registry.example/web:1"{container}}}]
"""


def stateful_set(more: str = "", pod: str = "") -> str:
    return f"""
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db}}
spec:
  serviceName: db
  replicas: 3
  {more}
  selector: {{matchLabels: {{app: db}}}}
  template:
    metadata: {{labels: {{app: db}}}}
    spec:
      {RESTRICTED}
      {pod}
      containers: [{{name: db, image: "registry.example/db:1"}}]
"""


def job(spec: str, pod: str = "") -> str:
    return f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: once}}
spec:
  {spec}
  template:
    spec:
      {RESTRICTED}
      restartPolicy: Never
      {pod}
      containers: [{{name: main, image: "registry.example/once:1"}}]
"""


UNSCHEDULED = "schedulerName: nobody"
READY = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
WORKLOAD = "deployments,replicasets,pods"


def new_template(stage: Stage) -> None:
    stage.apply(deployment(3))
    stage.rolled_out("web", 3)
    stage.kubectl("set image deployment/web web=registry.example/web:2")
    stage.rolled_out("web", 3)
    stage.see(WORKLOAD)


def scale_up_and_down(stage: Stage) -> None:
    stage.apply(deployment(2))
    stage.rolled_out("web", 2)
    stage.kubectl("scale deployment/web --replicas=5")
    stage.rolled_out("web", 5)
    stage.see(WORKLOAD)
    stage.kubectl("scale deployment/web --replicas=1")
    stage.rolled_out("web", 1)
    stage.see(WORKLOAD)


def rollback(stage: Stage) -> None:
    stage.apply(deployment(2))
    stage.rolled_out("web", 2)
    stage.kubectl("set image deployment/web web=registry.example/web:2")
    stage.rolled_out("web", 2)
    stage.kubectl("rollout undo deployment/web")
    stage.rolled_out("web", 2)
    stage.see(WORKLOAD)


def job_that_fails(stage: Stage) -> None:
    """The pods are failed as they come; the second one is one too many."""
    stage.apply(job("backoffLimit: 1", UNSCHEDULED))
    for number in (1, 2):
        pods = stage.until_pods(f"attempt {number}", lambda pods, number=number: len(pods) == number)  # type: ignore[misc]
        (waiting,) = [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Pending"]
        stage.set_status(waiting, phase="Failed")
    stage.kubectl(f"wait job/once --for=condition=Failed {PATIENCE}")
    stage.see("jobs,pods")


def parallel_job(stage: Stage) -> None:
    stage.apply(job("completions: 4\n  parallelism: 2"))
    stage.kubectl(f"wait job/once --for=condition=Complete {PATIENCE}")
    stage.see("jobs,pods")


def indexed_job(stage: Stage) -> None:
    stage.apply(job("completions: 3\n  parallelism: 3\n  completionMode: Indexed"))
    stage.kubectl(f"wait job/once --for=condition=Complete {PATIENCE}")
    stage.see("jobs,pods")


def ordered_pods(stage: Stage) -> None:
    """Each pod waits until the one before it is ready; the last one goes first."""
    stage.apply(stateful_set(pod=UNSCHEDULED))
    for number in range(3):
        pods = stage.until_pods(f"pod {number}", lambda pods, number=number: len(pods) > number)  # type: ignore[misc]
        assert len(pods) == number + 1
        stage.wait("statefulset/db", f".status.replicas={number + 1}")
        stage.see("statefulsets,pods")
        stage.set_status(f"db-{number}", phase="Running", conditions=READY)
    stage.wait("statefulset/db", ".status.readyReplicas=3")
    stage.kubectl("scale statefulset/db --replicas=1")
    stage.wait("statefulset/db", ".status.replicas=1", ".status.observedGeneration=2")
    stage.see("statefulsets,pods,controllerrevisions")


def partitioned_update(stage: Stage) -> None:
    """Pods below the partition keep the old template, also when they are created anew."""
    stage.apply(stateful_set("updateStrategy: {rollingUpdate: {partition: 2}}"))
    stage.rollout("statefulset/db")
    stage.wait("statefulset/db", ".status.availableReplicas=3")
    stage.kubectl("set image statefulset/db db=registry.example/db:2")
    stage.rollout("statefulset/db")
    stage.wait("statefulset/db", ".status.updatedReplicas=1", ".status.readyReplicas=3")
    stage.see("statefulsets,pods,controllerrevisions")
    stage.kubectl("delete pod db-0")
    stage.kubectl(f"wait pod/db-0 --for=create {PATIENCE}")
    stage.kubectl(f"wait pod/db-0 --for=condition=Ready {PATIENCE}")
    stage.wait("statefulset/db", ".status.readyReplicas=3", ".status.currentReplicas=2")
    stage.see("statefulsets,pods")
    stage.kubectl('patch statefulset db -p {"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}')
    stage.wait("statefulset/db", ".status.updatedReplicas=3", ".status.readyReplicas=3", ".status.currentReplicas=3")
    stage.see("statefulsets,pods,controllerrevisions")


DAEMONS = f"""
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent}}
spec:
  selector: {{matchLabels: {{app: agent}}}}
  template:
    metadata: {{labels: {{app: agent}}}}
    spec:
      {RESTRICTED}
      nodeSelector: {{disk: fast}}
      containers: [{{name: agent, image: "registry.example/agent:1"}}]
"""


def daemons(stage: Stage) -> None:
    """On the nodes with a label, those that get it, and those that come with it."""
    first, second = stage.nodes[:2]
    with stage.labelled(first, "disk=fast"):
        stage.apply(DAEMONS)
        stage.wait("daemonset/agent", ".status.numberReady=1", ".status.observedGeneration=1")
        stage.see("daemonsets,pods")
        with stage.labelled(second, "disk=fast"), stage.cluster.nodes(1, prefix="late", labels={"disk": "fast"}):
            stage.wait("daemonset/agent", ".status.numberReady=3", ".status.numberAvailable=3")
            stage.see("daemonsets,pods")
            stage.kubectl(f"label node {first} disk-")
            stage.wait("daemonset/agent", ".status.desiredNumberScheduled=2", ".status.numberMisscheduled=0")
            stage.until_pods("one pod leaves", lambda pods: len(pods) == 2)
            stage.see("daemonsets,pods,controllerrevisions")
            stage.kubectl("set image daemonset/agent agent=registry.example/agent:2")
            stage.rollout("daemonset/agent")
            stage.see("daemonsets,pods,controllerrevisions")
            stage.kubectl("delete daemonset agent --cascade=foreground")


BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
"""


def evictions(stage: Stage) -> None:
    stage.apply(deployment(2))
    stage.rolled_out("web", 2)
    stage.apply(BUDGET)
    stage.wait("pdb/web", ".status.currentHealthy=2", ".status.observedGeneration=1")
    first = stage.pods()[0]["metadata"]["name"]
    assert stage.evict(first) == 429
    stage.see("pdb")
    stage.kubectl('patch pdb web --type=merge -p {"spec":{"minAvailable":1}}')
    stage.wait("pdb/web", ".status.disruptionsAllowed=1")
    assert stage.evict(first) == 201
    stage.kubectl(f"wait pod/{first} --for=delete {PATIENCE}")
    # The budget first: it allows none until the new pod is ready, while others may not have seen yet that one is gone.
    stage.wait("pdb/web", ".status.currentHealthy=2", ".status.disruptionsAllowed=1")
    until("the eviction is forgotten", lambda: not stage.items("pdb")[0]["status"].get("disruptedPods"))
    stage.rolled_out("web", 2)
    stage.see(f"{WORKLOAD},pdb")


def garbage(stage: Stage) -> None:
    stage.apply(deployment(2))
    stage.rolled_out("web", 2)
    stage.kubectl("delete deployment web --cascade=orphan")
    until("the replica set is an orphan", lambda: not stage.items("replicasets")[0]["metadata"].get("ownerReferences"))
    stage.see("deployments,replicasets,pods")
    stage.kubectl("delete replicasets --all --cascade=foreground")
    assert stage.items("replicasets,pods") == []
    stage.apply(deployment(2))
    stage.rolled_out("web", 2)
    stage.kubectl("delete deployment web --cascade=background")
    until("all of it goes", lambda: stage.items(WORKLOAD) == [])


QUOTA = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few}\nspec: {hard: {pods: '2'}}\n"


def quota(stage: Stage) -> None:
    stage.apply(QUOTA)
    stage.wait("quota/few", ".status.used.pods=0")
    stage.apply(deployment(3))
    stage.kubectl(f"wait deployment/web --for=condition=ReplicaFailure {PATIENCE}")
    stage.wait("deployment/web", ".status.readyReplicas=2", ".status.availableReplicas=2")
    stage.wait("quota/few", ".status.used.pods=2")
    stage.see(f"{WORKLOAD},quota")
    stage.kubectl('patch quota few -p {"spec":{"hard":{"pods":"5"}}}')
    stage.rolled_out("web", 3)
    stage.wait("quota/few", ".status.used.pods=3", ".status.hard.pods=5")
    stage.see(f"{WORKLOAD},quota")


def no_execute(stage: Stage) -> None:
    node = stage.nodes[0]
    stage.apply(deployment(2, "nodeSelector: {topology.kubernetes.io/zone: zone-0}"))
    stage.rolled_out("web", 2)
    with stage.tainted(node, "busy=yes:NoExecute"):
        stage.until_pods("both are waiting again", lambda pods: all(map(_rejected, pods)) and len(pods) == 2)
        stage.wait("deployment/web", ".status.unavailableReplicas=2", ".status.terminatingReplicas=0")
        stage.wait("deployment/web", ".status.replicas=2", ".status.updatedReplicas=2")
        stage.see(WORKLOAD)
    stage.rolled_out("web", 2)
    stage.see(WORKLOAD)


def _rejected(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "PodScheduled" and each["status"] == "False" for each in conditions)


CRON_JOB = f"""
apiVersion: batch/v1
kind: CronJob
metadata: {{name: often}}
spec:
  schedule: "@every 20s"
  concurrencyPolicy: Forbid
  jobTemplate:
    metadata: {{labels: {{made-by: often}}}}
    spec:
      template:
        spec:
          {RESTRICTED}
          restartPolicy: Never
          {UNSCHEDULED}
          containers: [{{name: main, image: "registry.example/often:1"}}]
"""


def cron_job(stage: Stage) -> None:
    """Its pod waits until it is suspended: no second job begins while the first one is active."""
    stage.apply(CRON_JOB)
    stage.wait("cronjob/often", ".status.lastScheduleTime")
    stage.kubectl('patch cronjob often -p {"spec":{"suspend":true}}')
    (pod,) = stage.until_pods("the job has its pod", lambda pods: len(pods) == 1)
    stage.set_status(pod["metadata"]["name"], phase="Succeeded")
    stage.wait("cronjob/often", ".status.lastSuccessfulTime")
    until("no job is active", lambda: "active" not in stage.items("cronjobs")[0]["status"])
    stage.see("cronjobs,jobs,pods")


STORIES: dict[str, Callable[[Stage], None]] = {
    "a new template": new_template,
    "up and down": scale_up_and_down,
    "a rollback": rollback,
    "a job that fails": job_that_fails,
    "a parallel job": parallel_job,
    "an indexed job": indexed_job,
    "pods in order": ordered_pods,
    "an update with a partition": partitioned_update,
    "daemons": daemons,
    "evictions with a budget": evictions,
    "garbage": garbage,
    "a quota that is raised": quota,
    "a taint that evicts": no_execute,
    "a cron job": cron_job,
}
