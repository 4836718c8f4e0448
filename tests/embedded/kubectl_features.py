"""More kubectl commands, by feature: they follow those of a working day (`kubectl_script`).

No step may depend on who is faster. A command that changes something comes back before controllers, events and the
server's own caches have followed: what shows their work comes after a step that waits for it, or says with `shows`
what it waits for.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    says: str
    command: str
    input: str | None = None
    fails: bool = False
    sorts: bool = False  # the order of lines is not defined, and lines may repeat
    last: bool = False  # how long a thing took is in the lines before the last
    races: bool = False  # the output depends on timing; only the exit code is compared
    shows: str = ""  # a question, asked again until its answer has this: it comes from what follows later


def told_of(reason: str, name: str) -> Step:
    """Wait for an event before a step that shows it: events are sent apart from the status, and may come after it."""
    which = f"--field-selector reason={reason},involvedObject.name={name}"
    return Step("its event is there", f"wait events --for=create {which} --timeout=180s", races=True)


STORED = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: manual}
provisioner: kubernetes.io/no-provisioner
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: volume-0}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: manual, hostPath: {path: /x}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: volume-1}
spec: {capacity: {storage: 2Gi}, accessModes: [ReadWriteOnce], storageClassName: manual, hostPath: {path: /x}}
"""
STATEFUL_SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: st}
spec:
  serviceName: st
  replicas: 2
  selector: {matchLabels: {app: st}}
  template:
    metadata: {labels: {app: st}}
    spec:
      automountServiceAccountToken: false
      nodeSelector: {topology.kubernetes.io/zone: zone-1}
      containers:
      - {name: c, image: "registry.example/st:1", volumeMounts: [{name: data, mountPath: /data}]}
  volumeClaimTemplates:
  - metadata: {name: data, labels: {own: label}}
    spec: {accessModes: [ReadWriteOnce], storageClassName: manual, resources: {requests: {storage: 1Gi}}}
"""
UNMOUNTED = STATEFUL_SET.replace("name: data, mountPath", "name: other, mountPath")
RETAINED = """{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete","whenDeleted":"Delete"}}}"""

AVAILABLE = "--for=jsonpath={.status.phase}=Available"
BOUND = "--for=jsonpath={.status.phase}=Bound"
OWNED = "--for=jsonpath={.metadata.ownerReferences[0].kind}=StatefulSet"

STATEFUL = (
    Step("a class and volumes", "apply -f -", STORED),
    Step("both are free", f"wait pv volume-0 volume-1 {AVAILABLE} --timeout=180s"),
    Step("a mount without a volume", "apply -f -", UNMOUNTED, fails=True),
    Step("a set with claims", "apply -f -", STATEFUL_SET),
    Step("its rollout", "rollout status statefulset/st --timeout=180s", last=True),
    Step("its claims are bound", f"wait pvc data-st-0 data-st-1 {BOUND} --timeout=180s"),
    Step("its claims", "get pvc"),
    Step("a claim as yaml", "get pvc data-st-0 -o yaml"),
    Step("the volumes", "get pv volume-0 volume-1"),
    Step("a pod of it as yaml", "get pod st-0 -o yaml"),
    Step("the set as yaml", "get statefulset st -o yaml"),
    Step("describe the set", "describe statefulset st", shows="Create Pod st-1 in StatefulSet st success"),
    Step("its revisions", "get controllerrevisions -l app=st"),
    Step("a revision as yaml", "get controllerrevisions -l app=st -o yaml"),
    Step("its history", "rollout history statefulset/st"),
    Step("set an image", "set image statefulset/st c=registry.example/st:2"),
    Step("the second rollout", "rollout status statefulset/st --timeout=180s", last=True),
    Step("the history is longer", "rollout history statefulset/st"),
    Step("one of the history", "rollout history statefulset/st --revision=2"),
    Step("undo", "rollout undo statefulset/st"),
    Step("the third rollout", "rollout status statefulset/st --timeout=180s", last=True),
    Step("the first revision is the newest", "rollout history statefulset/st"),
    Step("scale it down", "scale statefulset/st --replicas=1"),
    Step("the last pod goes", "wait pod/st-1 --for=delete --timeout=180s", races=True),
    Step("the claims stay", "get pvc"),
    Step("delete the claim", "delete pvc data-st-1"),
    Step("the volume loses it", "wait pv/volume-1 --for=jsonpath={.status.phase}=Released --timeout=180s"),
    Step("the volume is released", "get pv volume-1"),
    Step("claims go with the set", f"patch statefulset st -p {RETAINED}"),
    Step("they belong to it", f"wait pvc/data-st-0 {OWNED} --timeout=180s"),
    Step("delete the set", "delete statefulset st"),
    Step("its pods go", "wait pod -l app=st --for=delete --timeout=180s", races=True),
    Step("its claims go, too", "wait pvc/data-st-0 --for=delete --timeout=180s", races=True),
    Step("no claims are left", "get pvc"),
    Step("delete the class and the volumes", "delete -f -", STORED),
)

DAEMON_SET = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: made}
spec:
  selector: {matchLabels: {app: made}}
  template:
    metadata: {labels: {app: made}}
    spec:
      automountServiceAccountToken: false
      containers: [{name: main, image: "registry.example/made:1"}]
