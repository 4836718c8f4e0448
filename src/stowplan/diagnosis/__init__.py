"""Diagnosis of a pending pod: every cause by name, and the smallest changes after which the pod is scheduled.

search       start here: `diagnose` puts all of it together, for one pod
rejections   every filter's answer about every node, not only the first rejection
causes       the concrete things behind them; nodes with the same causes are one group
case         what each plugin would say to a changed pod; offers: which changes make it accept which nodes
remedies/    a module for each kind of remedy; each makes offers, or proposes edits
combining    the fewest offers that open a node; single_edits: what may help together with deletions and more nodes
edits        one change, and how small it can be; patches: changes applied to documents; changed_cluster: to the cluster
node_templates  nodes that could be added, each with a name of its own
failing_plugins   a plugin that raises is a cause, and the rest goes on without it
trying       the decision for the pod in the changed cluster
ranking      the order of remedies, as a table
remedy       a remedy as a value: changes of objects, the node that the pod would get, who would be evicted
diagnosis    the diagnosis as a value; never and waiting: what no change helps, and what needs none

For what is not a single pod, or depends on more than nodes:

any_pod              start here: any pod with its group, its policy or its application
groups/              a group of pods that does not run as a whole
placements/          a placement that does not get its clusters
special_remedies     a pod with a WorkloadPolicy (`workload_policies`), a Spark application (`reservations`)
rehearsing           such a pod rehearsed in the changed cluster
deletions            what follows from deleted pods, and what has the same effect
proposals            changes that may help, and the search for the smallest set; `cluster_proposals`: of the cluster
"""
