"""A kubelet in small: what a pod of the server says becomes a process in the image's root file system.

The pod is the one that the controllers and admission made of a Deployment. So command, arguments, environment, user,
volumes and the token of its service account are those that a container would have: nothing is taken from a template.

    with Kubelet(plane, root, folder) as kubelet:
        until("it runs", lambda: kubelet.sync() and …)

Who binds the pods and says that they are ready is not its business: kube-scheduler and kwok do.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from tests.controlplane import flags
from tests.controlplane.api import Api
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Program
from tests.deploy import rootfs

HELD = "stowplan.io/runs"  # the finalizer of a pod whose process runs
ENDED = 90.0  # seconds; the grace period of a pod is shorter


class PodProcess:
    """A pod that runs. `log` stays when it ended."""

    def __init__(self, plane: ControlPlane, pod: Any, root: Path, folder: Path) -> None:
        self.plane, self.pod, self.log = plane, pod, folder / "log"
        (self.container,) = pod["spec"]["containers"]
        security = pod["spec"]["securityContext"]
        assert security["runAsUser"] == security["runAsGroup"] == rootfs.NONROOT
        assert self.container["securityContext"]["readOnlyRootFilesystem"] is True
        mounts, writable = self._mounts(root, folder)
        words = [*self.container["command"], *self.container["args"]]
        path, *more = rootfs.command(root, words, mounts, writable=writable, environment=self._environment())
        self.program = Program(Path(path), more, self.log)

    @property
    def port(self) -> int:
        """Of its pages."""
        (port,) = self.container["ports"]
        return int(port["containerPort"])

    def page(self, path: str) -> str:
        """As an administrator; empty if nobody answers."""
        try:
            answer = Api(f"https://{flags.LOOPBACK}:{self.port}", token=self.plane.tokens["admin"]).get(path)
        except OSError:
            return ""
        return answer.body.decode() if answer.status == 200 else ""

    def listens_on(self) -> set[int]:
        """The TCP ports on which this very process listens, as the kernel says."""
        process = Path(f"/proc/{self.program.pid}")
        sockets = {str(link.readlink()) for link in (process / "fd").iterdir() if link.is_symlink()}
        found = set()
        for table in ("tcp", "tcp6"):
            for line in (process / "net" / table).read_text().splitlines()[1:]:
                _, local, _, state, *_, inode = line.split()[:10]
                if state == "0A" and f"socket:[{inode}]" in sockets:
                    found.add(int(local.rpartition(":")[2], 16))
        return found

    def _environment(self) -> dict[str, str]:
        """The container's own, and where the server is, which a kubelet tells each container."""
        host, _, port = self.plane.server.removeprefix("https://").partition(":")
        own = {each["name"]: each["value"] for each in self.container.get("env", ())}
        return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, **own}

    def _mounts(self, root: Path, folder: Path) -> tuple[dict[str, Path], dict[str, Path]]:
        """Folders by their paths inside: those that are read-only, and those that are not."""
        volumes = {each["name"]: each for each in self.pod["spec"]["volumes"]}
        mounts: tuple[dict[str, Path], dict[str, Path]] = ({}, {})
        for mount in self.container["volumeMounts"]:
            volume, target = folder / mount["name"], mount["mountPath"]
            volume.mkdir(mode=0o755)
            for name, content in self._files(volumes[mount["name"]]):
                (volume / name).write_bytes(content)
            if "emptyDir" in volumes[mount["name"]]:
                volume.chmod(0o1777)
            (root / target.removeprefix("/")).mkdir(parents=True, exist_ok=True)  # as a runtime does
            mounts[0 if mount.get("readOnly") else 1][target] = volume
        return mounts

    def _files(self, volume: Any) -> Iterator[tuple[str, bytes]]:
        if "configMap" in volume:
            yield from self._entries("configmaps", volume["configMap"])
        elif "secret" in volume:
            yield from self._entries("secrets", {"name": volume["secret"]["secretName"]})
        elif "projected" in volume:
            for source in volume["projected"]["sources"]:
                ((kind, what),) = source.items()
                if kind == "serviceAccountToken":
                    yield what["path"], self._token(what)
                elif kind == "configMap":
                    yield from self._entries("configmaps", what)
                else:
                    (item,) = what["items"]
                    assert item["fieldRef"]["fieldPath"] == "metadata.namespace"
                    yield item["path"], self.pod["metadata"]["namespace"].encode()
        else:
            assert "emptyDir" in volume, volume

    def _entries(self, plural: str, source: Any) -> Iterator[tuple[str, bytes]]:
        namespace = self.pod["metadata"]["namespace"]
        found = self.plane.api().must("GET", f"/api/v1/namespaces/{namespace}/{plural}/{source['name']}")
        wanted = {each["key"]: each["path"] for each in source.get("items", ())}
        for key, value in found["data"].items():
            if not wanted or key in wanted:
                yield wanted.get(key, key), base64.b64decode(value) if plural == "secrets" else value.encode()

    def _token(self, source: Any) -> bytes:
        """Of the pod's account, bound to the pod: it ends with it, as a real one does."""
        about = self.pod["metadata"]
        account = f"/api/v1/namespaces/{about['namespace']}/serviceaccounts/{self.pod['spec']['serviceAccountName']}"
        bound = {"apiVersion": "v1", "kind": "Pod", "name": about["name"], "uid": about["uid"]}
        spec = {"expirationSeconds": source.get("expirationSeconds", 3607), "boundObjectRef": bound}
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return str(self.plane.api().must("POST", f"{account}/token", asked)["status"]["token"]).encode()


