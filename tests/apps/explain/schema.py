"""The JSON Schema of explanations, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

FILE = Path(__file__).parents[3] / "docs" / "explain.schema.json"
_validator = jsonschema.Draft202012Validator(json.loads(FILE.read_text(encoding="utf-8")))


def check(document: Any) -> None:
    """Fail with the path of the first value that the schema does not describe."""
    _validator.validate(document)
