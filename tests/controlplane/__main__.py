"""A control plane for a person: the one that the tests use, with nodes that kwok plays, until Ctrl-C.

    python -m tests.controlplane [--nodes N] [--version V] [--no-kwok] [--kube-scheduler] [--pod-groups] [--build-only]

No scheduler runs unless --kube-scheduler asks for the real one: pods wait for yours.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time

from tests.controlplane import build, flags
from tests.controlplane.plane import ControlPlane

READY = """
Kubernetes {version} is ready after {seconds:.0f} s, with {nodes} nodes. In another terminal:

    export KUBECONFIG={kubeconfig}
    alias kubectl={kubectl}
    kubectl get nodes
    kubectl create deployment web --image=pause --replicas=5
    kubectl get pods --output wide

{scheduler}
Logs are in {folder}. Ctrl-C ends it all.
"""


def main() -> int:
    options = read_options()
    try:
        programs = build.programs(options.version)
    except build.CannotBuildError as reason:
        sys.stderr.write(f"{reason}\n")
        return 1
    if options.build_only:
        sys.stdout.writelines(f"{path}\n" for path in programs.values())
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the folder is removed then, too
    with contextlib.suppress(KeyboardInterrupt):
        show(options, str(programs["kubectl"]))
    return 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.controlplane", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=10, help="how many (default 10)")
    parser.add_argument("--version", choices=build.VERSIONS, default=build.MAIN, help=f"default {build.MAIN}")
    parser.add_argument("--no-kwok", action="store_true", help="no kubelets: bound pods stay Pending")
    parser.add_argument("--kube-scheduler", action="store_true", help="start the real kube-scheduler, too")
    parser.add_argument("--pod-groups", action="store_true", help="serve PodGroup and Workload")
    parser.add_argument("--build-only", action="store_true", help="build the programs, print where they are, and stop")
    options = parser.parse_args()
    if options.pod_groups and options.version not in flags.POD_GROUP_APIS:
        parser.error(f"--pod-groups: Kubernetes {options.version} has no PodGroup; {build.MAIN} has")
    return options


def show(options: argparse.Namespace, kubectl: str) -> None:
    """Start it, print how to use it, and stay until it is ended."""
    started = time.monotonic()
    plane = ControlPlane(options.version, kwok=not options.no_kwok, pod_groups=options.pod_groups)
    with plane, plane.nodes(options.nodes):
        if options.kube_scheduler:
            plane.start_kube_scheduler()
            scheduler = "The real kube-scheduler is running."
        else:
            scheduler = f"No scheduler is running yet; yours may use {plane.kubeconfig('scheduler')}."
        text = READY.format(
            version=options.version, seconds=time.monotonic() - started, nodes=options.nodes, kubectl=kubectl,
            kubeconfig=plane.kubeconfig(), scheduler=scheduler, folder=plane.folder,
        )  # fmt: skip
        sys.stdout.write(text)
        sys.stdout.flush()
        while True:
            plane.check()
            time.sleep(1)


if __name__ == "__main__":
    sys.exit(main())
