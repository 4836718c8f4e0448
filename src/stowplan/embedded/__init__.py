"""A Kubernetes cluster in a process: an API server, controllers and simulated kubelets, all in memory.

cluster                `Embedded`: all of the parts below, running
store, change_log      documents, one resource version for all of them, and the recent changes for watches (pure)
resources              which kinds are served
schema/                the fields of every kind
ownership/             who owns which field: server-side apply (pure)
authorization/         users, tokens, roles: who may do what (pure)
admission/, validation/  what the API server fills in, and what it refuses
api/                   every verb, without HTTP
http/                  the same over HTTP
tables/                the columns of `kubectl get`
controllers/           Deployments to PersistentVolumeClaims, and kubelets: changes in, actions out, time as an argument
manifests              YAML and JSON files loaded into a cluster
definitions/           CustomResourceDefinitions of the kinds that Stowplan's own policies read
"""
