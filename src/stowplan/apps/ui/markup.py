"""HTML and SVG as values. A text becomes part of a page only through `element`, which escapes it: none can break out.

    element("a", "a name <b>", href="/pods/x", title=name)     attributes by keyword; None and False leave one out
    element("p", ["one, ", element("b", "two")])               children: texts, elements, numbers, and lists of these
    fragment(first, second)                                    several elements without one around them

Names of elements and attributes are written in our code, and checked. Attributes that run code (`on…`), and `style`,
which our policy for browsers forbids, do not exist here. A link starts with "/", "?" or "#": none leads elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import TypeAlias

_NAME = re.compile(r"[a-z][a-zA-Z0-9-]*")
_VOID = frozenset(("br", "hr", "img", "input", "link", "meta", "wbr"))
_RAW = frozenset(("script", "style"))  # a browser reads their text as code: it cannot be escaped
_LINKS = ("href", "src", "action")
_HERE = ("/", "?", "#")
# Not in a page: NUL and lone surrogates. Marks that turn the direction of what follows stay within their element.
_UNPRINTABLE = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")

Value: TypeAlias = "str | int | float | bool | None"


class Markup:
    """A piece of a page."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        """Only this module and `prepared` make one: the text is markup already."""
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return bool(self.text)


Child: TypeAlias = "Markup | str | int | float | Iterable[Child] | None"
NOTHING = Markup("")


def element(name: str, /, *children: Child, **attributes: Value) -> Markup:
    """Return an element. `class_`, `for_` and `data_x` are the attributes class, for and data-x."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of an element")
    if name in _RAW and any(True for _ in _texts(children)):
        raise ValueError(f"{name} has no text here: it is a file")
    head = f"<{name}{''.join(_attribute(each, value) for each, value in attributes.items())}>"
    if name in _VOID:
        return Markup(head)
    return Markup(f"{head}{''.join(_texts(children))}</{name}>")


def fragment(*children: Child) -> Markup:
    return Markup("".join(_texts(children)))


def prepared(text: str) -> Markup:
    """Take in markup that another module of ours made and escaped: the parts of a simulation's report."""
    return Markup(text)


def _texts(children: Iterable[Child]) -> Iterable[str]:
    for each in children:
        if isinstance(each, Markup):
            yield each.text
        elif isinstance(each, str):
            yield escape(readable(each), quote=False)
        elif isinstance(each, int | float):
            yield str(each)
        elif each is not None:
            yield from _texts(each)


def _attribute(name: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    word = name.rstrip("_").replace("_", "-")
    if not _NAME.fullmatch(word) or word.startswith("on") or word == "style":
        raise ValueError(f"{word!r} is no attribute of our pages")
    if value is True:
        return f" {word}"
    text = readable(str(value))
    if word in _LINKS and (not text.startswith(_HERE) or text.startswith(("//", "/\\"))):
        raise ValueError(f"{word} {text[:50]!r} leads elsewhere")
    return f' {word}="{escape(text)}"'


def readable(text: str) -> str:
    """Return a text with a mark in place of what no page can have."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)
