"""A recording of a scheduler: all that came in, the time of it, and what the scheduler did; and its replay.

A recording is a text with one JSON value per line. The first line says what the scheduler was made of. Of the others
each has a change, the result of an action, or a step, with its time:

    {"now": 1.5, "put": {…}, "kind": "Pod"}      {"now": 1.5, "gone": {…}, "kind": "Pod"}
    {"now": 1.6, "result": {…}}                  {"now": 1.6, "step": true}

Where actions followed, the next line has a digest of them, and the bindings: {"did": "…", "bind": [["shop/web", "a"]]}.
The engine has no clock and no random numbers of its own, so the same lines give the same actions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from stowplan.engine.scheduler import Scheduler
from stowplan.framework.profile import Profile
from stowplan.framework.ranking import Draw
from stowplan.objects import kinds
from stowplan.objects.actions import Action, Bind
from stowplan.objects.changes import Gone, Put, Result
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object

Binding = tuple[str, str]
Line = dict[str, Any]


class RecordingHeader(msgspec.Struct, rename="camel", kw_only=True):
    """What the scheduler was made of. `config`: the text of its configuration; None for the default one."""

    stowplan: str
    python: str
    seed: int
    schedulers: tuple[str, ...]
    config: str | None = None
    config_file: str = ""
    config_digest: str = ""
    plugins: dict[str, str] = {}  # where each comes from: its module, and the version of the package
    feature_gates: tuple[str, ...] = ()
    longest_wait: float = 300.0
    clock_began: float = 0.0  # when the clock of all times here showed 0, in seconds since the epoch
    recording: int = 1  # the version of this format


class RecordedScheduler(Scheduler):
    """A scheduler that writes down what comes in, and what it does."""

    def __init__(
        self, write: Callable[[bytes], None], profiles: Mapping[str, Profile], generator: Draw, **options: Any
    ) -> None:
        self._write = write
        super().__init__(profiles, generator, **options)

    def handle(self, change: Put | Gone | Result, now: float) -> list[Action]:
        self._write(_encoded(_line(change, now)))
        return self._did(super().handle(change, now))

    def step(self, now: float) -> list[Action]:
        self._write(_encoded({"now": now, "step": True}))
        return self._did(super().step(now))

    def allow(self, uid: str, plugin: str, now: float) -> list[Action]:
        self._write(_encoded({"now": now, "allow": [uid, plugin]}))
        return self._did(super().allow(uid, plugin, now))

    def reject(self, uid: str, plugin: str, message: str, now: float) -> list[Action]:
        self._write(_encoded({"now": now, "reject": [uid, plugin, message]}))
        return self._did(super().reject(uid, plugin, message, now))

    def plugin_hung(self, uid: str, problem: str, now: float) -> list[Action]:
        self._write(_encoded({"now": now, "hung": [uid, problem]}))
        return self._did(super().plugin_hung(uid, problem, now))

    def step_failed(self, problem: str, now: float) -> list[Action]:
        self._write(_encoded({"now": now, "failed": [problem]}))
        return self._did(super().step_failed(problem, now))

    def adopt(self, profiles: Mapping[str, Profile], now: float, **options: Any) -> None:
        """Another configuration: what follows cannot be replayed with the one that the recording has."""
        self._write(_encoded({"now": now, "end": "another configuration came into force"}))
        super().adopt(profiles, now, **options)

    def _did(self, actions: list[Action]) -> list[Action]:
        if actions:
            self._write(_encoded({"did": _digest(actions), "bind": _bindings(actions)}))
        return actions


@dataclass(frozen=True)
class Difference:
    """The first line at which the replay did something else. `recorded`, `replayed`: the bindings."""

    line: int
    recorded: Sequence[Binding]
    replayed: Sequence[Binding]


@dataclass
class Replay:
    """How far a recording was replayed, and whether the actions were the same. `end`: why the recording ends."""

    bindings: int = 0
    with_actions: int = 0
    lines: int = 0
    until: float = 0.0
    end: str = ""
    difference: Difference | None = None


def header_of(line: bytes) -> RecordingHeader:
    """Return the first line of a recording. Raises ConfigError if it is none."""
    try:
        found = msgspec.json.decode(line, type=RecordingHeader)
    except (msgspec.ValidationError, msgspec.DecodeError):
        raise ConfigError("not a recording", path="line 1", remedy="stowplan run --record writes one") from None
    if found.recording != 1:
        raise ConfigError(f"found a recording of version {found.recording}, expected 1", path="line 1")
    return found


def replay(lines: Iterable[bytes], scheduler: Scheduler, on_line: Callable[[], None] = lambda: None) -> Replay:
    """Give a new scheduler what came in, and compare what it does, until something differs.

    `lines`: those after the first. A last line without an end is ignored: the program may have been killed.
    """
    types: dict[str, type[Object]] = dict(kinds.KINDS)
    for profile in scheduler.profiles.values():
        types |= profile.own_types
    found, actions = Replay(), list[Action]()
    for number, text in enumerate(lines, 2):
        if not text.endswith(b"\n"):
            break
        line, found.lines = _read(text, number), number
        on_line()
        if "end" in line:
            found.end = line["end"]
            break
        if "did" in line:
            _compare(found, line, actions, number)
        elif actions:
            found.difference = Difference(number - 1, (), _bindings(actions))
        if found.difference is not None:
            break
        actions = [] if "did" in line else _done(scheduler, line, types, number)
        found.until = line.get("now", found.until)
    return found


def _compare(found: Replay, line: Line, actions: Sequence[Action], number: int) -> None:
    recorded = [(str(pod), str(node)) for pod, node in line["bind"]]
    if _digest(actions) != line["did"]:
        found.difference = Difference(number, recorded, _bindings(actions))
    else:
        found.bindings += len(recorded)
        found.with_actions += 1


def _done(scheduler: Scheduler, line: Line, types: Mapping[str, type[Object]], number: int) -> list[Action]:
    """Give the scheduler what one line has. What raised when it was recorded raises now, too."""
    now = line["now"]
    try:
        match line:
            case {"step": _}:
                return scheduler.step(now)
            case {"result": result}:
                return scheduler.handle(msgspec.convert(result, Result), now)
            case {"put": put, "kind": kind}:
                return scheduler.handle(Put(_object(types, kind, put)), now)
            case {"gone": gone, "kind": kind}:
                return scheduler.handle(Gone(_object(types, kind, gone)), now)
            case {"allow": [uid, plugin]}:
                return scheduler.allow(uid, plugin, now)
            case {"reject": [uid, plugin, message]}:
                return scheduler.reject(uid, plugin, message, now)
            case {"hung": [uid, problem]}:
                return scheduler.plugin_hung(uid, problem, now)
            case {"failed": [problem]}:
                return scheduler.step_failed(problem, now)
    except ConfigError as error:
        raise ConfigError(str(error), path=f"line {number}") from None
    except Exception:
        return []
    raise ConfigError(f"found {', '.join(line)}, expected a change, a result or a step", path=f"line {number}")


def _object(types: Mapping[str, type[Object]], kind: str, found: Any) -> Object:
    if kind not in types:
        raise ConfigError(f"found the kind {kind}, which no plugin brings", remedy="name its folder with --plugin-path")
    return kinds.decode(types[kind], msgspec.json.encode(found))


def _read(text: bytes, number: int) -> Line:
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        found = None
    if not isinstance(found, dict) or not found.keys() & {"now", "did"}:
        raise ConfigError("found no line of a recording", path=f"line {number}")
    return found


def _line(change: Put | Gone | Result, now: float) -> Line:
    if isinstance(change, Result):
        return {"now": now, "result": change}
    word = "gone" if isinstance(change, Gone) else "put"
    return {"now": now, word: change.object, "kind": type(change.object).__name__}


def _encoded(line: Line) -> bytes:
    return msgspec.json.encode(line, enc_hook=str) + b"\n"


def _digest(actions: Sequence[Action]) -> str:
    text = msgspec.json.encode(actions, enc_hook=str, order="deterministic")
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def _bindings(actions: Iterable[Action]) -> list[Binding]:
    return [(f"{each.pod.namespace}/{each.pod.name}", each.node_name) for each in actions if isinstance(each, Bind)]
