"""The real kube-scheduler's code as the judge of ours."""
