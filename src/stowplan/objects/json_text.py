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

MOST_LEVELS = 100  # what Kubernetes' own kinds have is below twenty

# From one bracket to the next. Brackets in texts are passed over.
_NEXT_BRACKET = re.compile(rb'[^"{}\[\]]*+(?:"(?:[^"\\]++|\\.)*+"[^"{}\[\]]*+)*+([{}\[\]])', re.DOTALL)
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def readable(document: bytes) -> bytes:
    """Return the document in valid UTF-8, without halves of characters, and without what is nested too deep."""
    return b"".join(_shallow(_whole_characters(bytes(document)), MOST_LEVELS))


def _shallow(document: bytes, levels: int) -> Iterator[bytes]:
    """Yield the document in pieces; objects and lists below so many levels become null."""
    depth = since = at = 0
    following = _NEXT_BRACKET.match
    while found := following(document, at):
        at = found.end()
        if document[at - 1] in b"{[":
            depth += 1
            if depth == levels + 1:
                yield document[since : at - 1]
        else:
            if depth == levels + 1:
                yield b"null"
                since = at
            depth -= 1
    yield document[since:]


def _whole_characters(document: bytes) -> bytes:
    """As Go decodes texts: bytes that are no UTF-8 and lone surrogates become U+FFFD."""
    try:
        document.decode()
    except UnicodeDecodeError:
        document = document.decode(errors="replace").encode()
    if b"\\ud" in document or b"\\uD" in document:
        document = _ESCAPE.sub(lambda found: b"\\ufffd" if found["half"] else found[0], document)
    return document
