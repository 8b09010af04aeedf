"""Devices and their peak FLOP/s, memory and bandwidth: of known ones by their data sheets, of this machine as measured.

A peak is the number of FLOPs per second that a device could do at most, in matrix products of one precision; no training
reaches it. Peaks of tensor cores are those without sparsity, bf16 with sums in fp32.
"""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from regard import runtime
from regard.config import RuntimeConfig
from regard.errors import UsageError, did_you_mean

TERA = 10**12
GIGA = 10**9
MOST_PROCESSES = 1024
THIS = "this"
PRECISIONS = ("auto", "fp32", "bf16")
PEAK_SECONDS = 1.0  # how long this machine multiplies to show its peak
_WIDTHS = {"cpu": 2048}  # of the matrices it multiplies
_WIDTH_ELSEWHERE = 8192


@dataclass(frozen=True)
class Device:
    """A kind of device as its data sheet has it: peak in TFLOP/s by precision, memory in GB, its bandwidth in GB/s.

    link, network: what usually connects it inside a node and between nodes, as `interconnect.py` names it
    """

    peaks: Mapping[str, float]
    memory: float
    bandwidth: float
    source: str
    link: str = "PCIE4"
    network: str = "ETH-100"


_FOOTNOTE = "Vaswani et al. 2017, footnote 5"
_SHEET = "NVIDIA's data sheet"
DEVICES: Mapping[str, Device] = {
    # Memory and bandwidth of the first four are of NVIDIA's data sheets, of a K80 those of one of its two processors.
    "K80": Device({"fp32": 2.8}, 12, 240, _FOOTNOTE, "PCIE3"),
    "K40": Device({"fp32": 3.7}, 12, 288, _FOOTNOTE, "PCIE3"),
    "M40": Device({"fp32": 6.0}, 12, 288, _FOOTNOTE, "PCIE3"),
    "P100": Device({"fp32": 9.5}, 16, 732, _FOOTNOTE, "NVLINK1", "4xIB-EDR"),  # as DGX-1 connects it
    "V100": Device({"fp32": 15.7}, 32, 900, f"{_SHEET}, SXM2", "NVLINK2", "4xIB-EDR"),  # DGX-1
    "T4": Device({"fp32": 8.1}, 16, 320, _SHEET, "PCIE3"),
    "A10": Device({"fp32": 31.2, "bf16": 125.0}, 24, 600, _SHEET),
    "A100": Device(
        {"fp32": 19.5, "bf16": 312.0}, 80, 2039, f"{_SHEET}, SXM of 80 GB", "NVLINK3", "8xIB-HDR"
    ),  # DGX A100
    "A100-40GB": Device({"fp32": 19.5, "bf16": 312.0}, 40, 1555, f"{_SHEET}, SXM of 40 GB", "NVLINK3", "8xIB-HDR"),
    "L4": Device({"fp32": 30.3, "bf16": 121.0}, 24, 300, _SHEET),
    "H100": Device({"fp32": 67.0, "bf16": 989.0}, 80, 3350, f"{_SHEET}, SXM", "NVLINK4", "8xIB-NDR"),  # DGX H100
    "H200": Device({"fp32": 67.0, "bf16": 989.0}, 141, 4800, f"{_SHEET}, SXM", "NVLINK4", "8xIB-NDR"),
    "RTX3090": Device({"fp32": 35.6, "bf16": 71.0}, 24, 936, "NVIDIA's white paper of the GA102"),
    "RTX4090": Device({"fp32": 82.6, "bf16": 165.2}, 24, 1008, "NVIDIA's white paper of Ada"),
}


@dataclass(frozen=True, kw_only=True)
class Devices:
    """What computes: `n_devices` alike, each with this peak in FLOP/s.

    fastest:    the peak of its fastest precision, which Muon's products take; 0 for the same
    memory:     of each, in bytes; 0 where nobody says
    bandwidth:  of that memory, in bytes per second; 0 where nobody says
    """

    name: str
    n_devices: int
    peak: float
    precision: str
    source: str  # who says what the peak is
    on_cpu: bool = False
    fastest: float = 0.0
    memory: float = 0.0
    bandwidth: float = 0.0

    @property
    def label(self) -> str:
        """How people say it: 8 P100, this machine."""
        if self.name == THIS:
            return "this machine" if self.n_devices == 1 else f"{self.n_devices} processes on this machine"
        return self.name if self.n_devices == 1 else f"{self.n_devices} {self.name}"


