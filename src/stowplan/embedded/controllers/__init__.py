"""Controllers and pretend kubelets: changes in, actions out, time as an argument.

    controllers              who works here; which keys each has to look at, and when
    actions, hands    what they want done, and how it is done: through the API's own door
    roster            all of them:
      replicas        ReplicaSets and ReplicationControllers
      rollouts        Deployments, with `proportions` and `progress`
      stateful, daemons, jobs, disruptions
      volumes         claims and their volumes
      garbage, namespaces, aging    what goes, and what goes with it
      nodes, kubelets nodes that are ready, pods that run and end

A controller reads the store, which is always true, and never changes it. So the same controllers runs in an embedded
cluster and in a simulation's virtual time.
"""
