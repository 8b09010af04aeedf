"""The machine: device, mixed precision, threads, allocator, seeds, ranks. The one place that knows it.

Nothing here runs at import: the command (or whoever trains from Python) calls `prepare` once, before the first tensor.
"""

import contextlib
import ctypes
import hashlib
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from regard.config import RuntimeConfig
from regard.errors import UsageError, did_you_mean

_TRIAL = "import torch; ones = torch.ones(256, 256, dtype=torch.bfloat16); assert (ones @ ones)[0, 0] == 256"
MOST_THREADS = 1024
LAUNCHER = (
    "REGARD_LAUNCHER"  # in the environment: the process that started this one by --processes, and says who was killed
)
_PR_SET_PDEATHSIG = 1  # from Linux's prctl.h
CGROUP = Path("/sys/fs/cgroup")
CPU_INFO = Path("/proc/cpuinfo")
_BF16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}  # as Linux calls them on Intel's and AMD's processors, and on Arm
# Parameters of glibc's mallopt, from malloc.h.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_MMAP_MAX = -1, -2, -3, -4


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """Which process of a launch this is: its rank among all (`size`), and among those of its machine; alone, the only one.

    node: the number of its machine
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    node: int = 0


def ranks() -> Ranks:
    """Read what torchrun says of this process in its environment."""
    names = {"rank": "RANK", "size": "WORLD_SIZE", "local_rank": "LOCAL_RANK", "local_size": "LOCAL_WORLD_SIZE"}
    names["node"] = "GROUP_RANK"
    found = {field: os.environ.get(name, "") for field, name in names.items()}
    if not (found["rank"].isdecimal() and found["size"].isdecimal()):
        return Ranks()
    return Ranks(**{field: int(text) for field, text in found.items() if text.isdecimal()})


def end_with_parent() -> None:
    """Let the system send this process SIGTERM when the one that started it is gone: a killed torchrun leaves no orphans."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.environ.get(LAUNCHER, str(os.getppid())) != str(os.getppid()):
            os.kill(os.getpid(), signal.SIGTERM)  # it has gone before


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What a run computes on, and with what."""

    device: torch.device
    precision: str
    threads: int

    @contextlib.contextmanager
    def autocast(self) -> Iterator[None]:
        """Compute matrix products in this precision inside the block."""
        if self.precision == "fp32":
            yield
        else:
            with torch.autocast(self.device.type, dtype=torch.bfloat16):
                yield


def prepare(config: RuntimeConfig) -> Machine:
    """Choose device, precision and threads, and set the process up for them."""
    device = _choose_device(config.device)
    threads = config.threads or cores()
    torch.set_num_threads(threads)
    return Machine(device=device, precision=_choose_precision(config.precision, device), threads=threads)


@contextlib.contextmanager
def denormals_as_zero() -> Iterator[None]:
    """Let the processor take denormal numbers for zero inside the block.

    Adam's averages of rare tokens decay into such numbers, which are many times slower to add. Threads inherit this when
    they are made and keep it: what the last bits are depends on entering the block before the first computation in
    parallel, as the command does.
    """
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def cores() -> int:
    """Return how many cores this process may use: what OMP_NUM_THREADS says, else its part of what the system grants."""
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # then those of parallel regions inside
    if asked.isdecimal() and int(asked):
        return min(int(asked), MOST_THREADS)
    granted = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, granted // ranks().local_size)


def available_memory(device: torch.device) -> int | None:
    """Return how many bytes this process may still take on a device: what the system, or its cgroup, has left."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        [line] = [line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable:")]
        return min(1024 * int(line.split()[1]), _left_in_cgroup())
    except (OSError, ValueError):
        return None  # not Linux


def _left_in_cgroup() -> int:
    """What a container's limit leaves; files that are only cached count as free."""
    try:
        most, used, facts = (
            (CGROUP / name).read_text().split() for name in ("memory.max", "memory.current", "memory.stat")
        )
        return (
            sys.maxsize
            if most == ["max"]
            else int(most[0]) - int(used[0]) + int(facts[facts.index("inactive_file") + 1])
        )
    except (OSError, ValueError):
        return sys.maxsize


def keep_freed_memory() -> bool:
    """Tell glibc to keep large freed blocks instead of returning them to the system; return whether it was told.

    A training step frees and asks for the same large blocks again; each return costs page faults at the next use.
    """
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    settings = {_M_MMAP_MAX: 0, _M_TRIM_THRESHOLD: 2**31 - 1, _M_TOP_PAD: 64 << 20}
    return all(mallopt(parameter, value) == 1 for parameter, value in settings.items())


def release_freed_memory() -> None:
    """Give what was freed, and is kept for the next use, back to the system, so that it counts as available."""
    if sys.platform == "linux" and platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


def mix(*parts: int | str) -> int:
    """Mix a seed with what it is for, such as (seed, "order", epoch), into 63 bits that look unrelated."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def facts() -> dict[str, str | int]:
    """Return the versions and settings on which the last bits of a result depend."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "processes": ranks().size,
        "processor": torch.backends.cpu.get_cpu_capability(),
    }


def _choose_device(name: str) -> torch.device:
    if name == "auto":
        if torch.cuda.is_available():
            return _choose_device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda", "mps") or (number and not number.isdigit()):
        raise UsageError(
            f"runtime.device must be auto, cpu, cuda, cuda:N or mps, not '{name}'.",
            did_you_mean("cuda" if kind == "gpu" else name, ["auto", "cpu", "cuda", "mps"]),
        )
    if kind == "cuda" and not torch.cuda.is_available():
        raise UsageError("No CUDA device is available to torch.", "Use --set runtime.device=cpu")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise UsageError("No Metal (MPS) device is available to torch.", "Use --set runtime.device=cpu")
    if name == "cuda" and ranks().local_size > 1:
        return torch.device("cuda", ranks().local_rank)  # each process of a machine has a GPU of its own
    return torch.device(name)


def _choose_precision(name: str, device: torch.device) -> str:
    if name == "auto":
        return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "fp32"
    if name == "bf16" and device.type == "cpu" and not _survives_bf16():
        raise UsageError(
            "This CPU does not support bf16 matrix products: a trial in a child process crashed.",
            "Use --set runtime.precision=fp32",
        )
    return name


def has_bf16_products() -> bool:
    """Whether the processor says that it multiplies matrices in bf16 itself, which torch then does faster than in fp32."""
    try:
        words = {*CPU_INFO.read_text().split()}
    except OSError:  # not Linux
        return False
    return not words.isdisjoint(_BF16_FLAGS)


def _survives_bf16() -> bool:
    """Try a bf16 product in a child: some virtual machines advertise AMX and deny it, which kills the process."""
    try:
        return subprocess.run([sys.executable, "-c", _TRIAL], capture_output=True, timeout=60).returncode == 0
    except subprocess.TimeoutExpired:
        return False
