"""ImageLocality: prefer nodes that already have the pod's images; large images count more.

An image counts by its size times the share of nodes that have it, so that the first node with an image does not attract
all pods.
"""

from __future__ import annotations

import numpy as np

from stowplan.columns.arrays import Ints
from stowplan.columns.nodes.views import Nodes
from stowplan.framework.scoring import MAX_SCORE
from stowplan.objects.pods import Pod

MIB = 1024 * 1024
LEAST = 23 * MIB  # smaller images do not count
MOST_PER_CONTAINER = 1000 * MIB


class ImageLocality:
    scores_by_node = ignores_requests = True

    def score(self, pod: Pod, nodes: Nodes) -> Ints | int:
        spec = pod.spec
        containers = (*spec.init_containers, *spec.containers)
        wanted = [container.image for container in containers]
        wanted += [volume.image.reference for volume in spec.volumes if volume.image is not None]
        known = [image for image in map(tagged, wanted) if nodes.cluster.has_image(image)]
        if not known:
            return 0
        held = np.zeros(len(nodes), np.int64)
        for image in known:
            held += nodes.image(image)
        most = MOST_PER_CONTAINER * len(containers)
        held = np.minimum(np.maximum(held, LEAST), most)
        return MAX_SCORE * (held - LEAST) // (most - LEAST)


def tagged(image: str) -> str:
    """Return the image with its tag; the default is latest."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
