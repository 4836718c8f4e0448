"""Diagnosis of a placement that does not get its clusters: every cause by name, and the smallest changes that help.

diagnosis    all of it together, for one placement (start here)
hub          the hub as it would be after changes, and what the placement would get then
parts        the single requirements of a placement's predicates
proposals    what may help: changes of the placement; `hub_proposals`: changes of clusters, sets and scores

The causes are in `placement_causes`.
"""
