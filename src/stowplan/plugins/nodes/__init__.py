"""kube-scheduler's own policies, one file each. None imports another."""
