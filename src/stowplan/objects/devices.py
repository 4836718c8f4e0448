"""Device classes: only enough to tell that an extended resource is handed out through claims."""

from __future__ import annotations

from stowplan.objects.meta import ApiValue, Object

IMPLICIT = "deviceclass.resource.kubernetes.io/"  # with a class's name: the extended resource it always stands for


class DeviceClassSpec(ApiValue, frozen=True):
    extended_resource_name: str | None = None


class DeviceClass(Object, frozen=True):
    spec: DeviceClassSpec = DeviceClassSpec()
