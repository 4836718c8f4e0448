"""CEL about devices: expressions of classes and requests, most of them sound, some that fail for some devices."""

from __future__ import annotations

from tests.oracle.draw.devices import MEMORIES, MODELS, VERSIONS
from tests.oracle.draw.scenario import Draw, Obj

GPU, NIC = 'device.attributes["gpu.example.com"]', 'device.attributes["nic.example.org"]'
FPGA, MEMORY = 'device.attributes["fpga.vendor.io"]', 'device.capacity["gpu.example.com"].memory'
COMPARED = ("<", "<=", ">", ">=", "==", "!=")


def cel(expression: str) -> Obj:
    return {"cel": {"expression": expression}}


def selectors(d: Draw, driver: str, failing: float = 0.02) -> list[Obj]:
    return [cel(expression(d, driver, failing)) for _ in range(d.one(0, 0, 1, 1, 2))]


def expression(d: Draw, driver: str, failing: float) -> str:
    if d.chance(failing):
        return may_fail(d, driver)
    if driver == "nic.example.org":
        return of_nic(d)
    return of_gpu(d) if driver == "gpu.example.com" else f"{FPGA}.slot {d.choice(COMPARED)} {d.randint(0, 3)}"


def of_nic(d: Draw) -> str:
    return d.text(
        f"{NIC}.speed >= {d.one(10, 25, 100)}", f"{NIC}.rdma", f'{NIC}.vendor == "{d.one("intel", "mellanox")}"',
        f'{NIC}.firmware.isLessThan(semver("{d.choice(VERSIONS)}"))', f"!{NIC}.rdma || {NIC}.speed > 10",
    )  # fmt: skip


def of_gpu(d: Draw) -> str:
    model, version, amount, compared = d.choice(MODELS), d.choice(VERSIONS), d.choice(MEMORIES), d.choice(COMPARED)
    return d.text(
        f'{GPU}.model == "{model}"', f'{GPU}.model != "{model}"', f'{GPU}.model in ["{model}", "b200"]',
        f'{GPU}.model.startsWith("{model[0]}")', f'{GPU}.model.matches("^[{model[0]}x][0-9]+$")',
        f"{GPU}.index {compared} {d.randint(0, 7)}", f"{GPU}.index % 2 == {d.randint(0, 1)}",
        f"{GPU}.ecc", f"!{GPU}.ecc", f"{GPU}.ecc == {d.text('true', 'false')}",
        f"{GPU}.index >= {d.randint(0, 4)} && {GPU}.ecc", f"{GPU}.index < {d.randint(1, 5)} || !{GPU}.ecc",
        f"{GPU}.ecc ? {GPU}.index > 1 : {GPU}.index < 6",
        f'{GPU}.driverVersion.isGreaterThan(semver("{version}"))', f'{GPU}.driverVersion == semver("{version}")',
        f'{GPU}.driverVersion.compareTo(semver("{version}")) {compared} 0', f"{GPU}.driverVersion.major() >= 2",
        f'{MEMORY}.compareTo(quantity("{amount}")) {compared} 0', f'{MEMORY}.isGreaterThan(quantity("{amount}"))',
        f'{MEMORY} == quantity("{amount}")', f"{MEMORY}.asInteger() {compared} 42949672960",
        f'{MEMORY}.add(quantity("8Gi")).isLessThan(quantity("{amount}"))', f"sign({MEMORY}) == 1",
        f"has({GPU}.uuid)", f'"uuid" in {GPU}', f'!has({GPU}.uuid) || {GPU}.uuid.startsWith("GPU")',
        'has(device.attributes["vendor.example.com"].family)', "device.allowMultipleAllocations == false",
        f"cel.bind(g, {GPU}, g.index < 6 && g.ecc)", "true", 'device.driver == "gpu.example.com"',
        f'["{model}", "x"].exists(m, m == {GPU}.model)', f"{{1: true, 2: false}}.exists(k, k == {GPU}.index)",
    )  # fmt: skip


def may_fail(d: Draw, driver: str) -> str:
    own = f'device.attributes["{driver}"]'
    return d.text(
        f"{own}.missing == 1", f"{own}.missing == 1 || true", f"true || {own}.missing == 1",
        'device.attributes["resource.kubernetes.io"].pcieRoot == "pci0000:40"', f'{own}.uuid == "GPU-1"',
        f"{own}.index < 0 && {own}.missing == 1", f"{own}.model", f"{own}.index", f'{own}.index.startsWith("1")',
        f"10 / {own}.numa > 3", f"{own}.index == 3 || {own}.missing",
        f'device.capacity["{driver}"].memory.isGreaterThan(quantity("forty"))',
        f"has({own}.missing) ? {own}.missing == 1 : true", f"{own}.numa <= 1 ? true : {own}.missing == 1",
    )  # fmt: skip
