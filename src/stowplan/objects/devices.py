"""Device classes: which devices belong to a class, and for which extended resource it stands."""

from __future__ import annotations

from typing import Any

from stowplan.objects.meta import ApiValue, Object

IMPLICIT = "deviceclass.resource.kubernetes.io/"  # and a class's name: its implicit extended resource


class CelDeviceSelector(ApiValue, frozen=True):
    expression: str = ""


class DeviceSelector(ApiValue, frozen=True):
    cel: CelDeviceSelector | None = None


class OpaqueConfiguration(ApiValue, frozen=True):
    """Parameters for a driver, which nobody else reads."""

    driver: str = ""
    parameters: Any = None


class ClassConfiguration(ApiValue, frozen=True):
    opaque: OpaqueConfiguration | None = None


class DeviceClassSpec(ApiValue, frozen=True):
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[ClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Object, frozen=True):
    spec: DeviceClassSpec = DeviceClassSpec()
