"""Substitutes for names: the same word has the same substitute everywhere, and no substitute tells the word.

A word is replaced part by part: `web-api-7d9f` and the label `web-api` still begin alike, so what is composed of other
names (a ReplicaSet's pods, a claim of a StatefulSet, an image with its tag) stays composed of them. A part's substitute
is drawn from a keyed hash: without the key nobody can try words. Two words never share a substitute.

    part of digits at the end   stays, after the name of a StatefulSet or of an indexed Job: the pod's ordinal
    integers                    keep their order, where labels are compared by Gt and Lt
    upper case, odd characters  stay upper case, and odd: what was an invalid label value is one afterwards
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable

from stowplan.objects.selectors import integer
from stowplan.simulation.dump.words import OWN_WORDS

LETTERS = "bcdfghjklmnpqrstvwxz"  # no vowels: no word of any language
LENGTH, WHOLE_LENGTH = 6, 12
LONGEST_PIECE = 63  # characters of a label's value, or of the name in its key
_SEPARATORS = re.compile(r"([-._:@])")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NUMBERED = re.compile(r"(.+)-(\d{1,9})")
_FORM = re.compile(r"([+-]?)(0*)(\d+)")
_IPV4 = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_IP = re.compile(r"[0-9a-fA-F:.]*:[0-9a-fA-F:.]*")


class Substitutes:
    """The substitutes of one dump."""

    def __init__(
        self,
        key: bytes,
        *,
        keep: Collection[str] = (),
        compared: Iterable[str] = (),
        numbered: Collection[str] = (),
    ) -> None:
        """`keep`: further words that stay. `compared`: values of labels that Gt and Lt compare. `numbered`: names whose
        pods have ordinals.
        """
        self._key, self._kept, self._numbered = key, OWN_WORDS | frozenset(keep), numbered
        self._words: dict[str, str] = {}
        self._parts: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        self._taken: set[str] = set()
        self._words.update(self._in_order(compared))

    def is_kept(self, text: str) -> bool:
        return not text or text in self._kept

    def word(self, text: str) -> str:
        """Return the substitute of a name, a key, a value."""
        found = self._words.get(text)
        if found is None:
            found = self._words[text] = text if self.is_kept(text) else self._composed(text)
        return found

    def _composed(self, text: str) -> str:
        if "," in text:  # a list of names
            return ",".join(map(self.word, text.split(",")))
        if _UUID.fullmatch(text):
            return self._part(text, WHOLE_LENGTH)
        numbered = _NUMBERED.fullmatch(text)
        if numbered and numbered[1] in self._numbered:
            return f"{self.word(numbered[1])}-{numbered[2]}"
        return "/".join(map(self._piece, text.split("/")))

    def _piece(self, text: str) -> str:
        """Return the substitute of what is between slashes; it is too long for a label only if the text is."""
        found = "".join(
            each if number % 2 or not each else self._part(each) for number, each in enumerate(_SEPARATORS.split(text))
        )
        if len(found) > LONGEST_PIECE >= len(text):
            return self._part(text, WHOLE_LENGTH)
        return found if len(text) <= LONGEST_PIECE else found.ljust(LONGEST_PIECE + 1, "0")

    def _part(self, text: str, length: int = LENGTH) -> str:
        found = self._parts.get(text)
        if found is None:
            found = self._parts[text] = self._unused("part", text, length)
            if not (text.isascii() and text.replace("-", "").isalnum()):
                found = self._parts[text] = found + "~"
            elif text != text.lower():
                found = self._parts[text] = found[:-1] + found[-1].upper()
        return found

    def _unused(self, purpose: str, text: str, length: int) -> str:
        attempt = 0
        while True:
            number, letters = self._number(f"{purpose}:{attempt}:{text}"), ""
            for _ in range(length):
                number, digit = divmod(number, len(LETTERS))
                letters += LETTERS[digit]
            if letters not in self._taken:
                self._taken.add(letters)
                return letters
            attempt += 1

    def _number(self, text: str) -> int:
        drawn = hashlib.blake2b(text.encode(errors="surrogatepass"), key=self._key, digest_size=8).digest()
        return int.from_bytes(drawn)

    def image(self, text: str) -> str:
        """Return the substitute of an image. Without a tag it is the one that is tagged latest."""
        if text.rfind(":") <= text.rfind("/"):
            return self.word(text)
        name, _, tag = text.rpartition(":")
        return f"{self.word(name)}:{tag if tag == 'latest' else self.word(tag)}"

    def address(self, text: str) -> str:
        """Return the substitute of an IP address: another one of its family."""
        if self.is_kept(text) or not (_IPV4.fullmatch(text) or _IP.fullmatch(text)):
            return self.word(text)
        attempt = 0
        while text not in self._addresses:
            number = self._number(f"address:{attempt}:{text}")
            b, c, d = (number >> shift & 255 for shift in (0, 8, 16))
            found = f"10.{b}.{c}.{d}" if ":" not in text else f"fd00::{b:02x}{c:02x}:{d:x}"
            if found not in self._taken and found != text:
                self._taken.add(found)
                self._addresses[text] = found
            attempt += 1
        return self._addresses[text]

    def _in_order(self, texts: Iterable[str]) -> dict[str, str]:
        """Return an integer for each integer, in the same order, with the same sign and as many zeros before it."""
        values = {text: value for text in texts if (value := integer(text)) is not None and not self.is_kept(text)}
        sizes = {abs(value) for value in values.values()}
        numbers, last = {0: 0}, 0
        for size in sorted(sizes - {0}):
            last += 1 + self._number(f"step:{size}") % 999
            while last in sizes:
                last += 1
            numbers[size] = last
        found = {}
        for text, value in values.items():
            form = _FORM.fullmatch(text)
            assert form is not None
            zeros = form[2] if value else text.lstrip("+-")[1:]
            found[text] = f"{form[1]}{zeros}{numbers[abs(value)]}"
        return found
