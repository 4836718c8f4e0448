"""A Kubernetes cluster in a process: small, and honest about what it does not serve.

store, log         whole documents, one resource version for all, and what happened lately (pure)
schema, typed      the fields of every kind, as recorded from a real server; unknown ones are found and dropped
resources, crds    which kinds are served, those of CustomResourceDefinitions among them
admission, rules   what a server fills in, and what it refuses
api                every verb, without HTTP; `controllers` use it as HTTP clients do
tables, discovery  what kubectl asks for besides
server, watching   HTTP
controllers        Deployments to PVCs, and pretend kubelets: changes in, actions out, time as an argument
cluster            all of it together: `Embedded`
"""
