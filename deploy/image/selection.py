"""Which packages of Debian are in the image, which are left out, and why.

The image has Python, the libraries that Python and the wheels load, certificates, and nothing that Stowplan does not
use: no shell, no package manager, no terminal. `checks` finds a library that is missing; a test finds a dependency that
is neither taken nor left out here.
"""

from __future__ import annotations

SUITE = "bookworm"  # Debian 12; `lock` reads no other release
RELEASE = "12"
PYTHON = "3.11"  # the Python of that release
ARCHITECTURES = ("amd64", "arm64")

# The names that the toolchain uses for an architecture: in the folders of libraries, and in the tags of wheels.
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}

PACKAGES = {
    "base-files": "the name of the release, and the texts of common licences",
    "ca-certificates": "the certificates that TLS trusts",
    "gcc-12-base": "the licence of GCC's libraries",
    "libbz2-1.0": "bz2: compressed dumps",
    "libc6": "the C library, with the loader",
    "libcrypt1": "loaded by libpython's crypt",
    "libexpat1": "XML, which the interpreter is linked with",
    "libffi8": "ctypes, for NumPy",
    "libgcc-s1": "unwinding, for the wheels in C++",
    "liblzma5": "lzma: compressed dumps",
    "libpython3.11-minimal": "the first half of the standard library",
    "libpython3.11-stdlib": "the second half of the standard library",
    "libssl3": "TLS",
    "libstdc++6": "C++, for NumPy, CEL and RE2",
    "libuuid1": "uuid",
    "python3.11-minimal": "the interpreter",
    "zlib1g": "zlib, which the interpreter is linked with",
}

LEFT_OUT = {
    "awk": "only scripts of base-files use it",
    "debconf": "asks questions when packages are installed; nothing is installed here",
    "libdb5.3": "dbm is not used",
    "libncursesw6": "curses needs a terminal",
    "libnsl2": "nis is not used",
    "libreadline8": "readline needs a terminal",
    "libsqlite3-0": "sqlite3 is not used",
    "libtinfo6": "curses needs a terminal",
    "libtirpc3": "nis is not used",
    "media-types": "Python has a list of its own",
    "openssl": "only the script that renews certificates uses it; the bundle is written when the image is",
}

# Modules of Python whose libraries are left out; without their libraries they could not be imported anyway.
WITHOUT_LIBRARY = ("_curses", "_curses_panel", "_dbm", "_sqlite3", "nis", "readline")

# What is taken of the packages, beside the licence of each: paths of files and folders, without a slash in front.
KEPT = (
    "etc/debian_version",
    "etc/os-release",
    "etc/python3.11",
    "usr/bin/python3.11",
    "usr/lib",
    "usr/lib64",
    "usr/share/common-licenses",
)
# Of these, parts that nothing reads: conversions between character sets (Python has its own codecs), audit hooks of the
# loader, and parts of the standard library that need what the image does not have.
PRUNED = (
    *(
        f"usr/lib/{machine}-linux-gnu/{folder}"
        for machine in MACHINES.values()
        for folder in ("audit", "gconv", "perl")
    ),
    *(f"usr/lib/python3.11/{name}" for name in ("curses", "dbm", "ensurepip", "idlelib", "lib2to3", "pydoc_data")),
    *(f"usr/lib/python3.11/{name}" for name in ("sqlite3", "tkinter", "turtledemo", "turtle.py")),
    "usr/lib/python3",
    "usr/lib/tmpfiles.d",
    "usr/lib/valgrind",
)
# Files of wheels that only compilers and type checkers read.
UNREAD = (".a", ".c", ".h", ".pxd", ".pyi", ".pyx")
