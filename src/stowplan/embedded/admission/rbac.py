"""RoleBindings and ClusterRoleBindings: the API group of the role and of each subject."""

from __future__ import annotations

from stowplan.embedded.documents import Document

_GROUP = "rbac.authorization.k8s.io"


def binding(document: Document) -> None:
    if not document["roleRef"].get("apiGroup"):
        document["roleRef"]["apiGroup"] = _GROUP
    for subject in document.get("subjects", ()):
        if subject["kind"] in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = _GROUP
