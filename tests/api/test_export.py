"""Exports: whole or not at all, beside nothing that is there already, and of no network of one's own."""

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from torch import nn

import regard
from regard.api import Run
from regard.api.export import exportable
from regard.errors import ConfigError, RegardError, RunError, UsageError
from regard.exchange.export_kinds import ExportKind


@pytest.fixture
def run(trained: Path) -> Run[Any]:
    return regard.load(trained, device="cpu", threads=1)


def test_a_run_is_exported_by_its_name_or_when_it_is_loaded(trained: Path, run: Run[Any], tmp_path: Path) -> None:
    assert regard.export(trained, "safetensors", tmp_path / "a") == ()
    assert run.export("safetensors", str(tmp_path / "b")) == ()
    assert regard.export(str(trained), to="safetensors", out=tmp_path / "c") == ()
    contents = [{one.name: one.read_bytes() for one in (tmp_path / name).iterdir()} for name in "abc"]
    assert contents[0] == contents[1] == contents[2]
    assert {one.name for one in tmp_path.iterdir()} == {"a", "b", "c"}  # and nothing half-written


def test_the_checkpoint_is_the_one_that_is_named(trained: Path, tmp_path: Path) -> None:
    regard.export(f"{trained}@40", "safetensors", tmp_path / "out")
    given = exportable(regard.load(f"{trained}@40", device="cpu", threads=1))
    last = exportable(regard.load(trained, device="cpu", threads=1))
    name = "source_embedding.tokens.weight"
    assert not torch.equal(given.weights[name], last.weights[name])
    assert "Exported from checkpoint `step-00000040`." in (tmp_path / "out" / "README.md").read_text()


def test_a_card_tells_of_the_run_and_not_of_its_folder(trained: Path, run: Run[Any]) -> None:
    own = (trained / "README.md").read_text()
    assert "\n## Use\n" in own  # behind which the commands of the run stand
    card = exportable(run).card
    assert card.startswith(own.partition("\n## Use\n")[0])
    assert "config.toml" not in card
    assert card.endswith("\n\nExported from checkpoint `average-00000120`.\n")


def test_what_was_imported_has_no_card(run: Run[Any], tmp_path: Path) -> None:
    run.export("huggingface", tmp_path / "out")
    imported = regard.import_model(tmp_path / "out", run=tmp_path / "imported")
    assert exportable(imported).card == "# imported\n\nExported from checkpoint `step-00000000`.\n"


def test_folders_on_the_way_are_made(run: Run[Any], tmp_path: Path) -> None:
    run.export("safetensors", tmp_path / "new" / "folder" / "out")
    assert (tmp_path / "new" / "folder" / "out" / "model.safetensors").is_file()


def test_what_is_there_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("file", "folder", "link"):
        with pytest.raises(UsageError) as caught:
            regard.export(tmp_path / "no-run", "safetensors", tmp_path / name)
        assert str(caught.value) == f"{tmp_path / name} is already there.\nGive a new name."
    assert (tmp_path / "file").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


def test_a_run_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not a run: there is no such folder"):
        regard.export(tmp_path / "no-run", "safetensors", tmp_path / "new" / "out")
    assert not list(tmp_path.iterdir())


def test_settings_that_a_kind_does_not_take(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        regard.export(trained, "ctranslate2", tmp_path / "out", compute_typ="int8")
    assert (
        str(caught.value)
        == "There is no setting 'compute_typ' of an export to ctranslate2.\nDid you mean compute_type?"
    )
    with pytest.raises(UsageError) as caught:
        regard.export(trained, "onnx", tmp_path / "out", compute_type="int8")
    assert str(caught.value) == "There is no setting 'compute_type' of an export to onnx.\nLeave it out."


class Failing:
    """A kind whose function writes something and fails."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, kind: ExportKind, path: Path, given: Any, settings: Mapping[str, Any]) -> Sequence[str]:
        if kind.is_file:
            path.write_text("half")
        else:
            (path / "inner").mkdir()
            (path / "inner" / "file").write_text("half")
        raise self.error


ERRORS = [
    (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
    (SafetensorError("I/O error: full"), "I/O error: full"),
    (ConfigError("model.x has no counterpart.", "Train another."), None),
    (KeyboardInterrupt(), None),
]


@pytest.mark.parametrize("kind", ["safetensors", "argos"])
@pytest.mark.parametrize(("error", "reason"), ERRORS, ids=[type(error).__name__ for error, _ in ERRORS])
def test_what_fails_leaves_nothing(
    error: BaseException,
    reason: str | None,
    kind: str,
    run: Run[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failing = Failing(error)
    monkeypatch.setattr(ExportKind, "write", lambda *given: failing(*given))
    (tmp_path / "there").mkdir()
    for out in (tmp_path / "new" / "folder" / "out", tmp_path / "there" / "out"):
        with pytest.raises(RegardError if reason else type(error)) as caught:
            run.export(kind, out)
        if reason:
            assert str(caught.value) == f"{out} cannot be written: {reason}.\nGive another place, or free some space."
    assert [one.name for one in tmp_path.iterdir()] == ["there"]
    assert not list((tmp_path / "there").iterdir())


def test_a_place_where_nothing_can_be_written(run: Run[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RegardError, match=r"file/out cannot be written: (File exists|Not a directory)\.\nGive another"):
        run.export("safetensors", tmp_path / "file" / "out")
    assert (tmp_path / "file").read_text() == "mine"

    def refuse(path: Path, *args: Any, **kwargs: Any) -> None:  # as where one may not write; root may anywhere
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(RegardError) as caught:
        run.export("safetensors", tmp_path / "out")
    assert caught.value.problem == f"{tmp_path / 'out'} cannot be written: Permission denied."


def test_a_network_of_ones_own(run: Run[Any], trained: Path, tmp_path: Path) -> None:
    run._network = nn.Linear(2, 2)
    with pytest.raises(ConfigError) as caught:
        run.export("safetensors", tmp_path / "out")
    assert str(caught.value) == (
        f"{trained} trained a network of your own, which no other program knows.\n"
        "Save its state_dict, or export it with torch.onnx yourself."
    )
    assert not list(tmp_path.iterdir())
