"""Modules are compiled to the same bytes, whatever else was compiled before, and their files are not compared."""

from __future__ import annotations

import importlib.util
import marshal
import sys
from pathlib import Path
from types import CodeType

import pytest
from deploy.image import bytecode
from deploy.image.bytecode import UNCHECKED, CompileError

SOURCES = {
    "usr/lib/a.py": b"def f(self, name):\n    return {'self', 'name', 'a', 'b'} & set(name)\n",
    "usr/lib/b.py": b"X = frozenset(['self', 'name'])\nself = name = 'self'\n",
    "usr/lib/c.py": b"",
}


def compiled(sources: dict[str, bytes], cache: Path) -> dict[str, bytes]:
    return bytecode.compiled(sources, cache, [sys.executable], sys.base_prefix)


def test_the_company_of_a_module_does_not_count(tmp_path: Path) -> None:
    together = compiled(SOURCES, tmp_path / "together")
    for path, source in SOURCES.items():
        assert compiled({path: source}, tmp_path / "alone") == {path: together[path]}


def test_what_is_written(tmp_path: Path) -> None:
    data = compiled(SOURCES, tmp_path)["usr/lib/a.py"]
    assert data[:4] == importlib.util.MAGIC_NUMBER
    assert int.from_bytes(data[4:8], "little") == UNCHECKED
    code = marshal.loads(data[16:])
    assert isinstance(code, CodeType) and code.co_filename == "/usr/lib/a.py"


def test_where_it_belongs() -> None:
    tag = sys.implementation.cache_tag
    assert bytecode.place("usr/lib/x/a.py") == f"usr/lib/x/__pycache__/a.{tag}.pyc"


def test_a_module_that_does_not_compile(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CompileError):
        compiled({"usr/lib/bad.py": b"def"}, tmp_path)
    assert "/usr/lib/bad.py does not compile" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []
