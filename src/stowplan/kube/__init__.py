"""The client of the Kubernetes API: watches become changes, actions become requests.

credentials            servers and credentials, with `kubeconfig`, `exec_plugin`, `tls` and `proxy`
transport              requests with retries, over a `pool` of `connection`s; `rate_limits`, `responses`
client, resources      lists, watches and single objects of a kind
reflector              the changes of one kind, with `reflector_cache`
writer                 carries out actions, with `action_requests` and `events`
lease, lease_thread    leader election
extenders              HTTP extenders of kube-scheduler
event_loop             uvloop, if it is installed
"""
