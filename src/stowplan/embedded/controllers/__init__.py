"""Controllers and simulated kubelets: changes in, actions out, time as an argument.

controller_manager   which keys a controller must reconcile, and when; with `delayed_keys` and `refused_keys`
actions              what a controller may do; `action_runner` carries actions out with the verbs of the API,
                     `controller_events` writes their events
registry             all controllers, in the order in which they run
queries              functions that several controllers share
deployments          with `deployment_scaling` and `deployment_status`
replica_sets, daemon_sets, jobs, cron_jobs, disruption_budgets, volumes
stateful_sets        with `stateful_claims` and `revisions`
garbage_collection, namespaces, event_expiry, taint_evictions, resource_quotas
nodes, kubelets      nodes become ready; bound pods run and end
resource_claims      claims from templates, freed when their pods go; device_drivers publishes the devices of nodes

A controller reads the store, which is always up to date, and never writes to it. The same controllers run in an
embedded cluster and in the virtual time of a simulation.
"""
