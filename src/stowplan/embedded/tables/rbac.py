"""RoleBindings and ClusterRoleBindings. (Roles have the columns of a kind without any of its own.)"""

from __future__ import annotations

from stowplan.embedded.documents import Document
from stowplan.embedded.tables.cluster import age
from stowplan.embedded.tables.columns import Row, TablePrinter, columns


def _binding(document: Document, now: float) -> Row:
    role = document["roleRef"]
    row = [document["metadata"]["name"], f"{role['kind']}/{role['name']}", age(document, now)]
    return row + [_subjects(document, kind) for kind in ("User", "Group", "ServiceAccount")]


def _subjects(document: Document, kind: str) -> str:
    found = [each for each in document.get("subjects", ()) if each["kind"] == kind]
    prefixes = [f"{each.get('namespace', '')}/" if kind == "ServiceAccount" else "" for each in found]
    return ", ".join(prefix + each["name"] for prefix, each in zip(prefixes, found, strict=True))


_BINDINGS = TablePrinter(columns("Role", "Age", wide=("Users", "Groups", "ServiceAccounts")), _binding)
PRINTERS = {f"{plural}.rbac.authorization.k8s.io": _BINDINGS for plural in ("rolebindings", "clusterrolebindings")}
