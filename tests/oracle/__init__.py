"""The real kube-scheduler's code, which our decisions are compared with."""
