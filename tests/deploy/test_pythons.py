"""What is said where there is no Python of a version. Those that are there: `test_distributions.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.deploy import pythons


def test_the_python_of_the_tests_is_one() -> None:
    found = pythons.python(f"{sys.version_info[0]}.{sys.version_info[1]}")
    assert found == pythons.Python(Path(sys.executable))


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    with pytest.raises(pythons.NoPythonError, match=r"^no Python 3\.99, and no apt-get to use Debian's with$"):
        pythons.python("3.99")
