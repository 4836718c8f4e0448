"""`make bench-live`: Stowplan and kube-scheduler, one after the other, at the same real kube-apiserver.

    nodes (stay) ─► for each workload and round: kube-scheduler, Stowplan, and clients that do not think (the floors)
                       clear ─► create pods ─► watch ─► start the process ─► last bind ─► last event ─► stop

Every contender is a process of its own and is measured from outside: a watch of ours says when a pod is bound, /proc
what the process took. The README of the folder above says what the figures mean.
"""
