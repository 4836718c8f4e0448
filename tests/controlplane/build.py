"""The programs of a control plane, each built from its Go module by name and pinned version, once.

    <cache>/stowplan/controlplane/
        lock                          held during a build
        kubernetes-1.36.4/
            go.mod, go.sum            a scratch module that requires the real one
            kube-apiserver            the program
            kube-apiserver.recipe     how it was built, written last; without it, or with another, it is built again

A folder named by KUBEBUILDER_ASSETS goes first; only what it lacks is built. Without Go, what was built before is used.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MAIN = "1.36.4"
NEXT = "1.37.0"
OLDER = ("1.34.10", "1.35.8")  # the newest that the public checksum database knows
VERSIONS = (*OLDER, MAIN, NEXT)
SCARCE = 10_000_000_000  # Go's build cache grows by up to 3.5 GB for a version; with less than this free it is removed

Tell = Callable[[str], None]


class CannotBuildError(Exception):
    """Neither Go nor ready-made programs are there."""


@dataclass(frozen=True)
class Module:
    """A Go module at one version. Programs of different modules are built apart: together their requirements fight."""

    name: str
    path: str
    version: str
    package: str = ""  # where a program lies inside the module; "" is the module's root
    labels: tuple[str, ...] = ()  # NAME=VALUE pairs that the linker writes into the program
    staging: str = ""  # the version published of the modules that its go.mod replaces by folders

    @property
    def folder(self) -> Path:
        return cache() / f"{self.name}-{self.version}"

    def recipe(self, program: str) -> list[str]:
        """The arguments of `go` that build this program."""
        linker = " ".join(["-s -w", *(f"-X {label}" for label in self.labels)])
        package = "/".join(filter(None, [self.path, self.package.format(program=program)]))
        # -mod=mod lets go complete go.mod and go.sum by what this package needs; `go mod tidy` would also ask for
        # what the tests of all packages need.
        return ["build", "-mod=mod", "-buildvcs=false", "-trimpath", f"-ldflags={linker}", package]

    def is_built(self, program: str) -> bool:
        recipe = self.folder / f"{program}.recipe"
        return recipe.exists() and recipe.read_text() == json.dumps(self.recipe(program))


def kubernetes(version: str) -> Module:
    major, minor, _ = version.split(".")
    facts = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    # Servers and kubectl take what they say of themselves from the first, the user agent comes from the second.
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    labels = tuple(f"{package}.{fact}={value}" for package in packages for fact, value in facts.items())
    staging = "v0." + version.partition(".")[2]
    return Module("kubernetes", "k8s.io/kubernetes", version, "cmd/{program}", labels, staging)


ETCD = Module("etcd", "go.etcd.io/etcd/server/v3", "3.6.8")
KWOK = Module("kwok", "sigs.k8s.io/kwok", "0.8.0", "cmd/kwok", ("sigs.k8s.io/kwok/pkg/consts.Version=v0.8.0",))


def minor(version: str) -> str:
    return version.rpartition(".")[0]


def by_minor(name: str) -> str:
    """The version that is built of a minor version."""
    return next(each for each in VERSIONS if minor(each) == name)


def sources(version: str) -> dict[str, Module]:
    """Which module gives which program.

    kubectl and kube-scheduler are always of the main version. With the next server Kubernetes promises that they work.
    With older ones it does not; what tests ask of them there works all the same.
    """
    server, tools = kubernetes(version), kubernetes(MAIN)
    return {
        "etcd": ETCD,
        "kube-apiserver": server,
        "kube-controller-manager": server,
        "kube-scheduler": tools,
        "kubectl": tools,
        "kwok": KWOK,
    }


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stowplan" / "controlplane"


def to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def programs(version: str = MAIN, tell: Tell = to_stderr, *, without: Sequence[str] = ()) -> dict[str, Path]:
    """The path of each program by its name, built if need be; a line is told of each that is built."""
    ready = assets(version)
    left_out = {*ready, *without}
    wanted = {program: module for program, module in sources(version).items() if program not in left_out}
    if missing := unbuilt(wanted):
        if shutil.which("go") is None:
            raise CannotBuildError(f"no Go to build {', '.join(missing)} with, and not in KUBEBUILDER_ASSETS either")
        build(wanted, tell)
    return {program: module.folder / program for program, module in wanted.items()} | ready


def assets(version: str) -> dict[str, Path]:
    """What KUBEBUILDER_ASSETS holds. Its servers stand for the main version, whatever version they are."""
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    if not folder:
        return {}
    others = [kubernetes(each) for each in VERSIONS if each != MAIN]
    may_come = [program for program, module in sources(version).items() if module not in others]
    return {program: Path(folder) / program for program in may_come if (Path(folder) / program).exists()}


def unbuilt(wanted: Mapping[str, Module]) -> list[str]:
    return [program for program, module in wanted.items() if not module.is_built(program)]


def build(wanted: Mapping[str, Module], tell: Tell) -> None:
    with locked(tell), go_environment() as environment:
        for program in unbuilt(wanted):  # another process may have built some while we waited for the lock
            module, started = wanted[program], time.monotonic()
            tell(f"building {program} {module.version} ...")
            build_one(program, module, environment)
            size = (module.folder / program).stat().st_size // 1_000_000
            tell(f"built {program} {module.version} in {time.monotonic() - started:.0f} s, {size} MB")


@contextlib.contextmanager
def locked(tell: Tell, folder: Path | None = None, what: str = "the control plane") -> Iterator[None]:
    """One process builds, the others wait. The kernel gives the lock back when its holder dies."""
    folder = folder or cache()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"another process builds {what}; waiting for it ...")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def go_environment() -> Iterator[dict[str, str]]:
    """Where disk is scarce Go's build cache is one of our own, which goes away with the build."""
    environment = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
    for leftover in cache().glob("go-build-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    if shutil.disk_usage(cache()).free >= SCARCE:
        yield environment
        return
    # Not below /tmp, which may be memory.
    with tempfile.TemporaryDirectory(prefix="go-build-", dir=cache()) as folder:
        yield environment | {"GOCACHE": folder}


def build_one(program: str, module: Module, environment: Mapping[str, str]) -> None:
    module.folder.mkdir(parents=True, exist_ok=True)
    recipe = module.folder / f"{program}.recipe"
    recipe.unlink(missing_ok=True)
    if not (module.folder / "go.mod").exists():
        write_go_mod(module, environment)
    arguments = module.recipe(program)
    go([arguments[0], "-o", program, *arguments[1:]], module.folder, environment)
    recipe.write_text(json.dumps(arguments))


def write_go_mod(module: Module, environment: Mapping[str, str]) -> None:
    """A module that requires the real one.

    `go install MODULE@VERSION` refuses a module whose go.mod replaces others by folders. As a requirement its
    replacements do not count, so each is replaced here by the version that was published with it.
    """
    place = tempfile.gettempdir()  # outside of any module
    found = json.loads(go(["mod", "download", "-json", f"{module.path}@v{module.version}"], place, environment))
    theirs = json.loads(go(["mod", "edit", "-json", found["GoMod"]], place, environment))
    lines = [f"module stowplan.test/{module.name}", f"go {theirs['Go']}", f"require {module.path} v{module.version}"]
    for replace in theirs.get("Replace") or []:
        path = replace["Old"]["Path"]
        if module.staging and replace["New"]["Path"].startswith("./staging/"):
            lines.append(f"replace {path} => {path} {module.staging}")
    (module.folder / "go.mod").write_text("\n".join(lines) + "\n")


def go(arguments: list[str], folder: Path | str, environment: Mapping[str, str]) -> str:
    command = ["nice", "-n", "10", "go", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise RuntimeError(f"`{' '.join(command)}` in {folder} ended with {done.returncode}:\n{tail}")
    return done.stdout
