"""Asks the pages of a running Stowplan. A token goes to the server that is named, and to no other."""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from stowplan.objects.errors import ConfigError

WITHIN = 15.0  # seconds for each page
LARGEST = 64 << 20  # bytes of a page
LOOPBACK = ("localhost", "127.0.0.1", "::1")
# `stowplan place` has some of them only; a page that is not there is no problem.
PAGES = {
    "/metrics": "metrics.txt",
    "/configz": "configz.json",
    "/leader": "leader.txt",
    "/livez?verbose": "livez.txt",
    "/readyz?verbose": "readyz.txt",
    "/debug/podgroups": "podgroups.json",
}
NEEDED = ("/metrics", "/readyz?verbose")


@dataclass(frozen=True)
class PageAccess:
    token_file: Path | None = None
    ca_file: Path | None = None
    insecure: bool = False


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True)
class PageAnswer:
    """A page: its file in the bundle, and what it says; or else the problem."""

    file: str
    body: bytes = b""
    problem: str = ""


def check(url: str, access: PageAccess) -> None:
    """Raise ConfigError for an address that no pages can have, or that must not see a token."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{url!r} is no URL of pages", path="--pages", remedy="write https://127.0.0.1:10259")
    if access.token_file is not None and parts.scheme == "http" and parts.hostname not in LOOPBACK:
        remedy = "use https, or a port-forward to the loopback"
        raise ConfigError(f"{url!r} would send the token unencrypted", path="--token-file", remedy=remedy)


def answers(url: str, access: PageAccess) -> Iterator[PageAnswer]:
    """Ask for each page of a program."""
    opener, headers = _opener(access), _headers(access)
    for path, file in PAGES.items():
        request = urllib.request.Request(url.rstrip("/") + path, headers=headers)
        try:
            with opener.open(request, timeout=WITHIN) as answer:
                yield PageAnswer(file, answer.read(LARGEST))
        except urllib.error.HTTPError as error:
            if path.startswith(("/livez", "/readyz")) and error.code == 500:  # what is not well is told so
                yield PageAnswer(file, error.read(LARGEST))
            elif error.code != 404 or path in NEEDED:
                yield PageAnswer(file, problem=f"{url}{path}: {error.code} {error.reason}")
        except (OSError, http.client.HTTPException) as error:
            yield PageAnswer(file, problem=f"{url}{path}: {error}")
            return


def _opener(access: PageAccess) -> urllib.request.OpenerDirector:
    context = ssl.create_default_context()
    if access.ca_file is not None:
        try:
            context.load_verify_locations(access.ca_file)
        except OSError as error:
            remedy = "give --ca-file the certificates that the pages are signed by"
            raise ConfigError(f"cannot be used: {error}", file=str(access.ca_file), remedy=remedy) from None
    if access.insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return urllib.request.build_opener(_NoRedirects, urllib.request.HTTPSHandler(context=context))


def _headers(access: PageAccess) -> dict[str, str]:
    if access.token_file is None:
        return {}
    try:
        token = access.token_file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", file=str(access.token_file), path="--token-file") from None
    if not token or not token.isascii() or any(each.isspace() for each in token):
        raise ConfigError("has no token", file=str(access.token_file), path="--token-file")
    return {"Authorization": f"Bearer {token}"}
