"""When a toleration tolerates a taint."""

from __future__ import annotations

import pytest

from stowplan.objects.taints import Taint, Toleration, has_untolerated

TAINT = Taint("k", "NoSchedule", "v")


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        pytest.param(Toleration("k", "Equal", "v", "NoSchedule"), True, id="all equal"),
        pytest.param(Toleration("k", "", "v", "NoSchedule"), True, id="no operator is Equal"),
        pytest.param(Toleration("k", "Equal", "w", "NoSchedule"), False, id="another value"),
        pytest.param(Toleration("l", "Equal", "v", "NoSchedule"), False, id="another key"),
        pytest.param(Toleration("k", "Equal", "v", "NoExecute"), False, id="another effect"),
        pytest.param(Toleration("k", "Equal", "v", ""), True, id="any effect"),
        pytest.param(Toleration("k", "Exists"), True, id="any value"),
        pytest.param(Toleration("", "Exists"), True, id="anything"),
        pytest.param(Toleration("", "", "v"), True, id="any key with this value"),
        pytest.param(Toleration("", "", ""), False, id="any key with an empty value"),
        pytest.param(Toleration("k", "Gt", "0"), False, id="an operator behind a gate that is off"),
    ],
)
def test_tolerates(toleration: Toleration, tolerates: bool) -> None:
    assert toleration.tolerates(TAINT) == tolerates


@pytest.mark.parametrize(
    ("effects", "out"),
    [
        pytest.param((), False, id="no taint"),
        pytest.param(("PreferNoSchedule",), False, id="a soft one"),
        pytest.param(("NoSchedule",), True, id="a hard one"),
        pytest.param(("PreferNoSchedule", "NoExecute"), True, id="one of two"),
    ],
)
def test_untolerated(effects: tuple[str, ...], out: bool) -> None:
    assert has_untolerated([Taint("k", effect) for effect in effects], [Toleration("other", "Exists")]) == out
