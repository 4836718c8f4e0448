"""Data residency: a placement's data stay in the regions that its label allows, on the cheapest clusters there.

A placement says `data-residency: eu` in a label. Clusters outside of those regions are rejected, and of the others
cheaper ones are preferred, by a score that a price list publishes. A placement without the label may go anywhere.
"""

from collections.abc import Iterator

import numpy as np

from stowplan.plugin import Clusters, ConfigError, Ints, Misconfigured, OneCluster, Placement, Reject


class Residency:
    """`regions`: which regions each value of the label allows; `price`: an AddOnPlacementScore and a score in it."""

    def __init__(
        self, regions: dict[str, list[str]], label: str = "data-residency", price: str = "prices/hourly"
    ) -> None:
        if price.count("/") != 1:
            raise ConfigError(f"price is {price!r}", remedy="write the name of an AddOnPlacementScore, /, and a score")
        self.regions, self.label = regions, label
        self.resource, self.price = price.split("/")

    def filter(self, placement: Placement, clusters: Clusters) -> Iterator[Reject | Misconfigured]:
        wanted = placement.labels.get(self.label)
        if wanted is None:
            return
        if wanted not in self.regions:
            remedy = f"use one of {', '.join(sorted(self.regions))}"
            yield Misconfigured(f"found {wanted!r}", path=f"metadata.labels.{self.label}", remedy=remedy)
            return
        allowed = clusters.claim("region").isin(self.regions[wanted])
        yield Reject(~allowed, f"its region is not one of {', '.join(self.regions[wanted])}")

    def why(self, placement: Placement, cluster: OneCluster) -> str:  # noqa: ARG002
        return f"its region is {cluster.claims.get('region', 'not known')}"

    def score(self, placement: Placement, clusters: Clusters) -> Ints | None:  # noqa: ARG002
        """Return 100 for a price of 0, and 0 for a price of 100; clusters without a price get no score."""
        price = clusters.score(self.resource, self.price)
        if not price.present.any():
            return None
        return np.ma.masked_array(np.clip(100 - price.values, -100, 100), ~price.present)
