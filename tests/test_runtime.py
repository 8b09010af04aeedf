"""The machine: what is chosen, what is refused and in which words, and seeds that are the same everywhere."""

import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from regard import runtime
from regard.config import RuntimeConfig
from regard.errors import UsageError


@pytest.fixture(autouse=True)
def _same_process_afterwards() -> Iterator[None]:
    """`prepare` sets the threads of the whole process."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def complaint(**choices: str) -> str:
    with pytest.raises(UsageError) as caught:
        runtime.prepare(RuntimeConfig(**choices))  # type: ignore[arg-type]
    return str(caught.value)


# -- seeds --------------------------------------------------------------------------------------------------------------


def test_mixed_seeds_are_the_same_in_every_process() -> None:
    # Values of another process: a run that is resumed draws the same order and the same dropout.
    assert runtime.mix(1, "order", 0) == 299_572_666_420_262_285
    assert runtime.mix(1, "dropout", 400, 0) == 6_569_262_310_780_512_864


def test_mixed_seeds_differ_by_every_part() -> None:
    seeds = {runtime.mix(seed, word, step) for seed in range(4) for word in ("order", "dropout") for step in range(50)}
    seeds |= {runtime.mix(1), runtime.mix("1"), runtime.mix(1, 2), runtime.mix(12), runtime.mix("1", 2)}
    assert len(seeds) == 4 * 2 * 50 + 5


def test_mixed_seeds_fit_torch_and_numpy() -> None:
    seeds = [runtime.mix(1, step) for step in range(500)]
    assert min(seeds) >= 0
    assert 2**62 < max(seeds) < 2**63


# -- device, precision, threads -----------------------------------------------------------------------------------------


def test_prepare_sets_the_process_up() -> None:
    machine = runtime.prepare(RuntimeConfig(device="cpu", threads=1))
    assert (machine.device, machine.precision, machine.threads) == (torch.device("cpu"), "fp32", 1)
    assert torch.get_num_threads() == 1


def test_without_a_number_of_threads_every_core_is_used() -> None:
    machine = runtime.prepare(RuntimeConfig(device="cpu"))
    assert machine.threads == runtime.cores() == torch.get_num_threads()


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system does not tell which cores are allowed")
def test_cores_are_those_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert runtime.cores() == 1
    finally:
        os.sched_setaffinity(0, before)
    assert runtime.cores() == len(before)


@pytest.mark.parametrize(("cuda", "mps", "chosen"), [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")])
def test_auto_takes_the_fastest_device_there_is(
    monkeypatch: pytest.MonkeyPatch, cuda: bool, mps: bool, chosen: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: True)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    machine = runtime.prepare(RuntimeConfig(threads=1))
    assert machine.device.type == chosen
    assert machine.precision == ("bf16" if chosen == "cuda" else "fp32")


def test_no_such_device() -> None:
    assert (
        complaint(device="gpu")
        == "runtime.device must be auto, cpu, cuda, cuda:N or mps, not 'gpu'.\nDid you mean cuda?"
    )


def test_no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    expected = "No CUDA device is available to torch.\nUse --set runtime.device=cpu"
    assert complaint(device="cuda") == complaint(device="cuda:1") == expected


def test_no_metal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert complaint(device="mps") == ("No Metal (MPS) device is available to torch.\nUse --set runtime.device=cpu")


def test_bf16_on_a_cpu_that_dies_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # os.abort stands for the illegal instruction: it really kills the child.
    monkeypatch.setattr(runtime, "_TRIAL", "import os; os.abort()")
    assert complaint(device="cpu", precision="bf16") == (
        "This CPU does not support bf16 matrix products: a trial in a child process crashed.\n"
        "Use --set runtime.precision=fp32"
    )


def test_bf16_on_a_cpu_that_survives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_TRIAL", "pass")
    assert runtime.prepare(RuntimeConfig(device="cpu", precision="bf16", threads=1)).precision == "bf16"


def test_autocast_follows_the_precision() -> None:
    for precision in ("fp32", "bf16"):
        machine = runtime.Machine(device=torch.device("cpu"), precision=precision, threads=1)
        with machine.autocast():
            assert torch.is_autocast_enabled("cpu") == (precision == "bf16")
        assert not torch.is_autocast_enabled("cpu")


# -- the allocator and the facts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("system", "library"), [("darwin", "glibc"), ("linux", "musl"), ("linux", "")])
def test_only_glibc_is_told_to_keep_freed_memory(monkeypatch: pytest.MonkeyPatch, system: str, library: str) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "libc_ver", lambda: (library, "1"))
    assert runtime.keep_freed_memory() is False


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")
def test_glibc_accepts_the_settings() -> None:
    assert runtime.keep_freed_memory() is True


def test_facts_name_what_the_last_bits_depend_on() -> None:
    torch.set_num_threads(1)
    facts = runtime.facts()
    assert facts["threads"] == 1
    assert facts["torch"] == torch.__version__
    assert facts["python"] == platform.python_version()
    assert facts["processor"]


def test_cores_heeds_what_openmp_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert runtime.cores() == 7
    monkeypatch.setenv("OMP_NUM_THREADS", "5,2")  # those of nested parallel regions follow
    assert runtime.cores() == 5
    monkeypatch.setenv("OMP_NUM_THREADS", "1000000")
    assert runtime.cores() == 1024
    monkeypatch.setenv("OMP_NUM_THREADS", "")
    assert 1 <= runtime.cores() <= (os.cpu_count() or 1)


def test_denormals_are_zero_inside_the_block_only() -> None:
    tiny = torch.tensor([1e-38])
    with runtime.denormals_as_zero():
        assert (tiny / 10).item() == 0
    assert (tiny / 10).item() > 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_free_memory_is_what_the_system_and_the_cgroup_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    monkeypatch.setattr(runtime, "CGROUP", tmp_path)
    free = runtime.available_memory(cpu)
    assert free is not None
    assert free > 10_000_000
    for name, text in (("max", "9000\n"), ("current", "8000\n"), ("stat", "anon 7000\ninactive_file 500\nfile 900\n")):
        (tmp_path / f"memory.{name}").write_text(text)
    assert runtime.available_memory(cpu) == 1500
    (tmp_path / "memory.max").write_text("max\n")
    assert (runtime.available_memory(cpu) or 0) > 10_000_000


def test_a_processor_says_whether_it_has_bf16_products(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    monkeypatch.setattr(runtime, "CPU_INFO", info)
    assert not runtime.has_bf16_products()  # not Linux
    info.write_text("flags : fpu avx2 avx512f avx512_bf16 avx512_fp16\n")
    assert runtime.has_bf16_products()
    info.write_text("flags : fpu avx2 avx512f\n")
    assert not runtime.has_bf16_products()


def test_torchrun_says_which_process_this_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"):
        monkeypatch.delenv(name, raising=False)
    assert runtime.ranks() == runtime.Ranks()
    monkeypatch.setenv("RANK", "5")
    assert runtime.ranks() == runtime.Ranks(), "somebody else's variable"
    monkeypatch.setenv("WORLD_SIZE", "8")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    monkeypatch.setenv("GROUP_RANK", "1")
    assert runtime.ranks() == runtime.Ranks(rank=5, size=8, local_rank=1, local_size=4, node=1)


def test_the_processes_of_a_machine_share_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    assert runtime.cores() == 8
    monkeypatch.setattr(runtime, "ranks", lambda: runtime.Ranks(size=4, local_size=4))
    assert runtime.cores() == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert runtime.cores() == 3


def test_each_process_of_a_machine_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert runtime._choose_device("cuda") == torch.device("cuda")
    monkeypatch.setattr(runtime, "ranks", lambda: runtime.Ranks(rank=3, size=4, local_rank=1, local_size=2))
    assert runtime._choose_device("cuda") == runtime._choose_device("auto") == torch.device("cuda", 1)
    assert runtime._choose_device("cuda:0") == torch.device("cuda", 0)
