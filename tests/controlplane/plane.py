"""A control plane on loopback: etcd, then kube-apiserver, then kube-controller-manager and kwok.

    with ControlPlane() as plane, plane.nodes(3), plane.namespace() as namespace, plane.start_kube_scheduler():
        plane.kubectl("create", "deployment", "web", "--image=pause", "--replicas=5", "--namespace", namespace)

No scheduler runs unless started: that place is for the one under test. Everything is waited for by asking, and ends
with the `with` block, or with this process if that is killed. What users do with a cluster is in `cluster.py`; here is
what only its owner can do: start it, stop it, and make it fail.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.controlplane import build, credentials, flags, manifests
from tests.controlplane.api import Api
from tests.controlplane.cluster import Cluster
from tests.controlplane.process import Program


class ControlPlane(Cluster):
    """A cluster whose every part is ours.

    `benchmark` leaves out controller-manager and kwok and lifts the servers' limits (`flags.py` says which).
    `pod_groups` serves PodGroup and Workload and opens their feature gates everywhere.
    """

    def __init__(
        self, version: str = build.MAIN, *, controller_manager: bool = True, kwok: bool = True, benchmark: bool = False,
        pod_groups: bool = False, apiserver_flags: Sequence[str] = (), tell: build.Tell = build.to_stderr,
    ) -> None:  # fmt: skip
        self.version = version
        self._programs = build.programs(version, tell, without=flags.NOT_FOR_BENCHMARKS if benchmark else ())
        self._benchmark = benchmark
        self._gates = [f"--feature-gates={flags.POD_GROUP_GATES[version]}"] if pod_groups else []
        self._apis = [f"--runtime-config={flags.POD_GROUP_APIS[version]}=true"] if pod_groups else []
        self._more_flags = list(apiserver_flags)
        self._running: list[Program] = []
        folder = Path(tempfile.mkdtemp(prefix="stowplan-plane-"))
        self.certificate = folder / "kube-apiserver" / "apiserver.crt"
        self._port, self._etcd_port = flags.free_port(), flags.free_port()
        super().__init__(
            f"https://{flags.LOOPBACK}:{self._port}",
            self.certificate,
            credentials.write_tokens(folder / "tokens.csv"),
            self._programs["kubectl"],
            folder,
            has_accounts=controller_manager and not benchmark,
            has_kubelets=kwok and not benchmark,
        )

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        credentials.write_key(self._key)
        self._start_etcd()
        self._apiserver = self._start_apiserver()
        # Both need seconds, so the second is started before the first is waited for.
        kwok = self._start_kwok() if self.has_kubelets else None
        if self.has_accounts:
            self._start_controller_manager()
        if kwok:
            kwok.wait_until(lambda: Api(self._kwok_url).answers("/healthz"))

    def stop(self) -> None:
        """Ends what runs, the youngest first, and removes the folder."""
        while self._running:
            self._running.pop().stop(grace=1)  # nothing is kept, so a clean end is not needed
        shutil.rmtree(self.folder, ignore_errors=True)

    def check(self) -> None:
        """An error, with the end of its log, if a program ended by itself."""
        for program in self._running:
            if not program.was_stopped:
                program.check()

    # What is started, in this order

    def _start_etcd(self) -> None:
        peers = f"http://{flags.LOOPBACK}:{flags.free_port()}"
        arguments = [f"--data-dir={self.folder / 'etcd'}", f"--listen-peer-urls={peers}", *flags.ETCD]
        arguments += [f"--listen-client-urls={self._etcd_url}", f"--advertise-client-urls={self._etcd_url}"]
        if self._benchmark:
            arguments += flags.BENCHMARK_ETCD
        self._run("etcd", arguments).wait_until(lambda: Api(self._etcd_url).answers("/readyz"))

    def _start_apiserver(self) -> Program:
        arguments = [
            *flags.serving(self._port, self.certificate.parent),
            f"--etcd-servers={self._etcd_url}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--service-account-key-file={self._key}",
            f"--service-account-signing-key-file={self._key}",
            *flags.APISERVER,
            *(flags.BENCHMARK_APISERVER if self._benchmark else []),
            *self._gates,
            *self._apis,
            *self._more_flags,
        ]
        program = self._run("kube-apiserver", arguments)
        program.wait_until(lambda: self.certificate.exists() and self.api().answers("/readyz"))
        return program

    def _start_kwok(self) -> Program:
        address = f"{flags.LOOPBACK}:{flags.free_port()}"
        self._kwok_url = f"http://{address}"
        return self._run(
            "kwok", [f"--kubeconfig={self.kubeconfig('kwok')}", f"--server-address={address}", *flags.KWOK]
        )

    def _start_controller_manager(self) -> None:
        name = "kube-controller-manager"
        arguments = [*flags.acting_as(self.kubeconfig("controller-manager")), *flags.CONTROLLER_MANAGER]
        arguments += [f"--service-account-private-key-file={self._key}", f"--root-ca-file={self.certificate}"]
        arguments += [*flags.serving(flags.free_port(), self.folder / name), *self._gates]
        arguments += [] if self.has_kubelets else flags.WITHOUT_KUBELETS
        # It calls itself healthy before its controllers work; this is the first that a pod needs of them.
        self._run(name, arguments).wait_until(lambda: self.has_default_account("default"))

    def start_kube_scheduler(self, config: Mapping[str, Any] | None = None, kubeconfig: Path | None = None) -> Program:
        """The real kube-scheduler, ready to schedule; `with` or `stop()` ends it.

        `config` is a KubeSchedulerConfiguration, of which only what differs from the defaults need be given.
        """
        kubeconfig = kubeconfig or self.kubeconfig("scheduler")
        folder = self.folder / f"kube-scheduler-{next(self._numbers)}"
        folder.mkdir()
        port = flags.free_port()
        arguments = [*flags.serving(port, folder), *flags.acting_as(kubeconfig), "--leader-elect=false", *self._gates]
        if config is not None:
            document = manifests.scheduler_configuration(config, kubeconfig)
            (folder / "config.json").write_text(json.dumps(document))
            arguments.append(f"--config={folder / 'config.json'}")
        scheduler = self._run("kube-scheduler", arguments)
        scheduler.wait_until(lambda: Api(f"https://{flags.LOOPBACK}:{port}").answers("/readyz"))
        return scheduler

    def _run(self, name: str, arguments: Sequence[str]) -> Program:
        program = Program(self._programs[name], arguments, self.folder / f"{name}.log")
        self._running.append(program)
        return program

    # How it fails

    def kill_apiserver(self) -> None:
        """As a crash would: no goodbye to anybody."""
        self._apiserver.kill()

    def restart_apiserver(self) -> None:
        """Killed unless it is dead already, and back at the same address with the same data, tokens and certificate."""
        self.kill_apiserver()
        self._apiserver = self._start_apiserver()

    def compact_etcd(self) -> int:
        """Forgets what was before now, and returns the revision that is now the oldest.

        A watch that goes back further gets 410 where kube-apiserver asks etcd, which it does for events. For other
        objects it remembers the recent past itself, so there `restart_apiserver` must follow.
        """
        etcd = Api(self._etcd_url)
        revision = int(etcd.must("POST", "/v3/maintenance/status", {})["header"]["revision"])
        etcd.must("POST", "/v3/kv/compaction", {"revision": revision, "physical": True})
        return revision

    @property
    def _key(self) -> Path:
        return self.folder / "service-accounts.key"

    @property
    def _etcd_url(self) -> str:
        return f"http://{flags.LOOPBACK}:{self._etcd_port}"
