"""Diagnosis of a group of pods that waits: why it does not run as a whole, and the smallest changes that help.

diagnosis    all of it together, for one group (start here)
trying       the cluster and the members as they would be; the whole group is rehearsed
members      changes of the group's own pods and objects: minimum, requests, tolerations, priority, missing members
never        the group is too large for the nodes, even if they were empty

Changes of the cluster are in `cluster_proposals`; what follows from deleted pods is in `deletions`.
"""
