"""Several processes: the same numbers as one, whatever their number; shares by cost; what goes wrong is told once."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.golden.run import BY_NAME, write_data
from tests.training.ranks import finish, free_port, start

from regard.tasks.spec import TASKS
from regard.training.distributed import BUCKET, World, buckets, gradient_of, share_by_cost

# Every task and kind of network once, with all that an update may have; `tests.soak.rank_equality` has all of them.
SOME = (
    "translate-accumulate-ema",
    "translate-rnn-attention",
    "translate-muon",
    "language-gpt",
    "mask-bert",
    "denoise-t5",
    "classify-balanced",
    "tag-birnn",
    "regress-bert",
    "similarity-bert",
    "image-resnet",
    "caption-resnet",
)
STEPS = 12
SETTINGS: dict[str, float | str] = {
    "steps": 8,
    "validate_every": 4,
    "batch_tokens": 256,
    "save_every_steps": 3,
    "schedule": "constant",  # that of a run which ends earlier is the same
    "warmup": 2,
}


# -- shares -------------------------------------------------------------------------------------------------------------


@dataclass
class Lengths:
    """Examples of these lengths, of which a batch is padded to the longest."""

    lengths: np.ndarray

    def size(self, indices: np.ndarray) -> int:
        return len(indices) * int(self.lengths[indices].max())


def shares(lengths: list[int], size: int) -> list[list[int]]:
    examples, batch = Lengths(np.array(lengths)), np.arange(len(lengths))
    return [share_by_cost(batch, examples, rank=rank, size=size).tolist() for rank in range(size)]  # type: ignore[arg-type]


def test_shares_are_of_like_cost_and_of_like_lengths() -> None:
    assert shares([10, 1, 1, 9, 1, 1, 1, 1, 1], 2) == [[1, 2, 3, 4, 5, 6, 7, 8], [0]]
    drawn = np.random.default_rng(0).integers(3, 60, 400)
    for size in (2, 3, 4, 7):
        found = shares(drawn.tolist(), size)
        assert sorted(place for own in found for place in own) == list(range(400))
        tokens = [int(drawn[own].sum()) for own in found]
        assert max(tokens) - min(tokens) <= 2 * drawn.max()
        assert all(own == sorted(own) for own in found)  # in the batch's order
        assert max(drawn[found[0]]) <= min(drawn[found[-1]])  # neighbours in length: little padding


def test_every_rank_has_an_example_where_there_are_enough_of_one_length() -> None:
    assert all(all(shares([4] * n, 4)) for n in range(4, 30))
    assert list(map(len, shares([4] * 4, 4))) == [1, 1, 1, 1]


def test_fewer_examples_than_ranks_leave_some_with_none() -> None:
    found = shares([5, 5], 4)
    assert sorted(map(len, found)) == [0, 0, 1, 1]


def test_alone_a_batch_is_not_shared() -> None:
    batch = np.array([3, 1, 2])
    assert World().share(batch, Lengths(np.ones(4))) is batch  # type: ignore[arg-type]
    assert World().seed(7) == 7
    assert World().begin_update(2.5) == 2.5
    assert World().add_up([], 3.0, 2.0) == (3.0, 2.0)


def test_buckets_keep_types_apart_and_hold_what_they_may() -> None:
    whole = torch.zeros(BUCKET // 4)
    small, double = torch.zeros(3), torch.zeros(3, dtype=torch.float64)
    assert [list(map(len, one)) for one in buckets([small, whole, small, double])] == [[3], [BUCKET // 4], [3], [3]]
    assert [len(one) for one in buckets([small] * 5)] == [5]


def test_a_parameter_without_a_gradient_gets_one_of_zeros() -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    assert gradient_of(parameter).tolist() == [0.0, 0.0]
    assert parameter.grad is not None


# -- equal --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


def test_the_families_are_of_every_task() -> None:
    assert {BY_NAME[name].task for name in SOME} == set(TASKS)


def test_any_number_of_processes_learns_the_same(data: Path, tmp_path: Path) -> None:
    """In double precision, so that only what is wrong differs: token weights, clipping, EMA, class weights, batch norm."""
    program = ["-m", "tests.training.rank_program", str(data), str(tmp_path), "float64", str(STEPS), *SOME]
    for size in (1, 2, 4):
        assert finish(start(program, size=size)) == [(0, "")] * size
    for name in SOME:
        alone = np.load(tmp_path / f"{name}-1-0.npz")
        for size in (2, 4):
            first, last = (np.load(tmp_path / f"{name}-{size}-{rank}.npz") for rank in (0, size - 1))
            for key in alone:
                difference = np.linalg.norm(alone[key] - first[key]) / np.linalg.norm(alone[key])
                assert difference < 1e-5, (name, size, key, difference)
                assert first[key].tobytes() == last[key].tobytes(), (name, size, key)  # no rank drifts away


# -- runs ---------------------------------------------------------------------------------------------------------------


def command(data: Path, run: Path, **training: float) -> list[str]:
    """A tiny run of the command, with these settings of its training."""
    files = [str(data / name) for name in ("pairs.en", "pairs.de")]
    sizes = {"d_model": 16, "d_ff": 32, "n_heads": 2, "n_encoder_layers": 1, "n_decoder_layers": 1}
    sets = [f"model.{key}={value}" for key, value in sizes.items()]
    sets += [f"training.{key}={value}" for key, value in {**SETTINGS, **training}.items()]
    sets += ["tokenizer.vocab_size=360", "runtime.threads=1", "runtime.timeout=60"]
    return [
        *("-m", "regard", "train", "translate", "--train", *files, "--run", str(run)),
        *(part for one in sets for part in ("--set", one)),
    ]


def tensors(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in run.glob("checkpoints/*/*.safetensors")}


def records(run: Path) -> list[dict[str, Any]]:
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [{key: value for key, value in line.items() if key not in ("seconds", "per_second")} for line in lines]


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[int, str]]]:
    """A run of two processes, and what each said."""
    run = tmp_path_factory.mktemp("whole") / "run"
    return run, finish(start(command(data, run), size=2))


def test_only_the_first_process_says_anything(whole: tuple[Path, list[tuple[int, str]]]) -> None:
    run, ((code, said), other) = whole
    assert code == 0, said
    assert other == (0, "")
    assert "Finished at step 8" in said
    assert "note: 2 processes spent " in said
    assert "% of the time of an update waiting for one another, and " in said
    manifest = json.loads((run / "checkpoints/step-00000008/manifest.json").read_text())
    assert manifest["facts"]["processes"] == 2
    assert [one["step"] for one in records(run) if one["kind"] == "train"] == list(range(1, 9))


def test_a_run_that_goes_on_with_as_many_processes_has_the_same_bytes(
    whole: tuple[Path, list[tuple[int, str]]], data: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert [code for code, _ in finish(start(command(data, run, steps=5), size=2))] == [0, 0]
    resumed = finish(start(["-m", "regard", "resume", str(run), "--steps", "8"], size=2))
    assert [code for code, _ in resumed] == [0, 0], resumed
    assert "is of 2 processes" not in resumed[0][1]
    assert "from step 5" in resumed[0][1]
    mine, theirs = tensors(run), tensors(whole[0])
    assert mine["checkpoints/step-00000008/model.safetensors"] == theirs["checkpoints/step-00000008/model.safetensors"]
    assert (
        mine["checkpoints/step-00000008/optimizer.safetensors"]
        == theirs["checkpoints/step-00000008/optimizer.safetensors"]
    )


def test_another_number_of_processes_goes_on_with_the_same_order(
    whole: tuple[Path, list[tuple[int, str]]], data: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert [code for code, _ in finish(start(command(data, run, steps=5), size=2))] == [0, 0]
    ((code, said),) = finish(start(["-m", "regard", "resume", str(run), "--steps", "8"], size=1))
    assert code == 0, said
    told = "is of 2 processes, and the run goes on with 1: the order of the data is the same, the last bits of sums are not."
    assert f"note: step-00000005 {told}" in said
    losses = [[one["loss"] for one in records(path) if one["kind"] == "train"] for path in (run, whole[0])]
    weights = [[one["weight"] for one in records(path) if one["kind"] == "train"] for path in (run, whole[0])]
    assert weights[0] == weights[1]
    assert losses[0][:5] == losses[1][:5]


def test_a_process_may_have_nothing_to_do(data: Path, tmp_path: Path) -> None:
    """Batches of a sentence or two, and four processes."""
    codes = finish(start(command(data, tmp_path / "run", batch_tokens=12, steps=3), size=4))
    assert [code for code, _ in codes] == [0] * 4, codes


# -- bad input ----------------------------------------------------------------------------------------------------------


def test_processes_with_other_settings_are_refused(data: Path, tmp_path: Path) -> None:
    other = command(data, tmp_path / "run", learning_rate=0.5)
    (code, said), (other_code, other_said) = finish(start(command(data, tmp_path / "run"), size=2, others={1: other}))
    assert (code, other_code) == (2, 2)
    assert said.splitlines()[-2:] == [
        "error: Rank 1: It differs from rank 0 in its settings: training learning_rate 0.5, not 0.01.",
        "Start all processes with the same command, the same versions and the same files.",
    ]
    assert other_said == ""


def test_processes_with_other_files_are_refused(data: Path, tmp_path: Path) -> None:
    """The name is the same, and behind it lies another file: each process has a folder of its own under it."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\nfrom regard.data.pipeline import hashes\nfrom regard.training import follower\n"
        "follower.content_hash = lambda file: 'another'\n"
        "from regard.cli.main import main\nsys.exit(main(sys.argv[1:]))\n"
    )
    arguments = command(data, tmp_path / "run")
    (code, said), (other_code, other_said) = finish(start([str(program), *arguments[2:]], size=2))
    assert (code, other_code, other_said) == (1, 1, "")
    assert said.splitlines()[-2:] == [
        f"error: Rank 1: {data / 'pairs.en'} is not the file that rank 0 has under this name.",
        "Give all machines the same files, or put them on a file system that all share.",
    ]


