"""CEL, what expressions about clusters may name: the standard, strings, lists, regular expressions, and Kubernetes'
URLs, quantities, addresses, formats and versions; `managedCluster`, its `scores`, and `parseJSON`.

Kubernetes' types have no counterpart that the library would check: it takes a type that it does not know for
"anything". So a sort of map that nobody makes stands for each of them, in the eyes of the checker only.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cel_expr_python import cel

_OPAQUE = {
    "Quantity": "map<uint, list<int>>",
    "Semver": "map<uint, list<string>>",
    "IP": "map<uint, list<bool>>",
    "CIDR": "map<uint, list<bytes>>",
    "URL": "map<uint, list<double>>",
    "Format": "map<uint, list<uint>>",
}
_NUMBERS = ("int", "uint", "double", "google.protobuf.Duration")
_ORDERED = (*_NUMBERS, "bool", "google.protobuf.Timestamp", "string", "bytes")
_FORMATS = (
    *("dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "dns1123LabelPrefix", "labelValue"),
    *("dns1123SubdomainPrefix", "dns1035LabelPrefix", "uri", "uuid", "byte", "date", "datetime"),
)

# function: its forms, each "what stands before the dot . arguments -> result" ("" before the dot: no member).
_FORMS: dict[str, list[tuple[str, tuple[str, ...], str]]] = {
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
    "sign": [("Quantity", (), "int")],
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
    **{f"format.{name}": [("", (), "Format")] for name in _FORMATS},
    "validate": [("Format", ("string",), "optional_type<list<string>>")],
    "scores": [("dyn", ("string",), "list<dyn>")],
    "parseJSON": [("string", (), "dyn")],
}
FORMATS = _FORMATS


def constant(form: int, value: Any) -> Any:
    """What a constant of the tree stands for."""
    match form:
        case 2:
            return bool(value)
        case 3:
            return value - (1 << 64) if value >> 63 else value
        case 4:
            return UInt(value)
        case 5:
            return struct.unpack("<d", value)[0]
        case 6:
            return value.decode()
        case 7:
            return bytes(value)
        case _:
            return None


def in_our_words(text: str) -> str:
    """What the library says about stand-ins is meant of what they stand for."""
    for ours, stand_in in _OPAQUE.items():
        text = text.replace(stand_in.replace("<", "(").replace(">", ")"), ours)
    return text


class UInt(int):
    """An unsigned integer, which is of another type than an integer."""


@cache
def checker() -> cel.Env:
    """What expressions are checked against. The library is only loaded when there is an expression."""
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_optional

    extension = cel.CelExtension("kubernetes", [_declared(name, forms) for name, forms in _FORMS.items()])
    variables = {"managedCluster": cel.Type.Map(cel.Type.STRING, cel.Type.DYN)}
    return cel.NewEnv(variables=variables, extensions=[extension, ext_optional.ExtOptional()])


@cache
def plain() -> cel.Env:
    """Where single functions of the standard are run."""
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_strings

    variables = {f"a{index}": cel.Type.DYN for index in range(5)}
    return cel.NewEnv(variables=variables, extensions=[ext_strings.ExtStrings()])


def _declared(name: str, forms: list[tuple[str, tuple[str, ...], str]]) -> cel.FunctionDecl:
    from cel_expr_python import cel

    overloads = [
        cel.Overload(
            id=f"{name}_{index}",
            return_type=_type(result),
            parameters=[_type(each) for each in ((receiver, *arguments) if receiver else arguments)],
            is_member=bool(receiver),
        )
        for index, (receiver, arguments, result) in enumerate(forms)
    ]
    return cel.FunctionDecl(name, overloads)


def _type(name: str) -> cel.Type:
    from cel_expr_python import cel

    for ours, stand_in in _OPAQUE.items():
        name = name.replace(ours, stand_in)
    return cel.Type(name)
