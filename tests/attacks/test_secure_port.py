"""The secure port, from somebody without a token: a thousand connections, most of them silent, some with TLS, some in
the middle of a request. They take neither the descriptors of the API client nor the answers to the kubelet."""

from __future__ import annotations

import contextlib
import resource
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from stowplan.apps import certificates
from tests.attacks.survivor import SOON_AFTER_RESTART, unharmed
from tests.controlplane.flags import LOOPBACK, free_port
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Program, until
from tests.controlplane.stowplan_process import PYTHON, Stowplan

pytestmark = pytest.mark.controlplane

FILES = 1024  # what systemd gives a service that asks for nothing
HELD = 1000
LIMITED = f'ulimit -n {FILES} && exec "$0" "$@"'
GET = b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


class Secured(Stowplan):
    """`stowplan run` with a secure port, certificates in files, and few descriptors."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.port, self.secure_port = free_port(), free_port()
        self.cert, self.key = folder / "tls.crt", folder / "tls.key"
        self.renew()
        command = [
            "-m",
            "stowplan.apps.cli",
            "run",
            f"--kubeconfig={plane.kubeconfig()}",
            "--leader-elect=false",
            "-v2",
        ]
        command += [f"--secure-port={self.secure_port}", f"--plain-port={self.port}", f"--bind-address={LOOPBACK}"]
        command += [f"--tls-cert-file={self.cert}", f"--tls-private-key-file={self.key}"]
        log = plane.folder / "secure-port.log"
        Program.__init__(self, Path("/bin/sh"), ["-c", LIMITED, str(PYTHON), *command], log)

    def renew(self) -> bytes:
        """Write a new certificate and its key; return the certificate."""
        certificate, key = certificates.self_signed()
        self.cert.write_bytes(certificate)
        self.key.write_bytes(key)
        return certificate

    def connect(self) -> socket.socket:
        return socket.create_connection((LOOPBACK, self.secure_port), timeout=10)

    def connect_tls(self) -> ssl.SSLSocket:
        asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        asking.check_hostname, asking.verify_mode = False, ssl.CERT_NONE
        return asking.wrap_socket(self.connect())

    def health(self) -> str:
        """What /livez says on the secure port."""
        with self.connect_tls() as connection:
            connection.sendall(GET % b"/livez")
            return b"".join(iter(lambda: connection.recv(4096), b"")).decode()

    def certificate(self) -> str:
        with self.connect_tls() as connection:
            found = connection.getpeercert(binary_form=True)
        assert found is not None
        return ssl.DER_cert_to_PEM_cert(found)


@pytest.fixture(scope="module")
def secured(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with plane.nodes(3, prefix="secured"), Secured(plane, tmp_path_factory.mktemp("secured")) as program:
        program.wait_until_ready()
        yield program


@pytest.fixture
def many_files() -> Iterator[None]:
    """This process holds the other ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * HELD if hard == resource.RLIM_INFINITY else min(4 * HELD, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def hold(secured: Secured, stack: contextlib.ExitStack) -> None:
    """Connections that say nothing, that end after the handshake, and in the middle of a request."""
    for number in range(HELD):
        with contextlib.suppress(OSError):  # it may be closed at once to make room
            if number % 50:
                stack.enter_context(secured.connect())
                continue
            spoken = stack.enter_context(secured.connect_tls())
            if number % 100:
                spoken.sendall((GET % b"/metrics")[:-10])


@pytest.mark.usefixtures("many_files")
def test_a_thousand_connections_are_held_and_the_api_server_restarts(
    plane: ControlPlane, namespace: str, secured: Secured
) -> None:
    with contextlib.ExitStack() as stack:
        with unharmed(plane, namespace, secured, within=SOON_AFTER_RESTART):
            hold(secured, stack)
            assert secured.health().endswith("ok")
            open_files = len(list(Path(f"/proc/{secured.pid}/fd").iterdir()))
            assert open_files < FILES - 64, "the API client has descriptors left"
            plane.restart_apiserver()
            hold(secured, stack)
        assert secured.health().endswith("ok")


def test_a_renewed_certificate_is_served_and_a_half_written_one_is_not(secured: Secured) -> None:
    renewed = secured.renew().decode()
    until("the new certificate is served", lambda: secured.certificate() == renewed, 10, secured.tail)
    secured.cert.write_bytes(certificates.self_signed()[0])
    assert [secured.certificate() for _ in range(3)] == [renewed] * 3
    until("the log says so", lambda: secured.log.read_text().count("the last good one stays") == 1, 10, secured.tail)
