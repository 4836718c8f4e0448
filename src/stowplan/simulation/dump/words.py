"""Kubernetes' own words, and those of the policies that we know: `--anonymise` leaves them as they are.

A word that is not here is replaced, wherever it stands. So a word is listed only if it means the same in every cluster:
keys and values that Kubernetes or a policy reads, names that every cluster has, resources, drivers, enumerations.
"""

from __future__ import annotations

from stowplan.objects import applications, csi_migration, spark, storage, volume_assignments
from stowplan.objects.reservations import NAMED

_KEYS = """
kubernetes.io/hostname kubernetes.io/arch kubernetes.io/os kubernetes.io/metadata.name
beta.kubernetes.io/arch beta.kubernetes.io/os beta.kubernetes.io/instance-type node.kubernetes.io/instance-type
topology.kubernetes.io/zone topology.kubernetes.io/region
failure-domain.beta.kubernetes.io/zone failure-domain.beta.kubernetes.io/region
node-role.kubernetes.io/control-plane node-role.kubernetes.io/master node-role.kubernetes.io/worker
node.kubernetes.io/not-ready node.kubernetes.io/unreachable node.kubernetes.io/unschedulable
node.kubernetes.io/memory-pressure node.kubernetes.io/disk-pressure node.kubernetes.io/pid-pressure
node.kubernetes.io/network-unavailable node.kubernetes.io/out-of-service
node.kubernetes.io/exclude-from-external-load-balancers
node.cloudprovider.kubernetes.io/uninitialized node.cloudprovider.kubernetes.io/shutdown
ToBeDeletedByClusterAutoscaler DeletionCandidateOfClusterAutoscaler
karpenter.sh/nodepool karpenter.sh/capacity-type karpenter.sh/disrupted karpenter.sh/unregistered
eks.amazonaws.com/nodegroup cloud.google.com/gke-nodepool agentpool kubernetes.azure.com/agentpool
topology.gke.io/zone topology.ebs.csi.aws.com/zone topology.cinder.csi.openstack.org/zone
topology.disk.csi.azure.com/zone topology.k8s.aws/zone-id
nvidia.com/gpu.product nvidia.com/gpu.count nvidia.com/gpu.memory nvidia.com/gpu.present
app.kubernetes.io/name app.kubernetes.io/instance app.kubernetes.io/component app.kubernetes.io/part-of
app.kubernetes.io/managed-by app.kubernetes.io/version
pod-template-hash controller-revision-hash pod-template-generation statefulset.kubernetes.io/pod-name
apps.kubernetes.io/pod-index batch.kubernetes.io/job-name batch.kubernetes.io/controller-uid
batch.kubernetes.io/job-completion-index job-name controller-uid metadata.name
job-group.kubernetes.io/name leaderworkerset.sigs.k8s.io/name
kosmos.io/node workload-policy/kosmos.io workload-policy.kosmos.io flavour
volcano.sh/queue-name volcano.sh/job-name volcano.sh/task-spec kai.scheduler/queue runai/queue
kueue.x-k8s.io/queue-name kueue.x-k8s.io/podset alibabacloud.com/gpu-card-model
"""

_ANNOTATIONS = """
kubernetes.io/config.mirror controller.kubernetes.io/pod-deletion-cost workload-policy.kosmos.io/deletion-cost
deployment.kubernetes.io/desired-replicas storageclass.kubernetes.io/is-default-class
storageclass.beta.kubernetes.io/is-default-class volume.beta.kubernetes.io/storage-class
volume.kubernetes.io/storage-provisioner volume.beta.kubernetes.io/storage-provisioner
pv.kubernetes.io/provisioned-by leafNodeMode kosmos-io/owned-by-cluster
annotation.sp.io/disable-priority-scheduler annotation.sp.io/schedule-state
scheduling.k8s.io/group-name scheduling.volcano.sh/group-name volcano.sh/task-spec
alibabacloud.com/gpu-milli alibabacloud.com/gpu-count alibabacloud.com/gpu-index gpu-fraction gpu-memory
gpu-fraction-num-devices cluster-autoscaler.kubernetes.io/safe-to-evict karpenter.sh/do-not-disrupt
"""

_NUMBERED = """
controller.kubernetes.io/pod-deletion-cost workload-policy.kosmos.io/deletion-cost
deployment.kubernetes.io/desired-replicas storageclass.kubernetes.io/is-default-class
storageclass.beta.kubernetes.io/is-default-class annotation.sp.io/disable-priority-scheduler
apps.kubernetes.io/pod-index batch.kubernetes.io/job-completion-index
alibabacloud.com/gpu-milli alibabacloud.com/gpu-count alibabacloud.com/gpu-index gpu-fraction gpu-memory
gpu-fraction-num-devices nvidia.com/gpu.count nvidia.com/gpu.memory kosmos.io/node
"""

