"""Stowplan decides where work runs on Kubernetes, with policies written in Python, and can say why."""
