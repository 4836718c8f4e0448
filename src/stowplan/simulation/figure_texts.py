"""Values of figures as people read them: 1m5s, 70.3%, 12h, 1,234; changes have a sign, those of parts are in points."""

from __future__ import annotations

from stowplan.simulation import durations
from stowplan.simulation.figure_names import FigureUnit


def shown_value(value: float, unit: FigureUnit, *, change: bool = False) -> str:
    """Return a value for people; `change`: with its sign."""
    sign = "-" if value < 0 else "+" if change and value > 0 else ""
    amount = abs(value)
    if unit is FigureUnit.SECONDS:
        return sign + durations.shown(amount)
    if unit is FigureUnit.PART:
        return f"{sign}{100 * amount:.1f}{'pp' if change else '%'}"
    text = f"{amount:,.0f}" if amount == round(amount) or amount >= 1000 else f"{amount:,.4g}"
    return f"{sign}{text}{'h' if unit is FigureUnit.HOURS else ''}"