_NAMES = """
default kube-system kube-public kube-node-lease default-scheduler stowplan kube-scheduler volcano
system-cluster-critical system-node-critical kosmos-scheduler kubenexus-scheduler secondary-scheduler
sp-scheduler bin-packing-scheduler kai-scheduler
driver executor one2cluster one2one rbd
latest last node_count pending since_halving
"""

_RESOURCES = """
cpu memory ephemeral-storage storage pods services secrets configmaps persistentvolumeclaims replicationcontrollers
resourcequotas services.loadbalancers services.nodeports gpu
nvidia.com/gpu nvidia.com/gpu.shared amd.com/gpu gpu.intel.com/i915 gpu.intel.com/xe google.com/tpu habana.ai/gaudi
aws.amazon.com/neuron aws.amazon.com/neuroncore alibabacloud.com/gpu-milli alibabacloud.com/gpu-count
alibabacloud.com/gpu-card smarter-devices/fuse
deployments.apps replicasets.apps statefulsets.apps daemonsets.apps jobs.batch cronjobs.batch
ingresses.networking.k8s.io
"""

_DRIVERS = """
kubernetes.io/no-provisioner disk.csi.azure.com file.csi.azure.com csi.vsphere.vmware.com pd.csi.storage.gke.io
efs.csi.aws.com rook-ceph.rbd.csi.ceph.com rbd.csi.ceph.com cephfs.csi.ceph.com
"""

_VALUES = """
true false True False Unknown
Exists DoesNotExist In NotIn Gt Lt Equal
NoSchedule PreferNoSchedule NoExecute
DoNotSchedule ScheduleAnyway Honor Ignore
TCP UDP SCTP
Pending Running Succeeded Failed
Ready MemoryPressure DiskPressure PIDPressure NetworkUnavailable
PodScheduled Initialized ContainersReady PodReadyToStartContainers DisruptionTarget PodResizePending
PodResizeInProgress Unschedulable SchedulingGated SchedulerError PreemptionByScheduler DeletionByTaintManager
EvictionByEvictionAPI TerminationByKubelet PodFailed PodCompleted Deferred Infeasible NominatedNodeNotFound
Always OnFailure Never Restart RestartAllContainers
PreemptLowerPriority
ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod Filesystem Block
Retain Delete Recycle Immediate WaitForFirstConsumer Available Bound Released Lost
OrderedReady Parallel RollingUpdate Recreate OnDelete NonIndexed Indexed
Complete Suspended FailureTarget SuccessCriteriaMet Progressing ReplicaFailure FailedCreate MinimumReplicasAvailable
MinimumReplicasUnavailable NewReplicaSetAvailable ProgressDeadlineExceeded ReplicaSetUpdated
Terminating NotTerminating BestEffort NotBestEffort PriorityClass CrossNamespacePodAffinity VolumeAttributesClass
Container Pod PersistentVolumeClaim
Node Namespace Service ReplicationController ReplicaSet StatefulSet Deployment DaemonSet Job CronJob
PodGroup SigsPodGroup Workload WorkloadPolicy ResourceReservation PersistentVolume StorageClass JobSet LeaderWorkerSet
v1 apps/v1 batch/v1 policy/v1 storage.k8s.io/v1 scheduling.k8s.io/v1 scheduling.k8s.io/v1alpha2
scheduling.k8s.io/v1beta1 scheduling.x-k8s.io/v1alpha1 kosmos.io/v1alpha1 scheduling.kubenexus.io/v1alpha1
resource.k8s.io/v1 coordination.k8s.io/v1 events.k8s.io/v1 jobset.x-k8s.io/v1alpha2 leaderworkerset.x-k8s.io/v1
Preferred preferred Required required require Balance balance Fill fill Evict evict
Inqueue PreScheduling Scheduling Scheduled Finished
Managed Dedicated Shared mix host leaf UserNamespaces linux windows amd64 arm64 ppc64le s390x 0.0.0.0 127.0.0.1 :: ::1
"""

READ_ANNOTATIONS = frozenset(
    (
        *_ANNOTATIONS.split(),
        *spark.EVERY,
        NAMED,
        storage.BIND_COMPLETED,
        storage.SELECTED_NODE,
        volume_assignments.BOUND_BY_CONTROLLER,
        csi_migration.MIGRATED_PLUGINS,
    )
)
"""The annotations that decisions, explanations and controllers read. A dump has no others."""

NUMBERED = frozenset((*_NUMBERED.split(), *spark.EVERY, *applications.MINIMA))
"""Labels and annotations whose values are amounts or truth values, not names."""

OWN_WORDS = READ_ANNOTATIONS | frozenset(
    (
        *" ".join((_KEYS, _NAMES, _RESOURCES, _DRIVERS, _VALUES)).split(),
        *applications.APPLICATIONS,
        applications.SPARKS_OWN,
        *applications.ROLES,
        *applications.NAMES,
        *applications.MINIMA,
        applications.POD_GROUP,
        *(word for each in csi_migration.IN_TREE.values() for word in (each.name, each.driver, each.zone_key) if word),
    )
)
