"""Files are merged as in kubectl; an error is one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from stowplan.kube import kubeconfig
from stowplan.objects.errors import ConfigError

CERTIFICATE = "Q0VSVElGSUNBVEU="  # "CERTIFICATE"


def written(file: Path, **parts: object) -> Path:
    """A kubeconfig: `contexts={"dev": {…}}` becomes the list of the format."""
    document: dict[str, object] = {}
    for word, value in parts.items():
        if isinstance(value, dict):
            one = word.removesuffix("s")
            document[word] = [{"name": name, one: entry} for name, entry in value.items()]
        else:
            document[word.replace("_", "-")] = value
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(document))
    return file


def test_the_current_context_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    file = written(
        tmp_path / "config",
        current_context="dev",
        contexts={"dev": {"cluster": "here", "user": "me", "namespace": "mine"}},
        clusters={"here": {"server": "https://here:6443", "certificate-authority-data": CERTIFICATE}},
        users={"me": {"client-certificate": "certs/me.crt", "client-key": "/abs/me.key", "tokenFile": "token"}},
    )
    resolved = kubeconfig.resolve([file])
    assert (resolved.context, resolved.namespace, resolved.cluster.server) == ("dev", "mine", "https://here:6443")
    assert resolved.cluster.certificate_authority_data == b"CERTIFICATE"
    assert resolved.user.client_certificate == str(tmp_path / "certs/me.crt")
    assert (resolved.user.client_key, resolved.user.token_file) == ("/abs/me.key", str(tmp_path / "token"))


def test_of_several_files_the_first_to_name_something_wins(tmp_path: Path) -> None:
    first = written(
        tmp_path / "a" / "config",
        contexts={"dev": {"cluster": "here", "user": "me"}},
        users={"me": {"tokenFile": "token"}},
    )
    second = written(
        tmp_path / "b" / "config",
        current_context="dev",
        contexts={"dev": {"cluster": "elsewhere", "user": "other"}},
        clusters={"here": {"server": "https://here", "certificate-authority": "ca.crt"}},
        users={"me": {"token": "not this one"}},
    )
    resolved = kubeconfig.resolve([tmp_path / "not-there", first, second])
    assert (resolved.cluster.server, resolved.user.token) == ("https://here", "")
    assert resolved.user.token_file == str(tmp_path / "a" / "token"), "relative to its own file"
    assert resolved.cluster.certificate_authority == str(tmp_path / "b" / "ca.crt")


def test_a_context_can_be_named_and_may_have_no_user(tmp_path: Path) -> None:
    file = written(
        tmp_path / "config",
        current_context="dev",
        contexts={"dev": {"cluster": "x"}, "prod": {"cluster": "here"}},
        clusters={"here": {"server": "http://here"}},
    )
    resolved = kubeconfig.resolve([file], "prod")
    assert (resolved.context, resolved.namespace, resolved.user.token) == ("prod", "default", "")


GOOD = """
current-context: dev
contexts: [{name: dev, context: {cluster: here, user: me}}]
clusters: [{name: here, cluster: {server: 'https://here'}}]
users: [{name: me, user: {token: x}}]
"""


@pytest.mark.parametrize(
    ("text", "context", "problem"),
    [
        pytest.param("a: [", None, "not YAML", id="broken YAML"),
        pytest.param("[]", None, "expected a kubeconfig", id="a list"),
        pytest.param("a: &a [*a]", None, "stands inside of what it stands for", id="an alias of itself"),
        pytest.param("users: 5\ncurrent-context: dev", None, "there is no context at all", id="a number of users"),
        pytest.param("current-context: {a: b}", None, "current-context: found nothing", id="a mapping as a context"),
        pytest.param(
            GOOD.replace("{token: x}", "x"), None, r"users\[me\].user: expected a mapping", id="a user that is a text"
        ),
        pytest.param(GOOD.replace("//here", "//["), None, r"clusters\[here\].server: found", id="half an address"),
        pytest.param(GOOD.replace("//here", "//here:99999999"), None, "an address such as", id="a port that is none"),
        pytest.param("", None, "current-context: found nothing; name a context", id="an empty file"),
        pytest.param(GOOD, "prod", 'no context is called "prod"; there is dev', id="a context that is not there"),
        pytest.param(GOOD.replace("user: me", "user: you"), None, 'no user is called "you"; there is me', id="no user"),
        pytest.param(
            GOOD.replace("cluster: here", "cluster: there"), None, 'no cluster is called "there"', id="no cluster"
        ),
        pytest.param(
            GOOD.replace("https://here", "here:6443"),
            None,
            r'clusters\[here\].server: found "here:6443", expected an address such as https://10.0.0.1:6443',
            id="an address without a scheme",
        ),
        pytest.param(
            GOOD.replace("token: x", "token: 5"), None, r"users\[me\].token: expected `str`", id="a token as a number"
        ),
        pytest.param(
            GOOD.replace("token: x", "client-key-data: '*'"),
            None,
            r"users\[me\].client-key-data: invalid base64",
            id="data that is not base64",
        ),
    ],
)
def test_errors_name_the_file(tmp_path: Path, text: str, context: str | None, problem: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(ConfigError, match=problem) as caught:
        kubeconfig.resolve([file], context)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere: no such file; expected a kubeconfig file"):
        kubeconfig.resolve([tmp_path / "nowhere"])
