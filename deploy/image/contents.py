"""What the three layers hold: the distribution's part, the libraries, and Stowplan. The first two change seldom."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from deploy.image.archives import control, unpack_package, unpack_wheel
from deploy.image.locks import Package
from deploy.image.selection import KEPT, PRUNED, PYTHON, UNREAD, WITHOUT_LIBRARY
from deploy.image.tree import SHARED, Tree, in_any

APP = "usr/lib/stowplan"
STANDARD = f"usr/lib/python{PYTHON}"
DOCS, CERTIFICATES, STATUS = "usr/share/doc", "usr/share/ca-certificates", "var/lib/dpkg/status.d"
BUNDLE = "etc/ssl/certs/ca-certificates.crt"
NONROOT = 65532

USERS = f"""root:x:0:0:root:/:/sbin/nologin
nonroot:x:{NONROOT}:{NONROOT}:nonroot:/home/nonroot:/sbin/nologin
"""
GROUPS = f"root:x:0:\nnonroot:x:{NONROOT}:\n"
HOSTS = "hosts: files dns\n"
EMPTY = ("dev", "etc/stowplan", "home/nonroot", "proc", "run", "sys", "usr/bin")  # folders to mount on, and a home
LINKS = {
    "bin": "usr/bin",
    "lib": "usr/lib",
    "usr/bin/python3": f"python{PYTHON}",
    "var/run": "../run",  # where the token of the service account is mounted
}


def distribution(packages: Iterable[tuple[Package, bytes]]) -> Tree:
    """Return Python, its libraries, certificates, and the few files that a container needs."""
    tree = Tree()
    stanzas = {}
    for package, data in packages:
        unpack_package(data, tree)
        stanzas[package.name] = control(data)
    bundle = b"".join(data for path, data in tree.files() if in_any(path, [CERTIFICATES]))
    tree.remove(unwanted)
    tree.without_empty_folders()
    tree.file(BUNDLE, bundle)
    # Where scanners look for packages if an image has no package manager.
    for name, files in stanzas.items():
        tree.file(f"{STATUS}/{name}", files["control"])
        tree.file(f"{STATUS}/{name}.md5sums", files.get("md5sums", ""))
    tree.file("etc/passwd", USERS)
    tree.file("etc/group", GROUPS)
    tree.file("etc/nsswitch.conf", HOSTS)
    for path in EMPTY:
        tree.folder(path)
    tree.folder("tmp", SHARED)
    for path, target in LINKS.items():
        tree.link(path, target)
    if "usr/lib64" in tree.entries:
        tree.link("lib64", "usr/lib64")
    return tree


def unwanted(path: str) -> bool:
    if is_licence(path):
        return False
    if not in_any(path, KEPT):
        return not any(each.startswith(f"{path}/") for each in (*KEPT, f"{DOCS}/"))
    module = posixpath.basename(path).partition(".")[0]
    return in_any(path, PRUNED) or (path.startswith(f"{STANDARD}/lib-dynload/") and module in WITHOUT_LIBRARY)


def is_licence(path: str) -> bool:
    """Whether this is the licence of a package, or the folder or link that leads to it."""
    parts = path.removeprefix(f"{DOCS}/").split("/")
    return path.startswith(f"{DOCS}/") and (len(parts) == 1 or parts[1:] == ["copyright"])


def libraries(wheels: Iterable[bytes]) -> Tree:
    """Return the wheels side by side, without their tests and what only compilers read."""
    tree = Tree()
    for data in wheels:
        unpack_wheel(data, APP, tree)
    tree.remove(lambda path: path.endswith(("/tests", *UNREAD)))
    tree.without_empty_folders()
    return tree


def application(wheel: bytes, launcher: bytes) -> Tree:
    """Return Stowplan, and its program under both names."""
    tree = Tree()
    unpack_wheel(wheel, APP, tree)
    tree.file("usr/bin/stowplan", launcher, program=True)
    tree.link("usr/bin/kube-scheduler", "stowplan")
    return tree


def plugins(wheels: Iterable[bytes]) -> Tree:
    """Return wheels that whoever builds the image wants in it; they lie beside Stowplan."""
    tree = Tree()
    for data in wheels:
        unpack_wheel(data, APP, tree)
    return tree


def modules(tree: Tree) -> dict[str, bytes]:
    """Return what is to be compiled."""
    return {path: data for path, data in tree.files() if path.endswith(".py") and path.startswith("usr/lib/")}
