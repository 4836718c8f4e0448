"""Amounts of resources, in all the spellings the API accepts: suffixes of both kinds, exponents, fractions, zero.

What is asked for is small and what a node has is large, so that most pods fit somewhere; `odd` says how often a node
has none of something, next to none, or as much as an int64 holds.
"""

from __future__ import annotations

from tests.oracle.draw.scenario import Draw, Obj

EXTENDED = ["nvidia.com/gpu", "vendor.example.org/foo", "example.com/widget", "vendor.example.org/bar"]
CPUS = [
    "100m", "250m", "0.5", "1", "333m", "1500m", "2", "50m", "1m", "0.1", "700m", "1e0", "0", "0.0015",
]  # fmt: skip
MEMORIES = [
    "128Mi", "256Mi", "512Mi", "1Gi", "100M", "300M", "1.5Gi", "2Gi", "123456789", "1e9", "0.5Gi", "700Mi", "64Mi",
    "128974848000m", "1", "0", "200e6",
]  # fmt: skip


def cpu(d: Draw) -> str:
    return d.choice(CPUS)


def memory(d: Draw) -> str:
    return d.choice(MEMORIES)


def storage(d: Draw) -> str:
    return d.text("1Gi", "500M", "10Gi", "100Mi", "2e9", "0")


def allocatable(d: Draw, odd: float = 0.15) -> Obj:
    out: Obj = {
        "cpu": d.one("2", "4", "8", "3920m", "1930m", "16", "1", "1500m"),
        "memory": d.one("4Gi", "8Gi", "16Gi", "14670000Ki", "3388360Ki", "32Gi", "7500M", "2Gi"),
        "ephemeral-storage": d.one("20Gi", "90Gi", "47093746742", "100G"),
        "pods": d.one("110", "58", "29", "10", "5"),
    }
    if d.chance(odd):
        key = d.choice(list(out))
        out[key] = {
            "cpu": d.one("0", "0.5", "1e3", "100u", "9223372036854775807m", "128", "1m"),
            "memory": d.one("0", "1e3", "100M", "1.5Gi", "8Ei", "1", "512m", "1Pi"),
            "ephemeral-storage": d.one("0", "1.5Gi", "1e12", "1"),
            "pods": d.one("0", "1", "1e3", "2k", "3"),
        }[key]
    if d.chance(odd / 2):
        del out[d.choice(list(out))]
    for name in EXTENDED:
        if d.chance(0.5):
            out[name] = d.one("0", "1", "2", "4", "8", "1k", "100")
    if d.chance(0.2):
        out["hugepages-2Mi"] = d.one("0", "128Mi", "1Gi")
    if d.chance(0.1):
        out["hugepages-1Gi"] = d.one("2Gi", "0", "8Gi")
    return out
