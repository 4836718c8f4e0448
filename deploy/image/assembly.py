"""Make the image of one architecture from files that are all there: no network, no clock, no name of this machine.

The image's own Python runs this (`__main__` starts it), with a job as JSON on its input. It writes the parts of the
layout, and the bill of materials beside it, and prints what the index says of the image.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from deploy.image import bom, bytecode, checks, contents, layout, licences
from deploy.image.locks import Package


def assemble(job: dict[str, Any]) -> layout.Descriptor:
    architecture, date, out = job["architecture"], job["date"], Path(job["out"])
    packages = [Package(**each) for each in job["packages"]]
    debs = [(each, Path(file).read_bytes()) for each, file in zip(packages, job["files"], strict=True)]
    wheels = {Path(file).name: Path(file).read_bytes() for file in job["wheels"]}
    cache = Path(job["cache"])
    own, launcher = Path(job["stowplan"]).read_bytes(), Path(job["launcher"]).read_bytes()
    plugins = {Path(file).name: Path(file).read_bytes() for file in job["plugins"]}

    base, libraries = contents.distribution(debs), contents.libraries(wheels.values())
    application, added = contents.application(own, launcher), contents.plugins(plugins.values())
    taken = [path for path, _ in added.files() if path in libraries.plus(application).entries]
    application = application.plus(added)
    for tree in (base, libraries, application):
        compiled = bytecode.compiled(contents.modules(tree), cache / "bytecode", job["python"], job["home"])
        for path, data in compiled.items():
            tree.file(bytecode.place(path), data)
    text = bom.document(packages, wheels | plugins, own, base, date)
    application.file(bom.PLACE, text)

    whole = base.plus(libraries, application)
    wrong = [f"{path}: is in a plugin's wheel, and in the image already" for path in taken]
    wrong += checks.complaints(whole, architecture)
    wrong += licences.missing([each.name for each in packages], whole, licences.projects(added))
    if wrong:
        sys.exit("\n".join([f"the image for {architecture} is not right:", *(f"  {each}" for each in wrong)]))
    Path(job["bom"]).write_text(text, encoding="utf-8")
    layers = [
        layout.layer(base, date, "Python and libraries of Debian", cache / "layers"),
        layout.layer(libraries, date, "libraries of Stowplan", cache / "layers"),
        layout.layer(application, date, "Stowplan", cache / "layers"),
    ]
    return layout.manifest(layers, architecture, job["version"], date, out)


if __name__ == "__main__":
    json.dump(assemble(json.load(sys.stdin)), sys.stdout)
