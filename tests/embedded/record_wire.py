"""Reads from Kubernetes' Go types how their fields travel in protobuf, and writes
`src/stowplan/embedded/http/protobuf_fields.json`.

    python -m tests.embedded.record_wire      (needs Go, and the modules that the control plane is built from)

kubectl sends protobuf when it creates built-in kinds by command. One line per type; a field is "number: name
type"; "*" before the type: may be missing, so that its zero means something; "+": its fields belong to the type
around it.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from tests.controlplane import build
from tests.embedded.record_schema import SERVED

TARGET = Path(__file__).parents[2] / "src" / "stowplan" / "embedded" / "http" / "protobuf_fields.json"
PLACES = {
    **{f"{group}.v1": f"api/{group}/v1" for group in (
        "core", "apps", "authentication", "authorization", "autoscaling", "batch", "coordination", "discovery",
        "events", "networking", "policy", "rbac", "resource", "scheduling", "storage",
    )},
    "autoscaling.v2": "api/autoscaling/v2",
    "meta.v1": "apimachinery/pkg/apis/meta/v1",
}  # fmt: skip
IMPORTED = {"v1": "core.v1", "apiv1": "core.v1", "metav1": "meta.v1", "corev1": "core.v1"}
PLAIN = {
    "string": "string", "bool": "boolean", "int32": "int32", "int64": "int64", "int": "int64", "float64": "number",
    "[]byte": "bytes", "resource.Quantity": "quantity", "intstr.IntOrString": "int|string", "metav1.Time": "time",
    "metav1.MicroTime": "microtime", "metav1.Duration": "duration", "runtime.RawExtension": "raw",
    "types.UID": "string", "Time": "time",
    "MicroTime": "microtime", "FieldsV1": "raw", "*FieldsV1": "raw", "types.NodeName": "string",
}  # fmt: skip
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
ALIAS = re.compile(r"^type (\w+) (string|int32|int64|map\[.*|\[\].*)$", re.MULTILINE)
FIELD = re.compile(r'^\s+(?:\w+\s+)?([\w.*\[\]]+)\s+`json:"([^"]*)"\s.*?protobuf:"\w+,(\d+),', re.MULTILINE)


class Reader:
    def __init__(self, modules: Path, version: str) -> None:
        self._structs: dict[str, str] = {}
        self._aliases: dict[str, str] = {}
        for package, place in PLACES.items():
            module, _, folder = place.partition("/")
            for file in (modules / f"{module}@{version}" / folder).glob("*.go"):
                text = file.read_text()
                self._structs |= {f"{package}.{name}": body for name, body in STRUCT.findall(text)}
                self._aliases |= {f"{package}.{name}": meaning for name, meaning in ALIAS.findall(text)}
        self.types: dict[str, dict[str, str]] = {}

    def read(self, name: str) -> None:
        if name in self.types or name not in self._structs:
            return
        self.types[name] = {}
        package = name.rsplit(".", 1)[0]
        for go, tag, number in FIELD.findall(self._structs[name]):
            json_name, _, flags = tag.partition(",")
            kind = self._kind(go.lstrip("*"), package)
            inline = "+" if "inline" in flags and not json_name else "*" if go.startswith("*") else ""
            self.types[name][number] = f"{json_name} {inline}{kind}"

    def _kind(self, go: str, package: str) -> str:
        if go in PLAIN:
            return PLAIN[go]
        if go.startswith("[]"):
            return "[]" + self._kind(go[2:], package)
        if go.startswith("map["):
            return "{}" + self._kind(go.partition("]")[2], package)
        prefix, _, name = go.rpartition(".")
        here = IMPORTED.get(prefix, package) if prefix else package
        full = f"{here}.{name}"
        if full in self._aliases:
            return self._kind(self._aliases[full].split(" //")[0].strip(), here)
        self.read(full)
        return full


def main() -> None:
    modules = Path(subprocess.check_output(["go", "env", "GOMODCACHE"], text=True).strip()) / "k8s.io"
    reader = Reader(modules, "v0." + build.MAIN.split(".", 1)[1])
    for version, kinds in SERVED.items():
        group, _, number = version.rpartition("/")
        for kind in kinds.split():
            reader.read(f"{group.split('.')[0] or 'core'}.{number}.{kind}")
    reader.read("meta.v1.DeleteOptions")
    lines = [f" {json.dumps(name)}: {json.dumps(fields)}" for name, fields in sorted(reader.types.items()) if fields]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
