"""Names, labels and messages that would like to be more than texts: markup, other directions, very long ones.

An API server would refuse most of these names. A dump is a file, though, and messages and labels are anybody's.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.apps.ui import busy_cluster
from tests.apps.ui.browser_page import WatchedPage

INTRUDERS = """() => [
  ...(window.broken === undefined ? [] : ['a script ran']),
  ...[...document.querySelectorAll('iframe, base, embed, object, math, textarea, img, body style, body script')]
    .map(each => each.outerHTML.slice(0, 80)),
]"""
MARKS = "<>\"'&`=/\\;:!-()[]{}#?%"
RIGHT_TO_LEFT = "\u202e\u2067\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627\u202b"
STACKED = "Z\u0341\u0308\u034b\u0317\u0353a\u0321\u0347\u0331l\u0336g\u0340\u0315o\u0361" * 8
KNOWN = (
    "<script>window.broken = 1</script>", "</script><script>window.broken=1</script>",
    "<img src=x onerror=window.broken=1>", "\"><svg onload=window.broken=1>", "' onmouseover='window.broken=1",
    "</title><script>window.broken=1</script>", "<!--", "]]>", "{{7*7}}", "${7*7}", "javascript:window.broken=1",
    "</textarea><iframe src=javascript:window.broken=1>", "<base href=//evil.example>", "&lt;b&gt;", "%3Cscript%3E",
    "<style>*{display:none}</style>", "<meta http-equiv=refresh content=0;url=//evil.example>", "a" * 4000,
    "\u202eevil", RIGHT_TO_LEFT * 9, STACKED, "\ufeff\u200b\u200d", "../../etc/passwd", "..", "a/../b",
    "\x00\x01\x1b[31m", " ", "\n\t",
    "<math><mtext></mtext><mglyph><style><img src=x onerror=window.broken=1>", "\U0001f469\u200d\U0001f680" * 60,
)  # fmt: skip


def text(draw: random.Random) -> str:
    """Return a hostile text."""
    kind = draw.randrange(6)
    if kind == 0:
        return draw.choice(KNOWN)
    if kind == 1:
        return "".join(draw.choices(MARKS + "abcscriptonerror ", k=draw.randrange(1, 60)))
    if kind == 2:
        return draw.choice((RIGHT_TO_LEFT, STACKED, "\u2066", "\u200f")) + "".join(draw.choices(MARKS, k=9))
    if kind == 3:
        return draw.choice("aW\u5b57<\u0645") * draw.randrange(200, 1500)
    if kind == 4:
        return "".join(
            chr(draw.choice((draw.randrange(32, 0xD7FF), draw.randrange(0xE000, 0x1FFFF)))) for _ in range(40)
        )
    return draw.choice(KNOWN) + draw.choice(KNOWN)


TEXTS_OF_A_POD = 7


def write(file: Path, texts: int, seed: int = 11) -> Path:
    """Write a dump with so many hostile texts: in names, namespaces, labels, selectors, messages, events."""
    names = texts
    draw, found = random.Random(seed), list[dict[str, Any]]()
    for at in range(max(names // 50, 4)):
        labels = {f"l{at}": text(draw), "topology.kubernetes.io/zone": text(draw)}
        template = busy_cluster.documents(nodes=1, pods=0)[0]
        taints = [{"key": text(draw), "value": text(draw), "effect": "NoSchedule"}] if at % 3 == 0 else []
        metadata = {"name": f"{text(draw)[:120]}{at}", "labels": labels, "uid": f"n{at}"}
        found.append({**template, "metadata": metadata, "spec": {"taints": taints}})
    for at in range(names // TEXTS_OF_A_POD):
        node: str = found[draw.randrange(max(names // 50, 4))]["metadata"]["name"] if at % 3 else ""
        pod = busy_cluster.pod(
            f"{text(draw)[:300]}{at}", text(draw)[:60].replace("/", "_") or "x", node=node, message=text(draw),
            cpu="900" if at % 2 else "1m", labels={"a": text(draw)},
            nodeSelector={text(draw): text(draw)} if at % 5 == 0 else {},
        )  # fmt: skip
        found.append(pod)
        if at % 4 == 0:
            about = {"kind": "Pod", "namespace": pod["metadata"]["namespace"], "name": pod["metadata"]["name"]}
            found.append({
                "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": f"e{at}"}, "regarding": about,
                "reason": "FailedScheduling", "note": text(draw), "eventTime": "2026-11-19T11:00:00Z",
                "reportingController": text(draw),
            })  # fmt: skip
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": found}), encoding="utf-8")
    return file


def visit(found: WatchedPage, file: Path, most: int) -> None:
    """Open the pages that show these texts: nothing may run, lead elsewhere or be wider than its box."""
    paths = ["/", "/?by=zone", "/?by=taint", "/pending", "/decisions", "/groups", "/placements", "/find?q="]
    items = json.loads(file.read_text(encoding="utf-8"))["items"]
    pods = [each["metadata"] for each in items if each["kind"] == "Pod"][:most]
    pods = [each for each in pods if each["namespace"] not in (".", "..")]  # steps in a path, to a browser
    nodes = [each["metadata"]["name"] for each in items if each["kind"] == "Node"][:most]
    paths += [f"/pods/{quote(each['namespace'], safe='')}/{quote(each['name'], safe='')}" for each in pods]
    paths += [f"/nodes/{quote(name, safe='')}" for name in nodes]
    shown = 0
    for at, path in enumerate(paths):
        if found.pages.get(path)[0] != 200:
            continue
        shown += 1
        page = found.go(path)
        assert page.evaluate(INTRUDERS) == [], path
        assert found.overflow() == [], path
        if at % 10 == 0:
            page.set_viewport_size({"width": 390, "height": 800})
            assert found.overflow() == [], path
            page.set_viewport_size({"width": 1280, "height": 900})
    assert shown > 0.9 * len(paths)
