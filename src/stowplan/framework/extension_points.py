"""The extension points of kube-scheduler, and the methods that plugins have there."""

from __future__ import annotations

from stowplan.objects.errors import ConfigError

# Each extension point, in kube-scheduler's spelling, and the method that a plugin has there.
METHODS: dict[str, str] = {
    "preEnqueue": "pre_enqueue",
    "queueSort": "sort_key",
    "preFilter": "pre_filter",
    "filter": "filter",
    "postFilter": "post_filter",
    "preScore": "",
    "score": "score",
    "reserve": "reserve",
    "permit": "permit",
    "preBind": "pre_bind",
    "bind": "bind",
    "postBind": "post_bind",
}

# The methods of plugins that belong to no extension point of kube-scheduler.
ROLES = (
    *("unreserve", "pre_bound", "group_of", "group_key", "slots_of", "siblings", "avoid", "for_extenders"),
    *("needs_free", "filters_by_row", "reconcile", "gauges", "recount", "wakes_on"),
)
CALLED = (*filter(None, METHODS.values()), *ROLES)


def points_of(plugin: type) -> frozenset[str]:
    """Return the points at which a configuration may list this plugin."""
    has = {point for point, method in METHODS.items() if method and callable(getattr(plugin, method, None))}
    further = getattr(plugin, "configurable_at", ())
    if not isinstance(further, tuple | list) or not METHODS.keys() >= set(further):
        known = ", ".join(METHODS)
        raise ConfigError(f"{plugin.__name__}.configurable_at is {further!r}", remedy=f"a tuple of some of {known}")
    return frozenset(has | set(further))
