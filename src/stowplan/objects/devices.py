"""Device classes: only enough to tell that an extended resource is handed out through claims."""

from __future__ import annotations

import msgspec

from stowplan.objects.meta import Object

IMPLICIT = "deviceclass.resource.kubernetes.io/"  # with a class's name: the extended resource it always stands for


class DeviceClassSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    extended_resource_name: str | None = None


class DeviceClass(Object, frozen=True, rename="camel", omit_defaults=True):
    spec: DeviceClassSpec = DeviceClassSpec()