def test_a_run_that_another_launch_holds_is_refused_once(
    whole: tuple[Path, list[tuple[int, str]]], data: Path, tmp_path: Path
) -> None:
    from regard.runs.folder import RunFolder
    from regard.runs.lock import locked

    with locked(RunFolder.open(whole[0])):
        (code, said), other = finish(start(["-m", "regard", "resume", str(whole[0]), "--steps", "9"], size=2))
    assert code == 1
    assert other == (1, "")
    assert said.splitlines()[-2] == (
        f"error: Rank 0: {whole[0]} is being trained by process {os.getpid()} on {os.uname().nodename}."
    )


def test_a_dead_master_address(data: Path, tmp_path: Path) -> None:
    environment = {"MASTER_PORT": str(free_port())}
    arguments = [*command(data, tmp_path / "run"), "--set", "runtime.timeout=2"]
    ((code, said),) = finish(start(arguments, size=2, environment=environment, ranks=[1]))
    assert code == 1
    place = f"127.0.0.1:{environment['MASTER_PORT']}"
    assert said.splitlines()[-2:] == [
        f"error: Rank 1 cannot meet the others at {place} (MASTER_ADDR:MASTER_PORT): no answer in 2 seconds.",
        "Check that address, and that rank 0 runs there; torchrun --standalone finds a free port by itself.",
    ]


