"""An hour of storm on a real control plane (`make soak`): pods, groups, policies and placements come and go, a fault
each minute, a poisonous object every ten seconds. Nothing may be lost, nothing done twice, and memory stays flat.

`workload` draws what comes, `load` creates and deletes it, `pod_watch` judges what the API server shows, `placements`
does both for placements, `poison` has what nobody should send, `faults` breaks something each minute, `programs` runs
and measures ours, `report` says how it went.
"""
