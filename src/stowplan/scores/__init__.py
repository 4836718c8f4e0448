"""What a producer of cluster scores is made of. A score is an integer from -100 to 100, the more the better, in an
AddOnPlacementScore of the cluster's namespace on a hub; Placements choose by it.

    measure ─► smooth ─► normalise ─► deadband ─► publish (only what changed, or would soon expire)

All but the last step is arithmetic: the time and the random number are arguments. docs/scores.md shows a producer.
"""

from stowplan.scores.normalization import BEST, WORST, AsIs, Bounds, Normaliser, OverFleet
from stowplan.scores.publication import Validity, status_due, status_failed
from stowplan.scores.shaping import Shaping
from stowplan.scores.smoothing import Smoother, settled
from stowplan.scores.writer import Outcome, ScoreWriter

__all__ = [
    "BEST",
    "WORST",
    "AsIs",
    "Bounds",
    "Normaliser",
    "Outcome",
    "OverFleet",
    "ScoreWriter",
    "Shaping",
    "Smoother",
    "Validity",
    "settled",
    "status_due",
    "status_failed",
]
