"""The kubeconfig of `stowplan up`: it is never somebody else's file."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from stowplan.apps.up import kubeconfig_file
from stowplan.apps.up.command import UpOptions, main
from stowplan.embedded.cluster import Embedded
from stowplan.objects.errors import ConfigError

FOREIGN = "apiVersion: v1\nkind: Config\nclusters: [{name: production, cluster: {server: https://prod.example}}]\n"


def changed(cluster: Embedded, change: Callable[[dict[str, list[dict[str, object]]]], object]) -> str:
    document = yaml.safe_load(cluster.kubeconfig())
    change(document)
    return yaml.safe_dump(document)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(FOREIGN, id="a kubeconfig"),
        pytest.param("not: [yaml", id="no YAML"),
        pytest.param("[]", id="a list"),
        pytest.param(
            changed(Embedded(), lambda it: it["clusters"].append({"name": "production"})), id="ours and another cluster"
        ),
        pytest.param(changed(Embedded(), lambda it: it["users"].append({"name": "me"})), id="ours and another user"),
        pytest.param(changed(Embedded(), lambda it: it.pop("extensions")), id="one without the mark"),
    ],
)
def test_up_does_not_touch_a_file_that_is_not_its_own(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(ConfigError, match="exists, and was not written by stowplan up; give --kubeconfig"):
        asyncio.run(main(UpOptions(kubeconfig=file, scheduler=False), asyncio.Event()))
    assert file.read_text() == text


def test_up_does_not_follow_a_link(tmp_path: Path) -> None:
    file, link = tmp_path / "config", tmp_path / "link"
    file.write_text(Embedded().kubeconfig())
    link.symlink_to(file)
    with pytest.raises(ConfigError, match="not written by"):
        kubeconfig_file.write(link, "text")
    link.unlink()
    link.symlink_to(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="not written by"):
        kubeconfig_file.write(link, "text")


@pytest.mark.parametrize("old", [Embedded().kubeconfig(), "", None], ids=["an old one of ours", "an empty one", "none"])
def test_it_is_written_for_its_owner_alone(tmp_path: Path, old: str | None) -> None:
    cluster, file = Embedded(), tmp_path / "config"
    if old is not None:
        file.write_text(old)
        file.chmod(0o644)
    kubeconfig_file.write(file, cluster.kubeconfig())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert kubeconfig_file.identity(file) == cluster.id
    assert [each.name for each in tmp_path.iterdir()] == ["config"]


def test_it_is_deleted_if_it_is_still_the_one_that_was_written(tmp_path: Path) -> None:
    cluster, other, file = Embedded(), Embedded(), tmp_path / "config"
    kubeconfig_file.write(file, other.kubeconfig())
    kubeconfig_file.delete(file, cluster.id)
    assert file.exists(), "it is another cluster's"
    file.write_text(FOREIGN)
    kubeconfig_file.delete(file, cluster.id)
    assert file.read_text() == FOREIGN
    file.write_text(cluster.kubeconfig())
    kubeconfig_file.delete(file, cluster.id)
    assert not file.exists()
    kubeconfig_file.delete(file, cluster.id)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written: No such file"):
        kubeconfig_file.write(tmp_path / "none" / "config", "text")