"""

DAEMON = (
    Step("a daemon set", "apply -f -", DAEMON_SET),
    Step("its rollout", "rollout status daemonset/made --timeout=180s", last=True),
    Step("get it", "get daemonsets -o wide"),
    Step("get it as yaml", "get daemonset made -o yaml"),
    Step("describe it", "describe daemonset made --show-events=false"),
    Step("its history", "rollout history daemonset/made"),
    Step("set an image", "set image daemonset/made main=registry.example/made:2"),
    Step("the second rollout", "rollout status daemonset/made --timeout=180s", last=True),
    Step("the history is longer", "rollout history daemonset/made"),
    Step("undo", "rollout undo daemonset/made"),
    Step("the third rollout", "rollout status daemonset/made --timeout=180s", last=True),
    Step("the first revision is the newest", "rollout history daemonset/made"),
    Step("its templates are counted", "get daemonset made -o jsonpath={.metadata.generation}{.metadata.annotations}"),
    Step("delete it", "delete daemonset made"),
    Step("its pods go", "wait pod -l app=made --for=delete --timeout=180s", races=True),
)

APPLIED = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: ours, labels: {a: b, c: d}}
spec:
  replicas: 1
  selector: {matchLabels: {app: ours}}
  template:
    metadata: {labels: {app: ours}}
    spec:
      automountServiceAccountToken: false
      nodeSelector: {topology.kubernetes.io/zone: zone-1}
      containers:
      - name: c
        image: registry.example/ours:1
        ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]
        env: [{name: A, value: b}, {name: C, value: d}]
        command: [a, b]
"""
OTHERS = APPLIED.replace("ours:1", "ours:2").replace("replicas: 1", "replicas: 2")
FEWER = (
    APPLIED.replace(", c: d}", "}")
    .replace(", {name: C, value: d}", "")
    .replace(", {containerPort: 80, protocol: UDP}", "")
)
NAMED = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, finalizers: [example.io/one]}
data: {a: b, c: d}
"""
MISNAMED = NAMED.replace("data:", "dta:")
TWICE = APPLIED.replace("name: C,", "name: A,")
ALIVE = """
apiVersion: v1
kind: Pod
metadata: {name: alive, labels: {app: alive}}
spec:
  automountServiceAccountToken: false
  nodeSelector: {topology.kubernetes.io/zone: zone-1}
  containers: [{name: main, image: "registry.example/alive:1"}]
