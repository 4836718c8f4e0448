"""Which wheels an architecture of the image can load, as flags of pip."""

from __future__ import annotations

from deploy.image.selection import MACHINES, PYTHON

GLIBC = range(17, 37)  # a wheel may ask for glibc 2.17 to 2.36, the version of the release


def flags(architecture: str) -> list[str]:
    machine = MACHINES[architecture]
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in GLIBC] + [f"manylinux2014_{machine}"]
    return ["--python-version", PYTHON, "--implementation", "cp", *(f"--platform={each}" for each in platforms)]
