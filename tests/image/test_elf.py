"""Programs and libraries, read as `readelf` does: those of NumPy, which every developer's environment has."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import numpy as np
import pytest
from deploy.image import elf

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"), reason="only Linux has ELF files"
)
FOLDER = Path(np.__file__).parent
MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}


@pytest.fixture(scope="module")
def module() -> elf.Linked:
    (file,) = (FOLDER / "_core").glob("_multiarray_umath.*.so")
    return elf.read(file.read_bytes())


def test_what_it_is_for(module: elf.Linked) -> None:
    assert module.machine == MACHINE[platform.machine()]
    assert module.interpreter == "", "a library is not started"


def test_what_it_needs_and_where_it_looks(module: elf.Linked) -> None:
    assert {"libc.so.6", "libm.so.6"} <= set(module.needed)
    assert module.search == ("$ORIGIN/../../numpy.libs",)


def test_the_versions_of_symbols(module: elf.Linked) -> None:
    versions = module.versions["libc.so.6"]
    assert versions and all(each.startswith("GLIBC_2.") for each in versions)


def test_what_a_library_offers(module: elf.Linked) -> None:
    (needed,) = (name for name in module.needed if "openblas" in name)
    library = elf.read((FOLDER.parent / "numpy.libs" / needed).read_bytes())
    assert library.name == needed
    (fortran,) = (name for name in library.needed if "gfortran" in name)
    offered = elf.read((FOLDER.parent / "numpy.libs" / fortran).read_bytes()).defines
    assert "GFORTRAN_8" in offered and library.versions[fortran] <= offered


def test_a_program_has_a_loader() -> None:
    program = elf.read(Path(sys.executable).resolve().read_bytes())
    assert Path(program.interpreter).name.startswith("ld-linux")


@pytest.mark.parametrize("data", [b"", b"#!/bin/sh", b"\x7fELF\x01\x01"])
def test_what_is_none(data: bytes) -> None:
    assert not elf.is_elf(data)
