"""Devices and their peak FLOP/s: of known ones by their data sheets, of this machine as measured.

A peak is the number of FLOPs per second that a device could do at most, in matrix products of one precision; no training
reaches it. Peaks of tensor cores are those without sparsity, bf16 with sums in fp32.
"""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from regard import runtime
from regard.config import RuntimeConfig
from regard.errors import UsageError, did_you_mean

TERA = 10**12
THIS = "this"
PRECISIONS = ("auto", "fp32", "bf16")
PEAK_SECONDS = 1.0  # how long this machine multiplies to show its peak
_WIDTHS = {"cpu": 2048}  # of the matrices it multiplies
_WIDTH_ELSEWHERE = 8192


@dataclass(frozen=True)
class Device:
    """A kind of device: its peak in TFLOP/s by precision, and who says so."""

    peaks: Mapping[str, float]
    source: str


_FOOTNOTE = "Vaswani et al. 2017, footnote 5"
DEVICES: Mapping[str, Device] = {
    "K80": Device({"fp32": 2.8}, _FOOTNOTE),
    "K40": Device({"fp32": 3.7}, _FOOTNOTE),
    "M40": Device({"fp32": 6.0}, _FOOTNOTE),
    "P100": Device({"fp32": 9.5}, _FOOTNOTE),
    "V100": Device({"fp32": 15.7}, "NVIDIA's data sheet, SXM2"),
    "T4": Device({"fp32": 8.1}, "NVIDIA's data sheet"),
    "A10": Device({"fp32": 31.2, "bf16": 125.0}, "NVIDIA's data sheet"),
    "A100": Device({"fp32": 19.5, "bf16": 312.0}, "NVIDIA's data sheet"),
    "L4": Device({"fp32": 30.3, "bf16": 121.0}, "NVIDIA's data sheet"),
    "H100": Device({"fp32": 67.0, "bf16": 989.0}, "NVIDIA's data sheet, SXM"),
    "RTX3090": Device({"fp32": 35.6, "bf16": 71.0}, "NVIDIA's white paper of the GA102"),
    "RTX4090": Device({"fp32": 82.6, "bf16": 165.2}, "NVIDIA's white paper of Ada"),
}


@dataclass(frozen=True, kw_only=True)
class Devices:
    """What computes: `n_devices` alike, each with this peak in FLOP/s."""

    name: str
    n_devices: int
    peak: float
    precision: str
    source: str  # who says what the peak is
    on_cpu: bool = False

    @property
    def label(self) -> str:
        """How people say it: 8 P100, this machine."""
        if self.name == THIS:
            return "this machine"
        return self.name if self.n_devices == 1 else f"{self.n_devices} {self.name}"


@dataclass(frozen=True, kw_only=True)
class DeviceOptions:
    """What shall compute.

    name:       8xP100, A100 or `this`
    precision:  auto is what training would choose: bf16 where the device has it, else fp32; on a CPU fp32
    peak:       of one device in FLOP/s, for one that the table does not know; 0 for the table's
    """

    name: str = THIS
    precision: str = "auto"
    peak: float = 0.0


def find_devices(options: DeviceOptions) -> Devices:
    """Return the devices that are asked for; only of this machine is the peak measured."""
    precision, peak = options.precision, options.peak
    if precision not in PRECISIONS:
        raise UsageError(
            f"--precision must be {', '.join(PRECISIONS[:-1])} or {PRECISIONS[-1]}, not '{precision}'.",
            did_you_mean(precision, PRECISIONS),
        )
    n_devices, name = _split(options.name)
    if name.lower() == THIS:
        if n_devices != 1:
            raise UsageError(f"'{THIS}' is one machine, not {n_devices:,}.", "Leave the number out: this")
        return this_machine(precision=precision, peak=peak)
    known = {one.lower(): one for one in DEVICES}.get(re.sub(r"[\s_-]", "", name.lower()))
    if known is None and not peak:
        remedy = did_you_mean(name.upper(), [*DEVICES, THIS])
        raise UsageError(f"Unknown device '{name}'.", f"{remedy} For any other, give --peak.")
    if peak:
        given = "fp32" if precision == "auto" else precision
        return Devices(name=known or name, n_devices=n_devices, peak=peak, precision=given, source="as given")
    device, name = DEVICES[known or name], known or name
    if precision == "auto":
        precision = "bf16" if "bf16" in device.peaks else "fp32"
    if precision not in device.peaks:
        raise UsageError(f"{name} does not support {precision}.", f"It supports {', '.join(device.peaks)}.")
    peak = device.peaks[precision] * TERA
    return Devices(name=name, n_devices=n_devices, peak=peak, precision=precision, source=device.source)


def _split(text: str) -> tuple[int, str]:
    """Read 8xP100 as eight and P100."""
    found = re.fullmatch(r"\s*(?:(\d+)\s*[x×*]\s*)?(\S.*?)\s*", text)
    number = int(found[1] or 1) if found else 0
    if found is None or not number:
        raise UsageError(f"--devices must be like 8xP100 or A100, not '{text}'.", "Name at least one device.")
    return number, found[2]


def this_machine(*, precision: str = "auto", peak: float = 0.0) -> Devices:
    """Return this machine with its peak, measured unless it is given."""
    machine = runtime.prepare(RuntimeConfig(precision=precision))
    threads = f", {machine.threads} thread{'s' if machine.threads > 1 else ''}" if machine.device.type == "cpu" else ""
    return Devices(
        name=THIS,
        n_devices=1,
        peak=peak or measured_peak(machine),
        precision=machine.precision,
        source="as given" if peak else f"measured on {machine.device}{threads}",
        on_cpu=machine.device.type == "cpu",
    )


def measured_peak(machine: runtime.Machine) -> float:
    """Return the FLOP/s of large matrix products: the fastest of those that fit into a second."""
    width = _WIDTHS.get(machine.device.type, _WIDTH_ELSEWHERE)
    dtype = torch.float32 if machine.precision == "fp32" else torch.bfloat16
    factor = torch.full((width, width), 1 / width, dtype=dtype, device=machine.device)
    product = factor @ factor  # the first one warms up
    _wait(product)
    best, left = 0.0, PEAK_SECONDS
    while left > 0 or not best:
        began = time.perf_counter()
        torch.mm(factor, factor, out=product)
        _wait(product)
        seconds = time.perf_counter() - began
        best, left = max(best, 2 * width**3 / seconds), left - seconds
    return best


def _wait(product: torch.Tensor) -> None:
    """A number that is read has been computed."""
    float(product[0, 0])
