"""JSON as text: a document that a decoder refuses, made readable as Go reads it.

Whoever may create an object may put odd things into it: `managedFields` that nest a thousand levels deep, escapes of
half a character. Go reads them, so the API server keeps them. A decoder that descends level by level runs out of
stack, and one bad character fails the whole document. `readable` returns the same document with these parts replaced.
It needs no recursion and takes time by the length of the text, whatever is in it. Only documents that could not be
decoded as they are come here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_LEVELS = 100  # what Kubernetes' own kinds have is below twenty

# A half of a character without its other half. Escaped backslashes are hidden before anybody looks for it.
_HALF = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_HIDDEN = b"\0\0"  # no JSON has such bytes


def readable(document: bytes) -> bytes:
    """Return the document in valid UTF-8, without halves of characters, and without what is nested too deep."""
    return b"".join(_shallow(_whole_characters(bytes(document)), MOST_LEVELS))


def _shallow(document: bytes, levels: int) -> Iterator[bytes]:
    """Yield the document in pieces; objects and lists below so many levels become null.

    A document may have a million brackets, and each event of its object comes here, so there is no loop over them.
    """
    import numpy  # seldom needed, and 20 MB: programs that do without it stay small

    plain = document.replace(b"\\\\", b"..").replace(b'\\"', b"..")  # every quote now begins or ends a text
    characters = numpy.frombuffer(plain, numpy.uint8)
    opening, closing = _either(characters, b"{["), _either(characters, b"}]")
    in_text = numpy.logical_xor.accumulate(characters == ord('"'))
    at = numpy.flatnonzero((opening | closing) & ~in_text)
    opens = opening[at]
    depth = numpy.where(opens, 1, -1).cumsum()
    since = 0
    begins, ends = at[opens & (depth == levels + 1)], at[~opens & (depth == levels)]
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=False):  # what has no end stays, and is no JSON
        yield document[since:begin]
        yield b"null"
        since = end + 1
    yield document[since:]


def _either(characters: NDArray[np.uint8], two: bytes) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (characters == two[0]) | (characters == two[1])
    return found


def _whole_characters(document: bytes) -> bytes:
    """As Go decodes texts: bytes that are no UTF-8 and lone surrogates become U+FFFD."""
    try:
        document.decode()
    except UnicodeDecodeError:
        document = document.decode(errors="replace").encode()
    if b"\\ud" in document or b"\\uD" in document:
        hidden = _HALF.sub(rb"\\ufffd", document.replace(b"\\\\", _HIDDEN))
        document = hidden.replace(_HIDDEN, b"\\\\")
    return document
