"""Run folders that somebody else prepared: every command ends soon, with its answer or an error of two lines.

Nothing outside the folder is written, deleted or waited for, and no memory is taken that the run's own weights do not need.
"""

import json
import os
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from regard.runs.checkpoints import sha256

NEWEST = "checkpoints/step-00000120"
DEEP = "[" * 100_000
Spoil = Callable[[Path], object]


@pytest.fixture(autouse=True)
def in_bounds() -> Iterator[None]:
    """No command may take more than a minute, or some gigabytes more than this process has."""

    def late(*_: object) -> None:
        raise TimeoutError("the command hangs")

    before = resource.getrlimit(resource.RLIMIT_AS)
    used = (
        int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if Path("/proc").is_dir() else 0
    )
    handler = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    if used:
        resource.setrlimit(resource.RLIMIT_AS, (used + 3 * 2**30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)
    signal.alarm(0)
    signal.signal(signal.SIGALRM, handler)


def put(name: str, what: str) -> Spoil:
    """Put something else in the place of a file or folder."""

    def spoil(run: Path) -> None:
        path, outside = run / name, run.parent / ("folder" if (run / name).is_dir() else "file")
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        if what == "pipe":
            os.mkfifo(path)
        elif what == "folder":
            path.mkdir()
        elif what == "sparse":
            with path.open("wb") as file:
                file.truncate(20 * 2**30)
        else:
            path.symlink_to(outside if what == "link" else what)

    return spoil


def text(name: str, content: str) -> Spoil:
    """Write another text into a file; of a checkpoint's file, as if it had been written so."""

    def spoil(run: Path) -> None:
        (run / name).write_text(content)
        if name != MANIFEST:
            seal(run)

    return spoil


def edit(name: str, before: str, after: str) -> Spoil:
    """Replace a passage of a file."""

    def spoil(run: Path) -> None:
        content = (run / name).read_text()
        assert before in content
        text(name, content.replace(before, after, 1))(run)

    return spoil


def table(name: str, **changes: Any) -> Spoil:
    """Change keys of a JSON file: a__b is the key b of the table a."""

    def spoil(run: Path) -> None:
        content = json.loads((run / name).read_bytes())
        for key, value in changes.items():
            *rooms, last = key.split("__")
            inner = content
            for room in rooms:
                inner = inner[room]
            inner[last] = value
        text(name, json.dumps(content))(run)

    return spoil


def tensors(name: str, change: Callable[[dict[str, torch.Tensor]], Any], tied: str | None = None) -> Spoil:
    """Change the tensors of a file in every checkpoint that has it."""

    def spoil(run: Path) -> None:
        for file in run.glob(f"checkpoints/*/{name}"):
            found = load_file(file)
            save_file(change(found) or found, file, metadata=None if tied is None else {"tied": tied})
        seal(run)

    return spoil


def seal(run: Path) -> None:
    """Write all manifests anew, as if their files were what was written."""
    for file in run.glob("checkpoints/*/manifest.json"):
        manifest = json.loads(file.read_bytes())
        for name in manifest["files"]:
            path = file.parent / name
            manifest["files"][name] = {"size": path.stat().st_size, "sha256": sha256(path)}
        file.write_text(json.dumps(manifest))


MANIFEST, STATE, VOCABULARY = f"{NEWEST}/manifest.json", f"{NEWEST}/state.json", "vocabulary/shared.json"
MODEL = "model.safetensors"

# What is spoilt, what is called, and the beginning of the error; "" where another checkpoint, or none, is needed.
CASES: list[tuple[Spoil, str, str]] = [
    *((put("lock", what), "resume", "{run}/lock cannot be opened: it is a ") for what in ("link", "pipe", "folder")),
    *((put("config.toml", what), "show", "{run}") for what in ("pipe", "folder", "sparse", "link", "/dev/zero")),
    *(
        (put("task.json", what), "resume", "{run}/task.json cannot be read: ")
        for what in ("pipe", "sparse", "/dev/zero")
    ),
    *(
        (put("metrics.jsonl", what), "plot", "{run}/metrics.jsonl ")
        for what in ("pipe", "folder", "sparse", "/dev/zero")
    ),
    (put("metrics.jsonl", "link"), "resume", "{run}"),
    *((put("checkpoints", what), "translate", "{run}") for what in ("link", "pipe")),
    *(
        (put("checkpoints", "link"), command, "{run}/checkpoints is a link")
        for command in ("resume", "average", "show")
    ),
    (put("vocabulary", "link"), "translate", "{run}/vocabulary is a link"),
    *((put(VOCABULARY, what), "translate", "{run}/vocabulary/shared.json: ") for what in ("pipe", "sparse", "link")),
    *(
        (put(f"{NEWEST}/{MODEL}", what), "translate @120", "The checkpoint is damaged: ")
        for what in ("pipe", "/dev/zero")
    ),
    *((put(STATE, what), command, "") for what in ("pipe", "/dev/zero", "folder") for command in ("translate", "show")),
    (put(MANIFEST, "sparse"), "translate", ""),
    *((text(MANIFEST, content), "resume", "") for content in ("3", DEEP, "9" * 5_000)),
    *((text(STATE, content), command, "") for content in ("3", DEEP) for command in ("translate", "resume", "show")),
    (table(STATE, validation={"loss": "x"}), "show", ""),
    (table(STATE, best={"loss": [1]}), "show", ""),
    (table(STATE, best_by=["loss"]), "translate @best", ""),
    (table(STATE, place__epoch=10**30), "resume", ""),
    (table(MANIFEST, **{"files__state.json": {"size": 0, "sha256": 5}}), "translate", ""),
    (table(MANIFEST, **{"files__/dev/zero": {"size": 0, "sha256": "5"}}), "translate", ""),
    (table(MANIFEST, **{"files__a\0b": {"size": 0, "sha256": "5"}}), "show", ""),
    (table("task.json", files={"/dev/zero": "x"}), "resume", "/dev/zero: this is a device"),
    (table("task.json", init={"taken": 3}), "resume", "{run}/task.json is damaged: "),
    (text("task.json", DEEP), "resume", "{run}/task.json is damaged: it is nested too deeply"),
    (text("metrics.jsonl", '{"kind": "valid", "step": 1, "loss": "x"}\n'), "plot", "{run}/metrics.jsonl:1: "),
    (text("metrics.jsonl", f"{DEEP}\n"), "plot", "{run}/metrics.jsonl:1: "),
    (tensors(MODEL, lambda found: None, tied="[1]"), "translate", "No checkpoint of {run} is intact. "),
    (tensors(MODEL, lambda found: None, tied='{"a": "none"}'), "average", "The checkpoint is damaged: "),
    (
        tensors(MODEL, lambda found: {f"x.{name}": one for name, one in found.items()}),
        "translate",
        "{run}/checkpoints/",
    ),
    (tensors(MODEL, lambda found: {name: one.to(torch.complex64) for name, one in found.items()}), "translate", "No "),
    (tensors("ema.safetensors", lambda found: {f"x.{name}": one for name, one in found.items()}), "translate", ""),
    (
        tensors("optimizer.safetensors", lambda found: {"x": torch.zeros(1)}),
        "resume",
        "The optimizer's x belongs to no ",
    ),
    (edit("config.toml", "n_encoder_layers = 1", "n_encoder_layers = 1000000000"), "translate", "{run}/config.toml: "),
    (
        edit("config.toml", "n_encoder_layers = 1", "n_encoder_layers = 500"),
        "resume",
        "{run}/checkpoints/step-00000120",
    ),
    (
        edit("config.toml", "d_ff = 64", "d_ff = 1000000"),
        "translate",
        "{run}/checkpoints/average-00000120 does not fit",
    ),
    *(
        (edit("config.toml", before, f"{before.split()[0]} = 1000000000"), "translate", "{run}/config.toml: ")
        for before in ("d_model = 32", "beam = 5", "min_length = 0", "workers = 0", "threads = 1", "n_heads = 1")
    ),
    (edit("config.toml", "seed = 1", f"seed = {'9' * 5_000}"), "translate", "{run}/config.toml is not valid TOML: "),
    *(
        (
            edit("config.toml", "d_ff = 64", f"d_ff = {date}"),
            command,
            "{run}/config.toml is not valid TOML: a date or time",
        )
        for date in ("2020-01-01", "[12:30:00]")
        for command in ("show", "translate", "resume")
    ),
    (edit("config.toml", "seed = 1", f"seed = {'[' * 5_000}"), "runs", ""),
    (edit("config.toml", "seed = 1", f"a{'.a' * 100_000} = 1"), "runs", ""),
    (
        edit(VOCABULARY, '"dropout": null', '"dropout": 0.5'),
        "translate",
        "{run}/vocabulary/shared.json: not a tokenizer",
    ),
    (
        edit(VOCABULARY, '"padding": null', f'"padding": {DEEP}'),
        "translate",
        "{run}/vocabulary/shared.json: not a token",
    ),
    (
        edit(VOCABULARY, '"<pad>": 0', '"<pad>": 4000000000'),
        "translate",
        "{run}/vocabulary/shared.json: not a tokenizer",
    ),
]
ARGUMENTS = {
    "show": ["show", "{run}"],
    "runs": ["runs", "{runs}"],
    "plot": ["plot", "{run}"],
    "resume": ["resume", "{run}"],
    "average": ["average", "{run}", "--last", "2"],
    "translate": ["translate", "{run}", "a dog"],
    "translate @120": ["translate", "{run}@120", "a dog"],
    "translate @best": ["translate", "{run}@best", "a dog"],
}


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_folder_that_somebody_prepared(number: int, command: Any, own_run: Path) -> None:
    spoil, name, problem = CASES[number]
    file, folder = own_run.parent / "file", own_run.parent / "folder" / ".tmp-mine"
    file.write_text("without an end")
    folder.mkdir(parents=True)
    good = shutil.copytree(own_run, own_run.parent / "good") if name == "runs" else None
    spoil(own_run)
    arguments = [word.format(run=own_run, runs=own_run.parent) for word in ARGUMENTS[name]]
    outcome = command(*arguments)
    assert "Traceback" not in outcome.err
    if problem:
        assert outcome.code in (1, 2)
        assert len(outcome.error) == 2
        assert outcome.error[0].startswith(f"error: {problem.format(run=own_run)}")
    else:
        assert outcome.code == 0, outcome.err
    assert file.read_text() == "without an end"
    assert folder.is_dir()
    assert good is None or str(good) in outcome.out
