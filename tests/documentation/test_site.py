"""`make docs`: the site is built without a warning, needs no other server, and shows what GitHub shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath

import pytest

from documentation import hooks
from tests.documentation import pages
from tests.documentation.pages import ROOT

DOCS = ROOT / "docs"
REPOSITORY = "https://github.com/stowplan/stowplan"
SHAPES = ("table", "tr", "li", "pre")  # what Python-Markdown and GitHub could read otherwise


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return folder


class Page(HTMLParser):
    """Counts elements of the page's own text, and collects what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in SHAPES:
            self.counts[tag] += 1
        address = given.get("src") if tag in ("script", "img", "iframe") else None
        if tag == "link" and given.get("rel") == "stylesheet":
            address = given.get("href")
        if address:
            self.loaded.append(address)


def article(file: Path) -> str:
    (text,) = re.findall(r"<article.*?</article>", file.read_text(encoding="utf-8"), re.DOTALL)
    return str(text)


def written(page: Path) -> bool:
    """False for a page that is partly made from the code."""
    return "reference" not in page.parts


def test_a_page_of_the_site_has_the_lists_tables_and_blocks_that_github_shows(site: Path) -> None:
    different = {}
    for page in filter(written, DOCS.rglob("*.md")):
        here = Page(article(site / page.relative_to(DOCS).with_suffix(".html"))).counts
        there = Page(pages.READER.render(page.read_text(encoding="utf-8"))).counts
        if here != there:
            different[pages.named(page)] = (here - there, there - here)
    assert different == {}


def test_nothing_is_loaded_from_another_server(site: Path) -> None:
    loaded = {each for file in site.rglob("*.html") for each in Page(file.read_text(encoding="utf-8")).loaded}
    assert {each for each in loaded if "//" in each} == set()


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        pytest.param("plugin", ["pods_with", "per_node", "Clusters", "keep pods with the label disk=ssd"], id="plugins"),
        pytest.param("testing", ["World", "check_plugin", "EmbeddedCluster"], id="testing"),
        pytest.param("scores", ["Score", "publish"], id="scores"),
        pytest.param("simulation", ["cluster_from", "stream_from_scenario"], id="simulation"),
        pytest.param("commands", ["score-agent", "--fail-if", "--drain", "--leader-elect"], id="commands"),
        pytest.param("configuration", ["leaseDuration", "FlavourClusterWide", "minCandidateNodesAbsolute"], id="config"),
        pytest.param("metrics", ["scheduler_pending_pods", "stowplan_shadow_decisions_total", "queue"], id="metrics"),
    ],
)
def test_the_reference_has_what_the_code_has(site: Path, page: str, expected: list[str]) -> None:
    text = article(site / "reference" / f"{page}.html").lower()
    assert [each for each in expected if each.lower() not in text] == []


# -- hooks


def test_links_out_of_the_pages_go_to_the_repository() -> None:
    text = "[a](../deploy/) [b](../../README.md#x) [c](../running.md) ![d](x.png)"
    found = hooks.with_links(text, PurePosixPath("docs/policies"), ROOT, REPOSITORY)
    expected = f"[a](../deploy/) [b]({REPOSITORY}/blob/main/README.md#x) [c](../running.md) ![d](x.png)"
    assert found == expected
    assert hooks.with_links("[a](../deploy/)", PurePosixPath("docs"), ROOT, REPOSITORY) == (
        f"[a]({REPOSITORY}/tree/main/deploy)"
    )


def test_a_link_out_of_the_repository_is_an_error() -> None:
    with pytest.raises(ValueError, match="docs: the link ../../../x leads out of the repository"):
        hooks.with_links("[a](../../../x)", PurePosixPath("docs"), ROOT, REPOSITORY)


def test_pages_that_are_not_there_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.md").touch()
    nav = [{"A": "a.md"}, {"B": "b.md"}, {"C": [{"D": "d.md"}]}, {"E": [{"A": "a.md"}]}]
    config = {"nav": nav, "docs_dir": str(tmp_path)}
    assert hooks.on_config(config)["nav"] == [{"A": "a.md"}, {"E": [{"A": "a.md"}]}]


def test_an_unknown_mark_is_an_error() -> None:
    with pytest.raises(KeyError):
        hooks.with_generated("<!-- generated: nothing -->")


def test_the_repository_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["urls"]["Documentation"] == REPOSITORY
    assert f"repo_url: {REPOSITORY} " in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
