"""The version of Kubernetes that Stowplan follows: the kube-scheduler whose decisions it makes."""

from __future__ import annotations

KUBERNETES = "1.36"
