"""Nodes with GPUs, and pods that want them."""

from __future__ import annotations

from typing import Any

from stowplan.objects.gpu_requests import COUNT, INDEX, MILLI, MODELS
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod


def a_gpu_node(name: str, gpus: int = 2, model: str = "T4", memory: int = 0, **more: Any) -> Node:
    labels = {MODELS: model, **({"nvidia.com/gpu.memory": str(memory)} if memory else {})}
    return a_node(name, labels=labels, resources={COUNT: gpus}, **more)


def a_gpu_pod(name: str, milli: int = 1000, gpus: int = 1, models: str = "", on: str = "", **more: Any) -> Pod:
    """`on`: the numbers of its GPUs, if it is on a node."""
    annotations = {MILLI: str(milli), COUNT: str(gpus)}
    annotations |= {MODELS: models} if models else {}
    annotations |= {INDEX: on} if on else {}
    return a_pod(name, annotations=annotations, **more)
