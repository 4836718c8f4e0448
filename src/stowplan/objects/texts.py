"""Texts of others that become part of messages, conditions and events: cut to a length, and always valid UTF-8.

A plugin's reason may be of any length and content. An Event's note has at most 1,024 bytes, and a condition is stored
with its object, in every list and watch of it.
"""

from __future__ import annotations

MOST_OF_REASON = 1000  # bytes of one reason, or of one exception's text
MOST_OF_MESSAGE = 32_000  # bytes of a condition's message
MOST_OF_NOTE = 1024  # bytes of an Event's note: the API server refuses more
CUT = " ..."


def shortened(text: str, most: int = MOST_OF_REASON) -> str:
    """Return the text in at most so many bytes of UTF-8. What cannot be encoded becomes a question mark."""
    if text.isascii() and len(text) <= most:  # both are known without a look at the text
        return text
    data = text[:most].encode("utf-8", "replace")
    if len(data) <= most and len(text) <= most:
        return data.decode()
    return data[: most - len(CUT)].decode("utf-8", "ignore") + CUT


def described(value: object, most: int = MOST_OF_REASON) -> str:
    """Return `repr(value)`, shortened; the type's name if it has none."""
    try:
        return shortened(repr(value), most)
    except Exception as error:
        return f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"
