"""A plugin's arguments are checked by the annotations of its constructor; errors name the place and what is right."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import msgspec
import pytest

from stowplan.framework.config.constructor_types import converted
from stowplan.framework.registry import Registry
from stowplan.objects.errors import ConfigError


class Team(msgspec.Struct):
    team_name: str
    most_pods: int = 10


@dataclass
class Budget:
    by_team: list[Team]
    hard: bool = False


class Mode(enum.Enum):
    FAST = "fast"
    SLOW = "slow"


class Typed:
    def __init__(  # type: ignore[no-untyped-def]
        self,
        number: int = 0,
        ratio: float = 0.0,
        text: str = "",
        yes: bool = False,
        names: Sequence[str] = (),
        limits: Mapping[str, int] | None = None,
        mode: Literal["min", "max"] = "min",
        pace: Mode = Mode.FAST,
        maybe: Optional[int] = None,  # noqa: UP045  an older spelling that authors use
        either: int | str = 0,
        team: Team | None = None,
        budget: Budget | None = None,
        teams: dict[str, Team] | None = None,
        percent: Annotated[int, msgspec.Meta(ge=0, le=100)] = 0,
        anything: Any = None,
        bare=None,
        path: Path = Path(),
        call: Callable[[], int] | None = None,
        missing: NoSuchName = None,  # type: ignore[name-defined]  # noqa: F821
        **more: int,
    ) -> None:
        raise AssertionError("arguments are checked before the constructor runs")


WHERE = "profiles[0].pluginConfig[name=Typed].args"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        pytest.param({"number": 5, "text": "a", "yes": True}, {"number": 5, "text": "a", "yes": True}, id="simple"),
        pytest.param({"ratio": 2}, {"ratio": 2.0}, id="an integer for a float"),
        pytest.param({"names": ["a"], "limits": {"a": 1}}, {"names": ["a"], "limits": {"a": 1}}, id="containers"),
        pytest.param({"mode": "max", "pace": "slow"}, {"mode": "max", "pace": Mode.SLOW}, id="choices"),
        pytest.param({"maybe": None, "either": "x"}, {"maybe": None, "either": "x"}, id="unions"),
        pytest.param({"team": {"teamName": "a", "mostPods": 3}}, {"team": Team("a", 3)}, id="camelCase in a Struct"),
        pytest.param({"team": {"team_name": "a"}}, {"team": Team("a")}, id="snake_case in a Struct"),
        pytest.param(
            {"budget": {"byTeam": [{"teamName": "a"}]}}, {"budget": Budget([Team("a")])}, id="a dataclass of Structs"
        ),
        pytest.param({"teams": {"blueTeam": {"teamName": "a"}}}, {"teams": {"blueTeam": Team("a")}}, id="free keys"),
        pytest.param({"anything": [1], "bare": "x"}, {"anything": [1], "bare": "x"}, id="no type"),
        pytest.param({"path": "/etc", "call": 5}, {"path": "/etc", "call": 5}, id="a type that files cannot have"),
        pytest.param({"missing": 5}, {"missing": 5}, id="an annotation that cannot be resolved"),
        pytest.param({"other": "x"}, {"other": "x"}, id="a parameter that takes anything"),
    ],
)
def test_what_fits(args: dict[str, Any], expected: dict[str, Any]) -> None:
    assert converted(Typed, args, WHERE) == expected


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        pytest.param({"number": "ten"}, '.number: found "ten", expected an integer', id="a text for an int"),
        pytest.param(
            {"number": "10"}, '.number: found "10", expected an integer; write it without quotes', id="quoted"
        ),
        pytest.param({"number": True}, ".number: found true, expected an integer", id="a bool for an int"),
        pytest.param({"number": 2.5}, ".number: found 2.5, expected an integer", id="a float for an int"),
        pytest.param({"number": None}, ".number: found null, expected an integer", id="nothing for an int"),
        pytest.param({"yes": "yes"}, '.yes: found "yes", expected true or false', id="a text for a bool"),
        pytest.param({"yes": 1}, ".yes: found 1, expected true or false", id="a number for a bool"),
        pytest.param({"text": True}, ".text: found true, expected a string; YAML reads", id="a bool for a text"),
        pytest.param({"names": "a"}, '.names: found "a", expected a list', id="a text is no list"),
        pytest.param({"names": ["a", 5]}, ".names[1]: found 5, expected a string", id="inside a list"),
        pytest.param({"limits": {"a": "x"}}, '.limits.a: found "x", expected an integer', id="inside a mapping"),
        pytest.param({"mode": "mean"}, '.mode: found "mean", expected one of "max", "min"', id="a Literal"),
        pytest.param({"pace": "idle"}, '.pace: found "idle", expected one of "fast", "slow"', id="an enum"),
        pytest.param({"maybe": "x"}, '.maybe: found "x", expected an integer', id="an Optional"),
        pytest.param({"either": []}, ".either: found a list, expected an integer or a string", id="a union"),
        pytest.param(
            {"team": {"teamName": 5}}, ".team.teamName: found 5, expected a string", id="a field, as the file spells it"
        ),
        pytest.param({"team": {"teamNme": "a"}}, '.team.teamNme: unknown field; did you mean "teamName"?', id="a slip"),
        pytest.param({"team": {}}, '.team: "teamName" is missing', id="a field is missing"),
        pytest.param({"team": {"teamName": "a", "team_name": "b"}}, "is given twice", id="two spellings"),
        pytest.param(
            {"budget": {"byTeam": [{"teamName": "a", "mostPods": "x"}]}},
            '.budget.byTeam[0].mostPods: found "x", expected an integer',
            id="deep inside",
        ),
        pytest.param({"teams": {"a": {"teamName": 1}}}, ".teams.a.teamName: found 1", id="inside a mapping of Structs"),
        pytest.param({"percent": 101}, ".percent: found 101, expected an integer <= 100", id="a bound"),
    ],
)
def test_what_does_not_fit(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        converted(Typed, args, WHERE)
    assert str(caught.value).startswith(WHERE) and problem in str(caught.value)


@dataclass
class AsDataclass:
    most_pods: int = 5

    def score(self, pod: Any, nodes: Any) -> Any:
        return None


class Inherits(AsDataclass):
    pass


class AsStruct(msgspec.Struct):
    most_pods: int = 5

    def score(self, pod: Any, nodes: Any) -> Any:
        return None


class Documented:
    """A subclass's own constructor decides."""

    def __init__(self, most_pods: "int" = 5) -> None:  # noqa: UP037  an annotation in quotes
        self.most_pods = most_pods

    def score(self, pod: Any, nodes: Any) -> Any:
        return None


