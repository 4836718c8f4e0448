"""The bill of materials of an image, as CycloneDX: each part with its version, SHA-256, licence and what it needs.

It holds no random number and no time of its own, so that the same parts give the same document.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from email.parser import HeaderParser
from typing import Any
from urllib.parse import quote

from deploy.image import licences
from deploy.image.archives import metadata_of, record_of
from deploy.image.contents import STATUS
from deploy.image.locks import Package, normal
from deploy.image.selection import RELEASE
from deploy.image.tree import Tree

PLACE = "usr/share/sbom/stowplan.cdx.json"
NAMES = uuid.UUID("5f0f0b0e-4f9a-4c5c-9a56-6a0c31a0a8d1")  # a name space of our own
NEEDED = re.compile(r"[A-Za-z0-9._-]+")


def document(packages: Sequence[Package], wheels: Mapping[str, bytes], own: bytes, tree: Tree, date: int) -> str:
    """Return the text. `wheels`: libraries by the names of their files; `own`: Stowplan's wheel."""
    libraries = [of_wheel(data) for data in wheels.values()]
    main = of_own(own)
    parts = sorted([*(of_package(each, tree) for each in packages), *libraries], key=lambda each: each["bom-ref"])
    content: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(date, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": main,
        },
        "components": [debian(), *parts],
        "dependencies": list(dependencies([*wheels.values(), own], packages, tree)),
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    serial = {"serialNumber": f"urn:uuid:{uuid.uuid5(NAMES, digest)}"}
    return json.dumps({**serial, **content}, indent=1, sort_keys=True) + "\n"


def debian() -> dict[str, Any]:
    return {"type": "operating-system", "bom-ref": "debian", "name": "debian", "version": RELEASE}


def of_package(package: Package, tree: Tree) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": reference(package),
        "name": package.name,
        "version": package.version,
        "purl": reference(package),
        "hashes": [{"alg": "SHA-256", "content": package.sha256}],
        "licenses": [{"license": {"name": each}} for each in licences.of_package(package.name, tree)],
    }


def reference(package: Package) -> str:
    name, version = quote(package.name), quote(package.version)
    return f"pkg:deb/debian/{name}@{version}?arch={package.architecture}&distro=debian-{RELEASE}"


def of_wheel(data: bytes) -> dict[str, Any]:
    metadata = metadata_of(data)
    fields = HeaderParser().parsestr(metadata)
    expression, names = licences.of_project(metadata)
    stated = [{"expression": expression}] if expression else [{"license": {"name": each}} for each in names]
    purl = project_reference(fields["Name"], fields["Version"])
    return {
        "type": "library",
        "bom-ref": purl,
        "name": fields["Name"],
        "version": fields["Version"],
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(data).hexdigest()}],
        **({"licenses": stated} if stated else {}),
    }


def of_own(data: bytes) -> dict[str, Any]:
    """Stowplan itself. Its wheel is packed on the machine that builds, whose compression may differ from another's; so
    not the wheel counts but its RECORD, which has the SHA-256 of each file."""
    record = {"name": "stowplan:record-sha256", "value": hashlib.sha256(record_of(data)).hexdigest()}
    common = {key: value for key, value in of_wheel(data).items() if key != "hashes"}
    return common | {"type": "application", "name": "stowplan", "properties": [record]}


def project_reference(name: str, version: str) -> str:
    return f"pkg:pypi/{normal(name)}@{quote(version)}"


def dependencies(wheels: Iterable[bytes], packages: Sequence[Package], tree: Tree) -> Iterable[dict[str, Any]]:
    """Yield which part needs which, as far as both are in the image."""
    metadata = [HeaderParser().parsestr(metadata_of(each)) for each in wheels]
    projects = {normal(each["Name"]): project_reference(each["Name"], each["Version"]) for each in metadata}
    for each in metadata:
        required = [each for each in each.get_all("Requires-Dist", []) if "extra ==" not in each]
        names = {normal(match[0]) for match in map(NEEDED.match, required) if match}
        yield {"ref": projects[normal(each["Name"])], "dependsOn": sorted(projects[n] for n in names & {*projects})}
    references = {package.name: reference(package) for package in packages}
    for package in packages:
        needed = set(needs((tree.read(f"{STATUS}/{package.name}") or b"").decode())) & {*references}
        yield {"ref": references[package.name], "dependsOn": sorted(references[each] for each in needed)}


def needs(stanza: str) -> list[str]:
    """Return the packages that a package depends on, of alternatives the first."""
    fields = HeaderParser().parsestr(stanza)
    found = []
    for field in ("Pre-Depends", "Depends"):
        for each in (fields.get(field) or "").split(","):
            if each.strip():
                found.append(each.split("|")[0].split("(")[0].strip().partition(":")[0])
    return found