def test_a_port_in_use(data: Path, tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        arguments = command(data, tmp_path / "run")
        ((code, said),) = finish(start(arguments, size=2, environment={"MASTER_PORT": port}, ranks=[0]))
    assert code == 1
    assert (
        f"error: Rank 0 cannot meet the others at 127.0.0.1:{port} (MASTER_ADDR:MASTER_PORT): the port is in use."
        in said
    )


def test_batch_norm_needs_an_image_in_every_process(data: Path, tmp_path: Path) -> None:
    arguments = ["-m", "regard", "train", "image", "--train", str(data / "images"), "--model", "resnet-20"]
    arguments += ["--batch-images", "1", "--steps", "2", "--run", str(tmp_path / "run"), "--set", "runtime.threads=1"]
    (code, said), other = finish(start(arguments, size=2))
    assert code == 1
    assert other == (1, "")
    assert said.splitlines()[-2:] == [
        "error: Rank 0: Batch norm needs an image in each of 2 processes, and a batch has 1.",
        "Use larger batches or fewer processes, or model.norm = none.",
    ]


CUSTOM = """
import sys, torch, regard
class Network(torch.nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.tokens = torch.nn.Embedding(400, 8)
        self.norm = torch.nn.BatchNorm1d(8) if norm else torch.nn.LayerNorm(8)
        self.head = torch.nn.Linear(8, 3)
    def forward(self, inputs, lengths, segments):
        return self.head(self.norm(self.tokens(inputs).mean(1)))
run = regard.train("classify", train=sys.argv[1], run=sys.argv[2], model=Network(len(sys.argv) > 3), steps=4, progress=False,
                   settings={"runtime.threads": 1, "tokenizer.vocab_size": 360})
print(len(run.predict(["a dog"])))
"""


def test_a_network_of_ones_own_from_python(data: Path, tmp_path: Path) -> None:
    program = tmp_path / "own.py"
    program.write_text(CUSTOM)
    found = finish(start([str(program), str(data / "classes.csv"), str(tmp_path / "run")], size=2))
    assert [code for code, _ in found] == [0, 0], found
    found = finish(start([str(program), str(data / "classes.csv"), str(tmp_path / "other"), "batch norm"], size=2))
    assert [code for code, _ in found] == [1, 1]
    assert (
        "Rank 0: norm is a batch norm of torch, whose statistics would be those of each process alone." in found[0][1]
    )
