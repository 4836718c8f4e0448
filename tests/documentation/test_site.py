"""`make docs`: the site is built without a warning, needs no other server, and shows what GitHub shows."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath

import click
import pytest
from documentation.command_line import main

from documentation import hooks, public_names
from stowplan.framework.feature_gates import GATES
from stowplan.plugins import BUILT_IN
from stowplan.plugins.clusters import BUILT_IN as CLUSTER_PLUGINS
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
    assert done.returncode == 0 and not done.stdout + done.stderr, done.stdout + done.stderr
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


@pytest.mark.parametrize("module", public_names.MODULES)
def test_every_public_name_is_in_the_reference(site: Path, module: str) -> None:
    text = article(site / "reference" / f"{module}.html")
    public = importlib.import_module(f"stowplan.{module}").__all__
    assert [name for name in public if not re.search(rf"<h\d[^>]*>(?:(?!</h\d).)*\b{name}\b", text, re.DOTALL)] == []


def test_every_command_and_flag_is_in_the_reference(site: Path) -> None:
    text = article(site / "reference" / "commands.html")
    found = list(walk(main, "stowplan"))
    assert len(found) > 25
    assert [name for name, _ in found if f">{name}<" not in text and f" {name}<" not in text] == []
    flags = {flag for _, command in found for each in command.params for flag in each.opts if flag[0] == "-"}
    assert len(flags) > 120
    assert [each for each in flags if each not in text] == []


def walk(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield the command and all below it, with their names."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            below = command.get_command(context, each)
            assert below is not None
            yield from walk(below, each)


def test_every_plugin_and_gate_is_in_the_reference(site: Path) -> None:
    text = article(site / "reference" / "configuration.html")
    expected = [*BUILT_IN, *CLUSTER_PLUGINS, *GATES, "leaseDuration", "minCandidateNodesAbsolute", "urlPrefix"]
    assert [each for each in expected if each not in text] == []
    assert "custom" not in text, "every type is told in words"


def test_every_metric_is_in_the_reference(site: Path) -> None:
    """The name of every metric that the programs make, wherever in the source that is."""
    text = article(site / "reference" / "metrics.html")
    source = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "src" / "stowplan" / "apps").rglob("*.py"))
    made = re.findall(r"\b(?:counter|gauge|histogram|Counter|Gauge|Histogram)\(\s*\"([a-z_]+)\"", source)
    assert len(made) > 40
    assert [each for each in made if each.removesuffix("_total") not in text] == []


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
    with pytest.raises(ValueError, match=r"docs: the link \S+ leads out of the repository"):
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
