"""A library for producers of cluster scores.

A score is an integer from -100 to 100; higher is better. It is stored on a hub, in an AddOnPlacementScore in the
namespace of the cluster, and Placements select clusters by it.

    measure ─► smooth ─► normalise ─► deadband ─► publish (only changes, and scores that expire soon)

All steps but the last are pure: the time and the random number are arguments. docs/scores.md shows a producer.
"""

from stowplan.scores.normalization import BEST, WORST, AsIs, Bounds, Normaliser, OverFleet
from stowplan.scores.publication import Validity, status_due, status_failed
from stowplan.scores.shaping import Shaping
from stowplan.scores.smoothing import Smoother, settled
from stowplan.scores.writer import Outcome, ScoreWriter, score_writer

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
    "score_writer",
    "settled",
    "status_due",
    "status_failed",
]
