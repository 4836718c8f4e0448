"""Devices of nodes, as drivers publish them in resource slices, and which of them are in use.

slices     the slices of each node and of each pool, kept up to date
pools      the pools that a node sees, and their devices in the order in which they are tried
in_use     devices, shares and counters that allocated claims take
devices    all of it for one state, with a log of the nodes whose devices changed
classes    which device class stands for an extended resource
"""
