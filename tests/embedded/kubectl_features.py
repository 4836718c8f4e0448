"""More kubectl commands, by feature: they follow those of a working day (`kubectl_script`)."""

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

STATEFUL = (
    Step("a class and volumes", "apply -f -", STORED),
    Step("a mount without a volume", "apply -f -", UNMOUNTED, fails=True),
    Step("a set with claims", "apply -f -", STATEFUL_SET),
    Step("its rollout", "rollout status statefulset/st --timeout=180s", last=True),
    Step("its claims", "get pvc"),
    Step("a claim as yaml", "get pvc data-st-0 -o yaml"),
    Step("the volumes", "get pv volume-0 volume-1"),
    Step("a pod of it as yaml", "get pod st-0 -o yaml"),
    Step("the set as yaml", "get statefulset st -o yaml"),
    Step("describe the set", "describe statefulset st"),
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
    Step("the volume is released", "get pv volume-1"),
    Step("claims go with the set", f"patch statefulset st -p {RETAINED}"),
    Step("delete the set", "delete statefulset st"),
    Step("its pods go", "wait pod -l app=st --for=delete --timeout=180s", races=True),
    Step("its claims go, too", "wait pvc/data-st-0 --for=delete --timeout=180s", races=True),
    Step("no claims are left", "get pvc"),
    Step("delete the class and the volumes", "delete -f -", STORED),
)
