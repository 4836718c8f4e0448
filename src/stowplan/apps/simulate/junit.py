"""A JUnit file, as CI systems read it: a test case for each expectation, with its configuration as its class."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from stowplan.objects.errors import ConfigError
from stowplan.simulation.expectations import JudgedExpectation

SUITE = "stowplan simulate"
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def prepare(file: Path) -> None:
    """Raise ConfigError before the runs if the file cannot be written."""
    if not file.parent.is_dir() or file.is_dir():
        raise ConfigError(
            "cannot be written", file=str(file), path="--junit", remedy="name a file in a folder that exists"
        )


def write(file: Path, judged: Sequence[JudgedExpectation], seconds: float) -> None:
    """Write the file. `seconds`: what all runs took."""
    try:
        file.write_bytes(document(judged, seconds))
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", file=str(file)) from None


def document(judged: Sequence[JudgedExpectation], seconds: float) -> bytes:
    """Return the file."""
    failures = sum(not each.holds for each in judged)
    counts = {
        "name": SUITE, "tests": str(len(judged)), "failures": str(failures), "errors": "0", "time": f"{seconds:.3f}",
    }  # fmt: skip
    suites = Element("testsuites", counts)
    suite = SubElement(suites, "testsuite", counts | {"skipped": "0"})
    for each in judged:
        about = f"{each.configuration}.{each.stream}" if each.stream else each.configuration
        named = {"classname": _text(about), "name": _text(each.expectation), "time": "0.000"}
        case = SubElement(suite, "testcase", named)
        if not each.holds:
            failure = SubElement(case, "failure", {"message": _text(each.message), "type": "expectation"})
            failure.text = _text(f"{about}: expected {each.expectation}: {each.message}")
    ElementTree.indent(suites)
    text: str = ElementTree.tostring(suites, "unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()


def _text(text: str) -> str:
    return NOT_XML.sub("?", text)
