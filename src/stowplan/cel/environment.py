"""An environment: the variables and functions that an expression may name, beside those of every environment.

Google's library (cel-cpp) parses and checks expressions. Of the libraries there are, only this one checks types, and
type errors must be found before an expression runs (Kubernetes refuses `"a" + 1` and `semver(x, true)`). It also knows
optional fields (`a.?b`, `a[?b]`) and returns the checked syntax tree. cel-python and common-expression-language do not
check types, the latter returns no tree, and none of the three can count what an evaluation costs. So the tree is
evaluated here (`evaluation`), with cel-go's own measure of cost.

The library refuses expressions that are nested too deeply, but it expands `a.optMap(…)` with two copies of `a` before
it counts: a chain of twenty would take a gigabyte. So these are counted here, before anything is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from stowplan.cel import declarations, evaluation, syntax
from stowplan.cel.declarations import DECLARATIONS
from stowplan.cel.functions import Function
from stowplan.cel.syntax import CelSyntaxError, SyntaxNode

if TYPE_CHECKING:
    from cel_expr_python import cel

LONGEST = 16384  # characters
LONGEST_EXPANDED = 1 << 16  # characters, if each macro with two copies doubles the expression
_COPYING_MACROS = re.compile(r"\b(?:optMap|optFlatMap)\b")


@dataclass(frozen=True, slots=True)
class CelProgram:
    """A checked expression that can be run."""

    tree: SyntaxNode
    run: evaluation.Run


@dataclass(frozen=True)
class Environment:
    """`variables`: names and types, such as `map<string, dyn>`. `binds`: expressions may use `cel.bind`."""

    variables: Mapping[str, str]
    functions: Mapping[str, Function] = field(default_factory=dict)
    binds: bool = False

    def compile(self, expression: str) -> CelProgram:
        """Check an expression. Raise CelSyntaxError if it does not parse, or a name or a type is wrong."""
        if len(expression) > LONGEST:
            raise CelSyntaxError(f"an expression of {len(expression)} characters is too long; {LONGEST} are the most")
        copying = len(_COPYING_MACROS.findall(expression))
        if len(expression) << min(copying, 64) > LONGEST_EXPANDED:
            raise CelSyntaxError(f"{copying} times optMap or optFlatMap is too often in so long an expression")
        try:
            compiled = self._checker.compile(expression)
        except RuntimeError as error:
            text = str(error).removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
            raise CelSyntaxError(f"compilation failed: {declarations.with_own_types(text)}") from None
        try:
            tree = syntax.decode(compiled.serialize())
            return CelProgram(tree, evaluation.build(tree, self.functions))
        except RecursionError:
            raise CelSyntaxError("an expression with too many levels") from None

    @cached_property
    def _checker(self) -> cel.Env:
        """The library's environment. The library is only loaded when there is an expression."""
        from cel_expr_python import cel
        from cel_expr_python.ext import ext_bindings, ext_optional

        forms = DECLARATIONS | {name: list(each.forms) for name, each in self.functions.items() if each.forms}
        declared = [declarations.function(name, each) for name, each in forms.items()]
        return cel.NewEnv(
            variables={name: declarations.type_(kind) for name, kind in self.variables.items()},
            extensions=[
                cel.CelExtension("kubernetes", declared),
                ext_optional.ExtOptional(),
                *([ext_bindings.ExtBindings()] if self.binds else []),
            ],
        )