@dataclass(frozen=True, kw_only=True)
class DeviceOptions:
    """What shall compute.

    name:       8xP100, A100 or `this`
    processes:  of this machine, how many share its processors
    precision:  auto is what training would choose: bf16 where the device has it, else fp32; on a CPU fp32
    peak:       of one device in FLOP/s, for one that the table does not know; 0 for the table's
    """

    name: str = THIS
    precision: str = "auto"
    peak: float = 0.0
    processes: int = 1


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
            raise UsageError(
                f"'{THIS}' is one machine, not {n_devices:,}.", "Leave the number out; --processes has several on it."
            )
        return this_machine(precision=precision, peak=peak, processes=options.processes)
    if _plain(name) == "cpu" and not peak:
        raise UsageError(
            "A CPU is planned for as this machine, whose peak is measured.",
            f"Leave --devices out{f', and give --processes {n_devices}' if n_devices > 1 else ''}; or give --peak.",
        )
    if options.processes != 1:
        raise UsageError("--processes is for this machine.", f"Of others, give their number: --devices 8x{name}")
    known = {_plain(one): one for one in DEVICES}.get(_plain(name))
    if known is None and not peak:
        remedy = did_you_mean(name.upper(), [*DEVICES, THIS])
        raise UsageError(f"Unknown device '{name}'.", f"{remedy} For any other, give --peak.")
    if peak:
        given = "fp32" if precision == "auto" else precision
        as_given = Devices(name=known or name, n_devices=n_devices, peak=peak, precision=given, source="as given")
        return as_given if known is None else _with_memory(as_given, DEVICES[known])
    device, name = DEVICES[known or name], known or name
    if precision == "auto":
        precision = "bf16" if "bf16" in device.peaks else "fp32"
    if precision not in device.peaks:
        raise UsageError(f"{name} does not support {precision}.", f"It supports {', '.join(device.peaks)}.")
    peak = device.peaks[precision] * TERA
    found = Devices(name=name, n_devices=n_devices, peak=peak, precision=precision, source=device.source)
    return _with_memory(found, device)


def _plain(name: str) -> str:
    """A name as people may write it: RTX 4090, rtx-4090."""
    return re.sub(r"[\s_-]", "", name.lower())


def _with_memory(devices: Devices, device: Device) -> Devices:
    fastest = max(device.peaks.values()) * TERA
    return replace(devices, fastest=fastest, memory=device.memory * GIGA, bandwidth=device.bandwidth * GIGA)


def _split(text: str) -> tuple[int, str]:
    """Read 8xP100 as eight and P100."""
    found = re.fullmatch(r"\s*(?:(\d+)\s*[x×*]\s*)?(\S.*?)\s*", text)
    number = int(found[1] or 1) if found else 0
    if found is None or not number:
        raise UsageError(f"--devices must be like 8xP100 or A100, not '{text}'.", "Name at least one device.")
    return number, found[2]


def this_machine(*, precision: str = "auto", peak: float = 0.0, processes: int = 1) -> Devices:
    """Return this machine with its peak, measured unless it is given; processes on a CPU have a share of it each."""
    if not 1 <= processes <= MOST_PROCESSES:
        raise UsageError(
            f"--processes must be from 1 to {MOST_PROCESSES:,}, not {processes:,}.", "Usual is one per core."
        )
    machine = runtime.prepare(RuntimeConfig(precision=precision))
    threads = f", {machine.threads} thread{'s' if machine.threads > 1 else ''}" if machine.device.type == "cpu" else ""
    on_cpu = machine.device.type == "cpu"
    return Devices(
        name=THIS,
        n_devices=processes,
        peak=peak or measured_peak(machine) / (processes if on_cpu else 1),
        precision=machine.precision,
        source="as given" if peak else f"measured on {machine.device}{threads}",
        on_cpu=on_cpu,
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
