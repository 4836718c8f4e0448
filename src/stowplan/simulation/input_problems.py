"""What is wrong with the input of a simulation: each problem is named and counted, then refused or skipped.

    problems = InputProblems()             # or InputProblems(skip=True)
    problems.add(ConfigError("…", file="trace.csv", path="line 7"))
    problems.check()                       # raises a ConfigError that names the first ones and counts all

Readers add a problem and go on with the next entry, so one run names all that must be corrected. Nothing is left out
silently: whoever skips has the texts in `named`, and the number in `count`.
"""

from __future__ import annotations

from stowplan.objects.errors import ConfigError

MOST_NAMED = 20
REMEDY = "correct them, or leave them out with --skip-invalid"


class InputProblems:
    """Problems of entries. With `skip` an entry that cannot be used is left out; without it, `check` refuses all.

    problems = InputProblems(skip=True)
    stream = stream_from_csv(text, Templates(), problems)
    problems.count, problems.named
    """

    def __init__(self, *, skip: bool = False) -> None:
        self.skip, self.count = skip, 0
        self.named: list[str] = []  # the texts of the first ones

    def add(self, error: ConfigError) -> None:
        """Note an entry that cannot be used."""
        self.count += 1
        if len(self.named) < MOST_NAMED:
            self.named.append(str(error))

    def check(self) -> None:
        """Raise ConfigError if there are problems, unless they are skipped."""
        if self.skip or not self.count:
            return
        if self.count == 1:
            raise ConfigError(self.named[0], remedy="correct it, or leave it out with --skip-invalid")
        more = self.count - len(self.named)
        named = (*self.named, *((f"and {more:,} more",) if more else ()))
        listed = "\n".join(f"  {each}" for each in named)
        raise ConfigError(f"{self.count:,} entries cannot be used; {REMEDY}:\n{listed}")
