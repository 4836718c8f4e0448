"""The commands: `make image` calls `build`, `make image-lock` calls `lock`; `--help` lists them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from deploy.image import build, layout, renewal
from deploy.image.fetching import FetchError
from deploy.image.locks import LockError
from deploy.image.selection import ARCHITECTURES

OUT = Path("build") / "image"
EPILOGUE = """Packages of Debian come from the mirrors of apt's sources, or from those in
STOWPLAN_DEBIAN_MIRRORS; wheels from pip's index. SOURCE_DATE_EPOCH sets the time of all files (default: the date of the
lock)."""


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (FetchError, LockError, build.BuildError) as error:
        sys.stderr.write(f"image: {error}\n")
        return 1


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser("python -m deploy.image", description="Build Stowplan's image.", epilog=EPILOGUE)
    commands = whole.add_subparsers(required=True, metavar="COMMAND")

    one = commands.add_parser("build", help="write the image as an OCI layout, and as one tar file")
    one.add_argument("--out", type=Path, default=OUT, metavar="FOLDER", help=f"where to write (default: {OUT})")
    one.add_argument("--arch", action="append", choices=ARCHITECTURES, help="only this architecture; can be repeated")
    plugins_option(one)
    one.set_defaults(run=built)

    two = commands.add_parser("rootfs", help="write the files of the image into a folder")
    two.add_argument("folder", type=Path, metavar="FOLDER", help="a folder that is empty or does not exist yet")
    two.add_argument("--arch", choices=ARCHITECTURES, help="(default: that of this machine)")
    plugins_option(two)
    two.set_defaults(run=rootfs)

    three = commands.add_parser("lock", help="take the versions and hashes of today (needs apt, and Python 3.11)")
    three.add_argument(
        "--check", action="store_true", help="only say what would change; the exit code is 1 if anything"
    )
    three.set_defaults(run=locked)
    return whole


def plugins_option(command: argparse.ArgumentParser) -> None:
    text = "also install this wheel, with plugins; what it needs has to be in the image or in another such wheel"
    command.add_argument("--plugin", action="append", type=Path, default=[], metavar="WHEEL", help=text)


def built(options: argparse.Namespace) -> int:
    done = build.image(options.out, options.arch or ARCHITECTURES, options.plugin, say)
    for architecture, size in done.sizes.items():
        say(f"{architecture}: {size / 1e6:.1f} MB compressed (at most {build.LARGEST / 1e6:.0f} MB)")
    say(f"{done.folder} and {done.archive.name}: {done.digest}")
    return 0


def rootfs(options: argparse.Namespace) -> int:
    folder: Path = options.folder
    architecture = options.arch or build.machine()
    if folder.exists() and any(folder.iterdir()):
        sys.stderr.write(f"image: {folder} is not empty\n")
        return 2
    with build.scratch() as out:
        done = build.image(out, [architecture], options.plugin, say)
        folder.mkdir(parents=True, exist_ok=True)
        layout.files(done.folder, architecture).write(folder)
    return 0


def locked(options: argparse.Namespace) -> int:
    texts = renewal.renewed()
    changes = renewal.changes(texts)
    for line in changes:
        say(line)
    if options.check:
        return 1 if changes else 0
    for file, text in texts.items():
        file.write_text(text, encoding="utf-8")
    return 0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
