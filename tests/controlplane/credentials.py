"""Who may ask the API server: a file of tokens, the key that signs service accounts' tokens, and kubeconfig files.

Each part of the plane has the user that RBAC's bootstrap policy knows it by, so that rights are tested, too.
"""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
from pathlib import Path

USERS = {
    "admin": ("kubernetes-admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
    "kwok": ("kwok", "system:masters"),
    "nobody": ("nobody", ""),  # known, but without any right
}


def write_tokens(file: Path) -> dict[str, str]:
    """A token for each of USERS, in kube-apiserver's format: token,user,uid,"group"."""
    tokens = {name: secrets.token_hex(16) for name in USERS}
    lines = [f'{tokens[name]},{user},{name},"{group}"\n' for name, (user, group) in USERS.items()]
    file.touch(mode=0o600)
    file.write_text("".join(lines))
    return tokens


def write_key(file: Path) -> None:
    """An RSA key: the standard library makes none, and one tool or the other is on every machine."""
    if shutil.which("openssl"):
        command = ["openssl", "genrsa", "-out", str(file), "2048"]
    elif shutil.which("ssh-keygen"):
        command = ["ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-m", "PEM", "-N", "", "-f", str(file)]
    else:
        raise RuntimeError("neither openssl nor ssh-keygen is on the PATH to make the key of service accounts with")
    subprocess.run(command, check=True, capture_output=True)


def write_kubeconfig(file: Path, server: str, ca: Path | None, token: str) -> Path:
    """JSON, which is YAML, too."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "plane", "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "plane", "context": {"cluster": "plane", "user": "user"}}],
        "current-context": "plane",
    }
    file.touch(mode=0o600)
    file.write_text(json.dumps(document, indent=2) + "\n")
    return file
