"""`stowplan bundle`: what is in the file, what is not, and that secrets are left out wherever they were."""

from __future__ import annotations

import http.server
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from stowplan.apps.cli import main

SECRET = "hunter2"
TOKEN = "the-token-of-the-one-who-asks"
CONFIG = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
# the old password was {SECRET}
extenders:
  - urlPrefix: https://robot:{SECRET}@extender.example/
    tlsConfig: {{keyData: {SECRET}, certFile: /etc/cert.pem}}
profiles:
  - schedulerName: stowplan
    pluginConfig: [{{name: Mine, args: {{apiToken: {SECRET}, weight: 3}}}}]
"""
SERVED = {
    "/metrics": f'scheduler_pending_pods{{queue="active"}} 3.0\nmine{{url="https://a:{SECRET}@x/"}} 1\n',
    "/configz": json.dumps({"kubescheduler.config.k8s.io": {"extenders": [{"tlsConfig": {"keyData": SECRET}}]}}),
    "/leader": "leading\n",
    "/livez?verbose": "[+]ping ok\n",
    "/debug/podgroups": json.dumps({"items": []}),
}
DECISION = {"event": "decided", "pod": "shop/web", "node": "a", "message": f"password={SECRET}"}


class Pages(http.server.BaseHTTPRequestHandler):
    """The pages of a scheduler that is not ready; `/elsewhere` counts who follows a redirect."""

    asked: list[tuple[str, str]]
    redirects = False

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization", "")))
        body = SERVED.get(self.path, "")
        status = 200 if body else 500 if self.path.startswith("/readyz") else 404
        if self.redirects:
            status = 302
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        text = (body or f"[-]informer-sync failed, token={SECRET}\n").encode()
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def pages() -> Iterator[str]:
    Pages.asked, Pages.redirects = [], False
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def bundle(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["bundle", "-o", str(folder / "b.tar.gz"), "--no-cluster", *words])


def contents(folder: Path) -> dict[str, bytes]:
    with tarfile.open(folder / "b.tar.gz") as archive:
        found = {}
        for entry in archive.getmembers():
            stream = archive.extractfile(entry)
            assert stream is not None
            found[entry.name.removeprefix("stowplan-bundle/")] = stream.read()
    return found


def test_everything_that_is_asked_for_without_a_secret(tmp_path: Path, pages: str) -> None:
    for name, text in {
        "config.yaml": CONFIG,
        "decisions.jsonl": json.dumps(DECISION) + "\n",
        "decisions.jsonl.1": json.dumps(DECISION | {"pod": "shop/earlier"}) + "\n",
        "stowplan.log": f'I1119 stowplan] "x" header="Bearer {SECRET}"\n',
        "token": TOKEN + "\n",
    }.items():
        (tmp_path / name).write_text(text)
    words = ["--config", str(tmp_path / "config.yaml"), "--decision-log", str(tmp_path / "decisions.jsonl")]
    words += ["--log", str(tmp_path / "stowplan.log"), "--pages", pages, "--token-file", str(tmp_path / "token")]
    done = bundle(tmp_path, *words)
    assert done.exit_code == 0, done.output
    found, folder = contents(tmp_path), f"pages/127.0.0.1_{pages.rpartition(':')[2]}"
    assert found.keys() == {
        "bundle.json", "versions.json", "configuration/config.yaml", "decisions.jsonl", "log/stowplan.log",
        *(f"{folder}/{name}" for name in (
            "metrics.txt", "configz.json", "leader.txt", "livez.txt", "readyz.txt", "podgroups.json"
        )),
    }  # fmt: skip
    whole = b"".join(found.values()).decode() + done.output
    assert SECRET not in whole and TOKEN not in whole
    assert {each for _, each in Pages.asked} == {f"Bearer {TOKEN}"}
    configuration = yaml.safe_load(found["configuration/config.yaml"])
    assert configuration["profiles"][0]["pluginConfig"][0]["args"] == {"apiToken": "<left out>", "weight": 3}
    assert configuration["extenders"][0]["tlsConfig"]["certFile"] == "/etc/cert.pem"
    assert [json.loads(line)["pod"] for line in found["decisions.jsonl"].splitlines()] == ["shop/earlier", "shop/web"]
    assert b"informer-sync failed" in found[f"{folder}/readyz.txt"], "what is not well is most telling"
    assert json.loads(found["versions.json"])["libraries"]["numpy"]
    about = json.loads(found["bundle.json"])
    assert about["files"].keys() == found.keys() - {"bundle.json"} and about["leftOut"] >= 7 and not about["problems"]
    assert (tmp_path / "b.tar.gz").stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    done = bundle(tmp_path, "--config", str(tmp_path / "no.yaml"), "--pages", "http://127.0.0.1:9")
    assert done.exit_code == 1
    assert "Not in it: " in done.output and "no.yaml" in done.output and "127.0.0.1:9/metrics" in done.output
    assert contents(tmp_path).keys() == {"bundle.json", "versions.json"}


def test_a_configuration_that_is_no_yaml_is_left_out_whole(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(f"a: [\nunnamed {SECRET}")
    done = bundle(tmp_path, "--config", str(tmp_path / "bad.yaml"))
    assert done.exit_code == 1 and "bad.yaml" in done.output
    assert SECRET not in b"".join(contents(tmp_path).values()).decode() + done.output


def test_two_configurations_of_one_name(tmp_path: Path) -> None:
    words = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "config.yaml").write_text(f"kind: {folder}\n")
        words += ["--config", str(tmp_path / folder / "config.yaml")]
    assert bundle(tmp_path, *words).exit_code == 0
    assert contents(tmp_path)["configuration/config-2.yaml"] == b"kind: two\n"


def test_a_token_does_not_follow_a_redirect(tmp_path: Path, pages: str) -> None:
    (tmp_path / "token").write_text(TOKEN)
    Pages.redirects = True
    done = bundle(tmp_path, "--pages", pages, "--token-file", str(tmp_path / "token"))
    assert done.exit_code == 1 and all(path != "/elsewhere" for path, _ in Pages.asked)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["--pages", "127.0.0.1:10259"], "is no URL of pages; write https://", id="no URL"),
        pytest.param(["--pages", "http://10.0.0.1", "--token-file", "t"], "unencrypted; use https", id="in plain"),
        pytest.param(["--pages", "https://x", "--token-file", "no"], "no: --token-file: cannot be read", id="no token"),
        pytest.param(["--pages", "https://x", "--token-file", "empty"], "has no token", id="an empty token"),
        pytest.param(["--pages", "https://x", "--ca-file", "empty"], "empty: cannot be used", id="no certificate"),
    ],
)  # fmt: skip
def test_input_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t").write_text(TOKEN)
    (tmp_path / "empty").write_text("\n")
    done = bundle(tmp_path, *words)
    assert done.exit_code == 2 and said in done.output, done.output
    assert TOKEN not in done.output and not (tmp_path / "b.tar.gz").exists()


def test_a_long_log_is_cut_at_its_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stowplan.apps.bundle.contents.MOST_OF_LOG", 1000)
    (tmp_path / "log").write_text("".join(f"line {number}\n" for number in range(1000)))
    assert bundle(tmp_path, "--log", str(tmp_path / "log")).exit_code == 0
    lines = io.BytesIO(contents(tmp_path)["log/log"]).read().decode().splitlines()
    assert lines[-1] == "line 999" and all(line.startswith("line ") for line in lines) and len(lines) < 120
