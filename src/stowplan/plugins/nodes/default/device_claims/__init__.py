"""The parts of DynamicResources: which devices a pod's claims get on a node, as kube-scheduler chooses them.

pod_claims           the claims of a pod, or why they cannot be used
device_expressions   CEL about devices
capacities           what a request takes of a device's capacities
questions            what claims ask for, compiled; what differs between devices for them
search               the search for devices on one node
results              what was found as the API's AllocationResult
node_answers         the answers for all nodes, kept and refreshed for what changed
extended_resources   claims made for extended resources that a device class provides
bindings             devices that must be prepared before a pod is bound
"""
