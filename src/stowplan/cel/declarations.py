"""The functions that every environment declares: strings, lists, regular expressions, and Kubernetes' URLs, quantities,
addresses, formats and versions. The library itself declares the rest of the CEL standard.

The library does not check Kubernetes' types: it takes a type that it does not know for "anything". So each of them is
declared as a type of map that no expression makes, and messages are translated back (`with_own_types`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stowplan.cel.formats import FORMATS

if TYPE_CHECKING:
    from cel_expr_python import cel

Form = tuple[str, tuple[str, ...], str]  # the type before the dot ("" for no member), of the arguments, of the result
_PLACEHOLDERS = {
    "Quantity": "map<uint, list<int>>",
    "Semver": "map<uint, list<string>>",
    "IP": "map<uint, list<bool>>",
    "CIDR": "map<uint, list<bytes>>",
    "URL": "map<uint, list<double>>",
    "Format": "map<uint, list<uint>>",
}
_NUMBERS = ("int", "uint", "double", "google.protobuf.Duration")
_ORDERED = (*_NUMBERS, "bool", "google.protobuf.Timestamp", "string", "bytes")
DECLARATIONS: dict[str, list[Form]] = {
    "charAt": [("string", ("int",), "string")],
    "indexOf": [
        ("string", ("string",), "int"),
        ("string", ("string", "int"), "int"),
        ("list<~A>", ("~A",), "int"),
    ],
    "lastIndexOf": [
        ("string", ("string",), "int"),
        ("string", ("string", "int"), "int"),
        ("list<~A>", ("~A",), "int"),
    ],
    "join": [("list<string>", (), "string"), ("list<string>", ("string",), "string")],
    "lowerAscii": [("string", (), "string")],
    "upperAscii": [("string", (), "string")],
    "trim": [("string", (), "string")],
    "reverse": [("string", (), "string")],
    "strings.quote": [("", ("string",), "string")],
    "format": [("string", ("list<dyn>",), "string")],
    "replace": [("string", ("string", "string"), "string"), ("string", ("string", "string", "int"), "string")],
    "split": [("string", ("string",), "list<string>"), ("string", ("string", "int"), "list<string>")],
    "substring": [("string", ("int",), "string"), ("string", ("int", "int"), "string")],
    "find": [("string", ("string",), "string")],
    "findAll": [("string", ("string",), "list<string>"), ("string", ("string", "int"), "list<string>")],
    "sum": [(f"list<{kind}>", (), kind) for kind in _NUMBERS],
    "min": [(f"list<{kind}>", (), kind) for kind in _ORDERED],
    "max": [(f"list<{kind}>", (), kind) for kind in _ORDERED],
    "isSorted": [(f"list<{kind}>", (), "bool") for kind in _ORDERED],
    "url": [("", ("string",), "URL")],
    "isURL": [("", ("string",), "bool")],
    **{name: [("URL", (), "string")] for name in ("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath")},
    "getQuery": [("URL", (), "map<string, list<string>>")],
    "quantity": [("", ("string",), "Quantity")],
    "isQuantity": [("", ("string",), "bool")],
    "sign": [("", ("Quantity",), "int")],
    "isInteger": [("Quantity", (), "bool")],
    "asInteger": [("Quantity", (), "int")],
    "asApproximateFloat": [("Quantity", (), "double")],
    "add": [("Quantity", ("Quantity",), "Quantity"), ("Quantity", ("int",), "Quantity")],
    "sub": [("Quantity", ("Quantity",), "Quantity"), ("Quantity", ("int",), "Quantity")],
    "isGreaterThan": [("Quantity", ("Quantity",), "bool"), ("Semver", ("Semver",), "bool")],
    "isLessThan": [("Quantity", ("Quantity",), "bool"), ("Semver", ("Semver",), "bool")],
    "compareTo": [("Quantity", ("Quantity",), "int"), ("Semver", ("Semver",), "int")],
    "semver": [("", ("string",), "Semver")],
    "isSemver": [("", ("string",), "bool")],
    **{name: [("Semver", (), "int")] for name in ("major", "minor", "patch")},
    "ip": [("", ("string",), "IP"), ("CIDR", (), "IP")],
    "isIP": [("", ("string",), "bool")],
    "ip.isCanonical": [("", ("string",), "bool")],
    "family": [("IP", (), "int")],
    **{
        name: [("IP", (), "bool")]
        for name in (*("isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast"),)
    },
    "cidr": [("", ("string",), "CIDR")],
    "isCIDR": [("", ("string",), "bool")],
    "containsIP": [("CIDR", ("IP",), "bool"), ("CIDR", ("string",), "bool")],
    "containsCIDR": [("CIDR", ("CIDR",), "bool"), ("CIDR", ("string",), "bool")],
    "masked": [("CIDR", (), "CIDR")],
    "prefixLength": [("CIDR", (), "int")],
    "string": [("", ("IP",), "string"), ("", ("CIDR",), "string")],
    "format.named": [("", ("string",), "optional_type<Format>")],
    **{f"format.{name}": [("", (), "Format")] for name in FORMATS},
    "validate": [("Format", ("string",), "optional_type<list<string>>")],
}


def function(name: str, forms: Sequence[Form]) -> cel.FunctionDecl:
    """Return the declaration of a function."""
    from cel_expr_python import cel

    overloads = [
        cel.Overload(
            id=f"{name}_{index}",
            return_type=type_(result),
            parameters=[type_(each) for each in ((receiver, *arguments) if receiver else arguments)],
            is_member=bool(receiver),
        )
        for index, (receiver, arguments, result) in enumerate(forms)
    ]
    return cel.FunctionDecl(name, overloads)


def type_(name: str) -> cel.Type:
    from cel_expr_python import cel

    for own, placeholder in _PLACEHOLDERS.items():
        name = name.replace(own, placeholder)
    return cel.Type(name)


def with_own_types(message: str) -> str:
    """Return a message of the library with Kubernetes' types instead of their placeholders."""
    for own, placeholder in _PLACEHOLDERS.items():
        message = message.replace(placeholder.replace("<", "(").replace(">", ")"), own)
    return message
