"""Everything that an author of scheduling policies imports. What is in `__all__` is kept; see docs/stability.md.

    from stowplan.plugin import Nodes, Pod, Reject

    class OnSsd:
        \"""Keep pods with the label disk=ssd off nodes without an ssd.\"""

        def filter(self, pod: Pod, nodes: Nodes):
            if pod.labels.get("disk") == "ssd":
                yield Reject(nodes.label("disk") != "ssd", "node(s) had no ssd")

A policy is a plain class; there is no base class. It has any of the methods below, and the scheduler calls those that
its configuration enables. The constructor's parameters are the arguments in the configuration. Methods do no I/O, read
no clock and draw no random numbers. docs/plugins.md tells the whole story.

For nodes, in the order in which a pod meets them:

    pre_enqueue(pod, cluster)            None, or RejectPod: the pod is gated, and not attempted yet
    sort_key(pod, queued_at)             a key: the pod with the smaller key is attempted first
    cluster_key(entry, cluster)          the same, for an order that depends on the cluster (with `reorders_on()`)
    group_of(pod, cluster)               the Group that the pod belongs to, or None
    pre_filter(pod, cluster)             None, SKIP (no filter for this pod), Only (some nodes), or RejectPod
    filter(pod, nodes)                   yields Reject for nodes that may not get the pod
    avoid(pod, cluster)                  None, or Avoid: nodes to use only if no other node is feasible
    score(pod, nodes)                    0 to 100 for each node (int64), one number for all, or None: no opinion
    reserve(pod, node_name, cluster)     None, or RejectPod; the pod is going to be bound to this node
    unreserve(pod, node_name, cluster)   undoes `reserve`; also called if `reserve` was not
    permit(pod, node_name, cluster)      None, RejectPod, or the seconds that the pod may have to wait
    pre_bind(pod, node_name, cluster)    yields actions (Patch, Create, Delete) that must succeed before the binding
    post_bind(pod, node_name, cluster)   yields actions for after the binding

At any time:

    wakes_on()                           the Wakes: cluster events that may make a rejected pod schedulable
    reconcile(changed, cluster)          yields actions that keep objects of the API in step with the cluster; called
                                         for changes of the kinds in the attribute `reconciles`
    gauges(cluster)                      the plugin's own metrics (Gauge)
    causes(pod, nodes)                   yields NodeCause: the concrete thing for which `filter` rejected these nodes;
                                         only `stowplan explain` asks, and without it shows the reason
    pod_causes(pod, cluster)             yields Cause, the same for `pre_enqueue` and `pre_filter`

For clusters, in `stowplan place`:

    filter(placement, clusters)          yields Reject for clusters that may not be chosen, or Misconfigured
    score(placement, clusters)           -100 to 100 for each cluster (int64), one number for all, or None: no opinion;
                                         what a masked array masks has no score, and counts as 0
    why(placement, cluster)              a more precise reason for one rejected cluster, when somebody looks at it
    changes_at(placement, clusters)      when time alone may change an answer (seconds since the epoch), or None

Class attributes that a policy may have:

    reads            kinds that it reads besides pods and nodes: names ("Deployment") or a CustomResource
    writes           what its actions write besides its CustomResources: {"Deployment": ("patch",)}; the words are
                     "status", "create", "patch" and "delete", and a write that is not declared is an error
    filters_by_row   True if `filter` looks at nothing but the pod's spec and the node itself: answers are then cached
    scores_by_row    the same for `score`
    scores_by_node   True if `score` looks at nothing but the pod's spec and the node objects that it is asked about
    reconciles       names of kinds whose changes `reconcile` gets
    retries_by_object   True if it gets the object of a write that failed, when that is tried again, and not None
    one_for_all      True if all profiles share one instance

What follows is long. `Nodes`, `Cluster` and `Clusters` also have members for plugins that come with Stowplan (`state`,
`rows`, `token`, `copy_of` and others), which may change. A policy relies on those that docs/plugins.md names.
"""

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.fleet.one_cluster import OneCluster
from stowplan.columns.fleet.views import Clusters
from stowplan.columns.nodes.one_node import OneNode
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.framework.causes import Cause, NodeCause
from stowplan.framework.decision import SKIP, Avoid, Only, Reject, RejectPod, Skip
from stowplan.framework.group import Group
from stowplan.framework.interfaces import Gauge, QueueEntry, Wake
from stowplan.framework.per_node import per_node
from stowplan.framework.placement.interfaces import Misconfigured
from stowplan.objects.actions import Create, Delete, Patch, status_patch
from stowplan.objects.affinity import PodQuery, pods_with
from stowplan.objects.custom_resources import CustomResource
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import ApiValue, Object
from stowplan.objects.nodes import Node
from stowplan.objects.placements import Placement
from stowplan.objects.pods import Pod

__all__ = [
    "SKIP",
    "ApiValue",
    "Avoid",
    "Bools",
    "Cause",
    "Cluster",
    "Clusters",
    "ConfigError",
    "Create",
    "CustomResource",
    "Delete",
    "Gauge",
    "Group",
    "Ints",
    "Misconfigured",
    "Node",
    "NodeCause",
    "Nodes",
    "Object",
    "OneCluster",
    "OneNode",
    "Only",
    "Patch",
    "Placement",
    "Pod",
    "PodQuery",
    "QueueEntry",
    "Reject",
    "RejectPod",
    "Skip",
    "Wake",
    "per_node",
    "pods_with",
    "status_patch",
]
