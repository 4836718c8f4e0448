"""Kubernetes objects as typed values: decoded straight from API JSON, keeping only what decisions read.

Floor 0 of the house. msgspec only: no NumPy, no I/O.
"""
