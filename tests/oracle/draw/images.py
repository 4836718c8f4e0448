"""Image names as pods write them and as nodes report them: with and without tag, digest and a registry's port."""

from __future__ import annotations

from tests.oracle.draw.scenario import Draw, Obj

IMAGES = [
    "nginx", "nginx:latest", "nginx:1.0", "docker.io/library/nginx:1.0", "registry.example.com/web:1.4",
    "registry.example.com:5000/team/api", "registry.example.com:5000/team/api:v2", "gcr.io/p/model:latest",
    "quay.io/x/tool", "Registry.Example.com/Odd:TAG",
    "registry.example.com/db@sha256:" + "1" * 64, "registry.example.com/db:2@sha256:" + "2" * 64,
]  # fmt: skip
ORDINARY_IMAGES = [*IMAGES[4:6], "registry.example.com/app:1"]
MIB = 1024**2


def node_images(d: Draw) -> list[Obj]:
    out = []
    for image in d.some(IMAGES, 1, 6):
        names = [image]
        if ":" not in image.split("/")[-1] and "@" not in image and d.chance(0.8):
            names = [image + ":latest"]
        if d.chance(0.3):
            names.append(image.split(":")[0].split("@")[0] + "@sha256:" + d.one("3", "4") * 64)
        # 23 MiB and 1000 MiB are the bounds between which ImageLocality's score rises
        size = d.one(
            23 * MIB, 1000 * MIB, 5 * 10**9, d.randint(1, 2 * 10**9), d.randint(1, 3 * 10**8), 0, 3 * 1000 * MIB
        )
        out.append({"names": names, "sizeBytes": size})
    return out