@pytest.mark.parametrize("plugin", [AsDataclass, Inherits, AsStruct, Documented])
def test_every_way_to_write_a_constructor(plugin: type) -> None:
    registry = Registry({"Mine": plugin})
    assert registry.make("Mine", {"mostPods": 7}).most_pods == 7
    with pytest.raises(ConfigError, match=r"args\.mostPods: found \"x\", expected an integer"):
        registry.make("Mine", {"mostPods": "x"})


class Fixed(msgspec.Struct, tag="fixed"):
    most_pods: int = 0


class Share(msgspec.Struct, tag="share"):
    most_pods: str = ""


class Tagged:
    def __init__(self, limit: Fixed | Share | None = None, limits: list[Fixed | Share] | None = None) -> None: ...


def test_the_tag_tells_which_struct_is_meant() -> None:
    given = {"limits": [{"type": "share", "mostPods": "10%"}, {"type": "fixed", "mostPods": 3}], "limit": None}
    assert converted(Tagged, given, "args") == {"limits": [Share("10%"), Fixed(3)], "limit": None}
    assert converted(Tagged, {"limit": {"type": "share"}}, "args") == {"limit": Share()}


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        pytest.param({"mostPods": 1}, 'args.limit: "type" is missing; choose one of "fixed", "share"', id="no tag"),
        pytest.param(
            {"type": "loose"}, 'args.limit.type: found "loose", expected one of "fixed", "share"', id="another tag"
        ),
        pytest.param(
            {"type": "fixed", "mostPods": "x"}, 'args.limit.mostPods: found "x", expected an integer', id="a field"
        ),
    ],
)
def test_a_wrong_tag_is_named(limit: Any, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        converted(Tagged, {"limit": limit}, "args")
    assert str(error.value) == said
