"""Write how far away each cluster is, as a score from -100 to 100, to the hub of the current kubeconfig.

python latency.py cluster1=12.5 cluster2=480        # milliseconds, as your own probe has measured them
"""

import asyncio
import sys

from stowplan.scores import Bounds, Validity, score_writer

LATENCY = Bounds(worst=500, best=5)  # milliseconds: fewer are better


async def main(measured: dict[str, float]) -> None:
    """Scores are valid for ten minutes. A producer that dies leaves scores that expire, and Placements notice."""
    async with score_writer("latency", validity=Validity(seconds=600, margin=180)) as writer:
        for cluster, score in LATENCY.scores(measured).items():
            outcome = await writer.publish(cluster, {"ms": score})
            sys.stdout.write(f"{cluster} {score} {outcome.value}\n")


if __name__ == "__main__":
    asyncio.run(main({name: float(value) for name, _, value in (word.partition("=") for word in sys.argv[1:])}))
