"""Kubernetes objects as typed values: decoded straight from API JSON, with only those fields that decisions read.

The lowest layer: it needs msgspec only, no NumPy and no I/O.
"""
