"""Numbers in texts that clients write: annotations, names, parameters.

Python reads more than the API does: other scripts' digits ("²" is a digit that `int` refuses), underscores, signs; and
it refuses more than 4,300 digits. So each such text is read here.
"""

from __future__ import annotations

_LONGEST = 18  # digits that surely fit into 64 bits


def natural(text: str, otherwise: int) -> int:
    """The number that plain digits stand for; `otherwise` for any other text, and for more than 18 digits."""
    return int(text) if len(text) <= _LONGEST and text.isascii() and text.isdigit() else otherwise
