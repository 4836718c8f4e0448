"""Device classes: which extended resources are allocated through resource claims."""

from __future__ import annotations

from stowplan.objects.meta import ApiValue, Object

IMPLICIT = "deviceclass.resource.kubernetes.io/"  # and a class's name: its implicit extended resource


class DeviceClassSpec(ApiValue, frozen=True):
    extended_resource_name: str | None = None


class DeviceClass(Object, frozen=True):
    spec: DeviceClassSpec = DeviceClassSpec()
