"""Names, labels and annotations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import StatusCause, invalid_value, required
from stowplan.embedded.resources import ServedResource
from stowplan.objects.selectors import is_label_key

_LABEL, _SUBDOMAIN = "[a-z0-9]([-a-z0-9]*[a-z0-9])?", "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_SERVICE = "[a-z]([-a-z0-9]*[a-z0-9])?"
_VALUE = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_AS_LABEL = ("namespaces",)
_AS_SERVICE = ("services",)
_AS_PATH = tuple(
    f"{plural}.rbac.authorization.k8s.io" for plural in ("roles", "clusterroles", "rolebindings", "clusterrolebindings")
)
_ANNOTATIONS_LIMIT = 256 * 1024

_NAMES = {
    _SUBDOMAIN: (
        253, "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must"
        " start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is",
    ),
    _LABEL: (
        63, "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and"
        " end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is",
    ),
    _SERVICE: (
        63, "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic"
        " character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for"
        " validation is",
    ),
}  # fmt: skip


def check(resource: ServedResource, document: Document) -> Iterator[StatusCause]:
    found = document["metadata"]
    name = found.get("name", "")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    elif resource.collection in _AS_PATH:
        yield from check_path_segment("metadata.name", name)
    else:
        form = _LABEL if resource.collection in _AS_LABEL else _SUBDOMAIN
        form = _SERVICE if resource.collection in _AS_SERVICE else form
        yield from check_name("metadata.name", name, form)
    yield from check_labels("metadata.labels", found.get("labels", {}))
    yield from _annotations(found.get("annotations", {}))
    yield from _owners(found.get("ownerReferences", ()))


def check_name(field: str, name: str, form: str = _SUBDOMAIN) -> Iterator[StatusCause]:
    longest, sentence = _NAMES[form]
    if len(name) > longest:
        yield invalid_value(field, name, f"must be no more than {longest} bytes")
    if not re.fullmatch(form, name):
        yield invalid_value(field, name, f"{sentence} '{form}')")


def check_dns_label(field: str, name: str) -> Iterator[StatusCause]:
    yield from check_name(field, name, _LABEL)


@lru_cache(maxsize=4096)  # most labels are those of many objects
def _matches(form: str, text: str) -> bool:
    return re.fullmatch(form, text) is not None


def check_path_segment(field: str, name: str) -> Iterator[StatusCause]:
    """A name that may have any characters, as long as it can be a part of a path."""
    if name in (".", ".."):
        yield invalid_value(field, name, f"may not be '{name}'")
    for letter in "/%":
        if letter in name:
            yield invalid_value(field, name, f"may not contain '{letter}'")


def check_labels(field: str, labels: Document) -> Iterator[StatusCause]:
    for key, value in labels.items():
        yield from check_label_key(field, key)
        yield from check_label_value(field, value)


def check_label_key(field: str, key: str) -> Iterator[StatusCause]:
    if not is_label_key(key):
        yield invalid_value(field, key, _key_problem(key))


def check_label_value(field: str, value: str) -> Iterator[StatusCause]:
    if len(value) > 63:
        yield invalid_value(field, value, "must be no more than 63 bytes")
    if not _matches(_VALUE, value):
        yield invalid_value(
            field, value,
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must"
            " start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used"
            f" for validation is '{_VALUE}')",
        )  # fmt: skip


def _key_problem(key: str) -> str:
    name = key.rpartition("/")[2]
    if len(name) > 63:
        return "name part must be no more than 63 bytes"
    if re.fullmatch(_KEY, name):
        return "prefix part " + _NAMES[_SUBDOMAIN][1] + f" '{_SUBDOMAIN}')"
    return (
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
        f" alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_KEY}')"
    )


def _annotations(annotations: Document) -> Iterator[StatusCause]:
    for key in annotations:
        if not is_label_key(key.lower()):
            yield invalid_value("metadata.annotations", key, _key_problem(key))
    size = sum(len(key) + len(value) for key, value in annotations.items())
    if size > _ANNOTATIONS_LIMIT:
        message = f"Too long: may not be more than {_ANNOTATIONS_LIMIT} bytes"
        yield StatusCause("metadata.annotations", message, "FieldValueTooLong")


def _owners(owners: list[Document]) -> Iterator[StatusCause]:
    for index, owner in enumerate(owners):
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                yield invalid_value(f"metadata.ownerReferences[{index}].{name}", "", f"{name} must not be empty")
    if sum(bool(owner.get("controller")) for owner in owners) > 1:
        why = "Only one reference can have Controller set to true."
        yield invalid_value("metadata.ownerReferences", "", why)