"""
FIELDS = "--show-managed-fields -o jsonpath={range.metadata.managedFields[?(@.manager!='kube-controller-manager')]}"
FIELDS += '{.manager}/{.operation}/{.subresource}/{.apiVersion}/{.fieldsV1}{"\\n"}{end}'
# Controllers write the status after the command has ended; the pods of an old template take longer to go. After each
# change of the pods, so that each becomes a revision: a controller that is slow would see two changes as one.
SETTLED = (
    Step("its rollout ends", "rollout status deployment/ours --timeout=180s", last=True),
    Step("its old pods are gone", "wait deployment/ours --for=jsonpath={.status.terminatingReplicas}=0 --timeout=180s"),
)
SERVER_SIDE = (
    Step("apply by the server", "apply --server-side -f -", APPLIED),
    Step("its owner", f"get deployment ours {FIELDS}", sorts=True),
    *SETTLED,
    Step("the object", "get deployment ours -o yaml"),
    Step("apply it again", "apply --server-side -f -", APPLIED),
    Step("there is no last applied configuration", "apply view-last-applied deployment/ours"),
    Step("another owner of the same values", "apply --server-side --field-manager=other -f -", APPLIED),
    Step("both own them", f"get deployment ours {FIELDS}", sorts=True),
    Step("another owner of other values", "apply --server-side --field-manager=third -f -", OTHERS, fails=True),
    Step("scale it", "scale deployment/ours --replicas=3"),
    *SETTLED,
    Step("the scaler owns the replicas", f"get deployment ours {FIELDS}", sorts=True),
    Step("apply over the scaler", "apply --server-side -f -", APPLIED, fails=True),
    Step("apply over it and another", "apply --server-side --field-manager=other -f -", OTHERS, fails=True),
    Step("by force", "apply --server-side --force-conflicts -f -", APPLIED),
    *SETTLED,
    Step("now it is ours", f"get deployment ours {FIELDS}", sorts=True),
    Step("an image by a command", "set image deployment/ours c=registry.example/ours:3"),
    *SETTLED,
    Step("a conflict with the command", "apply --server-side -f -", APPLIED, fails=True),
    Step("by force again", "apply --server-side --force-conflicts --field-manager=other -f -", APPLIED),
    *SETTLED,
    Step("apply less", "apply --server-side --force-conflicts -f -", FEWER),
    *SETTLED,
    Step("the other one keeps what is dropped", "get deployment ours -o yaml"),
    Step("the other one applies less, too", "apply --server-side --field-manager=other -f -", FEWER),
    *SETTLED,
    Step("what nobody applies is gone", "get deployment ours -o yaml"),
    Step("their fields", f"get deployment ours {FIELDS}", sorts=True),
    Step("diff by the server", "diff --server-side -f -", FEWER),
    Step("a dry run", "apply --server-side --dry-run=server -f -", FEWER),
    Step("the same key twice", "apply --server-side -f -", TWICE, fails=True),
    Step("a config map", "apply --server-side -f -", NAMED),
    Step("its fields", f"get configmap settings {FIELDS}", sorts=True),
    Step("an unknown field", "apply --server-side -f -", MISNAMED, fails=True),
    Step("a label by a command", "label configmap settings tier=front"),
    Step("an annotation by a command", "annotate configmap settings note=hello"),
    Step("a patch", 'patch configmap settings --type=merge -p {"data":{"a":"x","new":"y"}}'),
    Step("who owns it now", f"get configmap settings {FIELDS}", sorts=True),
    Step("a conflict with a patch", "apply --server-side -f -", NAMED, fails=True),
    Step("less of it", "apply --server-side --force-conflicts -f -", NAMED.replace(", c: d", "")),
    Step("what is left", "get configmap settings -o yaml"),
    Step("no finalizers", "apply --server-side -f -", NAMED.replace(", finalizers: [example.io/one]", "")),
    Step("nothing applied holds it", "get configmap settings -o yaml"),
    Step("apply by the client", "apply -f -", NAMED.replace("settings, finalizers: [example.io/one]", "mine")),
    Step("its last applied configuration", "apply view-last-applied configmap/mine"),
    Step("the client's fields", f"get configmap mine {FIELDS}", sorts=True),
    Step("from the client to the server", "apply --server-side -f -",
         NAMED.replace("settings, finalizers: [example.io/one]", "mine")),
    Step("the fields move", f"get configmap mine {FIELDS}", sorts=True),
    Step("created by a command", "create configmap made --from-literal=a=b"),
    Step("the fields of a command", f"get configmap made {FIELDS}", sorts=True),
    Step("apply over a command", "apply --server-side -f -",
         NAMED.replace("settings, finalizers: [example.io/one]", "made").replace("a: b", "a: z"), fails=True),
    Step("a pod", "apply --server-side -f -", ALIVE),
    Step("wait for it", "wait pod/alive --for=condition=Ready --timeout=180s"),
    Step("apply it again", "apply --server-side -f -", ALIVE.replace("app: alive", "app: other")),
    Step("delete all of it", "delete configmap/settings configmap/mine configmap/made pod/alive deployment/ours"),
    Step("its pods go", "wait pod -l app=ours --for=delete --timeout=180s", races=True),
)  # fmt: skip