class Kubelet:
    """Starts a process for each running pod of a release, and ends it with its pod. Its end ends all."""

    def __init__(self, plane: ControlPlane, root: Path, folder: Path, namespace: str, selector: str) -> None:
        self.plane, self.root, self.folder = plane, root, folder
        self.path = f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}"
        self.running: dict[str, PodProcess] = {}
        self.ended: list[PodProcess] = []

    def sync(self) -> list[PodProcess]:
        """What runs now."""
        pods = {each["metadata"]["uid"]: each for each in self.plane.api().must("GET", self.path)["items"]}
        wanted = {uid: pod for uid, pod in pods.items() if is_to_run(pod)}
        for uid in wanted.keys() - self.running.keys():
            folder = self.folder / uid
            folder.mkdir(mode=0o755, parents=True)
            self._hold(wanted[uid], [HELD])
            self.running[uid] = PodProcess(self.plane, wanted[uid], self.root, folder)
        for uid in self.running.keys() - wanted.keys():
            self._end(uid)
        for each in self.running.values():
            each.program.check()
        return list(self.running.values())

    def explain(self) -> str:
        """The ends of the logs of all that runs or ran."""
        found = [*self.ended, *self.running.values()]
        return "\n".join(f"{each.pod['metadata']['name']}:\n{each.program.tail(30)}" for each in found)

    def _end(self, uid: str) -> None:
        process = self.running.pop(uid)
        self.ended.append(process)
        process.program.stop(ENDED)
        self._hold(process.pod, [])
        assert process.program.code == 0, process.program.tail()

    def _hold(self, pod: Any, finalizers: list[str]) -> None:
        """A pod goes when its containers have ended, and its token with it; kwok alone would let it go at once."""
        about = pod["metadata"]
        patch = json.dumps({"metadata": {"finalizers": finalizers or None}})
        words = ("patch", "pod", about["name"], "--namespace", about["namespace"], "--type=merge", "--patch", patch)
        self.plane.kubectl(*words)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.running.values():
            process.program.stop()
            self._hold(process.pod, [])


def is_to_run(pod: Any) -> bool:
    """It has a node, kwok has started it, and nobody deletes it."""
    return pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")
