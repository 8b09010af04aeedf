"""Weights of another run: which fit, what is told of them, and that a run which was stopped has them still."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.conftest import at_step
from torch import Tensor, nn

from regard import config as configuration
from regard.config import ModelTable, RunConfig
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import learn
from regard.errors import CheckpointError, ConfigError, RunError, UsageError
from regard.runs import checkpoints
from regard.runs.folder import RunFolder
from regard.tasks.translation.task import TranslationTask
from regard.training.events import Event, Report
from regard.training.run import resume, train
from regard.training.weight_match import token_weights
from regard.training.weight_transfer import WarmStart

MakeConfig = Callable[..., RunConfig]
Drive = Callable[..., list[Event]]
TensorsOf = Callable[[Path], dict[str, bytes]]


def weights(run: Path, step: int) -> dict[str, Tensor]:
    return checkpoints.load_weights(checkpoints.verify(run / "checkpoints" / f"step-{step:08d}"))


def facts(events: list[Event]) -> list[tuple[str, str]]:
    """What the report tells of the beginning."""
    labels = (
        *("init from", "weights loaded", "newly initialised", "skipped", "settings differ"),
        *("frozen", "lr scale", "note"),
    )
    return [fact for fact in events[0].facts if fact[0] in labels]


# a run that is initialised from another


@pytest.fixture(scope="module")
def first(make_config: MakeConfig, drive: Drive, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator of two decoder layers, with a moving average. To be read, not changed."""
    path = tmp_path_factory.mktemp("first") / "run"
    drive(train(make_config({"model.n_decoder_layers": 2, "training.ema": 0.7, "training.steps": 4}), path))
    return path


@pytest.fixture
def begin(first: Path, make_config: MakeConfig) -> Callable[..., RunConfig]:
    """Make the config of a run that begins with the first one."""

    def make(settings: dict[str, Any] | None = None) -> RunConfig:
        given = {"model.n_decoder_layers": 2, "training.init": str(first), "training.learning_rate": 0.002}
        given["training.warmup"] = 0
        return make_config({**given, **(settings or {})})

    return make


def test_all_weights_of_the_same_model_are_taken(first: Path, begin: MakeConfig, drive: Drive, tmp_path: Path) -> None:
    config = begin({"training.learning_rate": 0.0, "training.steps": 1})
    events = drive(train(config, tmp_path / "run", vocabulary=first / "vocabulary"))
    n = events[0].n_parameters
    assert facts(events) == [
        ("init from", f"{first}, step-00000004 (transformer-tiny)"),
        (
            "weights loaded",
            f"{n:,} of {n:,} parameters: source_embedding.tokens.weight, encoder.0.… (16 tensors), "
            "encoder_norm.… (2 tensors), decoder.0…decoder.1 (52 tensors), decoder_norm.… (2 tensors)",
        ),
    ]
    # Nothing was learned at a rate of 0: these are the weights that the first run is used with, its moving average.
    expected = checkpoints.load_used_weights(checkpoints.verify(first / "checkpoints" / "step-00000004"))
    found = weights(tmp_path / "run", 1)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert not torch.equal(found["output.weight"], weights(first, 4)["output.weight"])
    assert "## Initialisation\n\n- init from: " in (tmp_path / "run" / "README.md").read_text()


def test_embeddings_are_taken_whether_or_not_text_is_lower_cased(
    first: Path, begin: MakeConfig, drive: Drive, tmp_path: Path
) -> None:
    settings = {"training.learning_rate": 0.0, "training.steps": 1, "tokenizer.lowercase": True}
    events = drive(train(begin(settings), tmp_path / "run", vocabulary=first / "vocabulary"))
    n = events[0].n_parameters
    assert dict(facts(events))["weights loaded"].startswith(f"{n:,} of {n:,} parameters")
    assert ("lower case", "all text is lower-cased, input and output (tokenizer.lowercase)") in events[0].facts
    vocabulary = Tokenizer.load(tmp_path / "run" / "vocabulary" / "shared.json")
    assert vocabulary.lowercase and not Tokenizer.load(first / "vocabulary" / "shared.json").lowercase
    assert drive(resume(tmp_path / "run", settings={"training.steps": 2}))[0].facts == events[0].facts


def test_what_is_new_dropped_or_of_another_shape_is_told(first: Path, begin: MakeConfig, tmp_path: Path) -> None:
    settings = {
        "model.n_encoder_layers": 2,
        "model.n_decoder_layers": 1,
        "model.d_ff": 24,
        "model.n_heads": 1,
        "model.positions": "learned",
        "model.max_positions": 300,
    }
    (report,) = train(begin(settings), tmp_path / "run", vocabulary=first / "vocabulary", dry_run=True)
    told = facts([report])
    assert [label for label, _ in told] == [
        "init from",
        "weights loaded",
        "newly initialised",
        "newly initialised",
        "skipped",
        "settings differ",
    ]
    assert told[2][1] == (
        "source_embedding.positions.weight, encoder.1.… (16 tensors), target_embedding.positions.weight"
    )
    assert told[3][1] == (
        "of another shape: encoder.0.feed_forward.up.weight (32 × 16 there, 24 × 16 here), "
        "encoder.0.feed_forward.up.bias (32 there, 24 here), "
        "encoder.0.feed_forward.down.weight (16 × 32 there, 16 × 24 here) and 3 more"
    )
    assert told[4][1] == "decoder.1.… (26 tensors)"
    assert "n_heads 2 there, 1 here" in told[5][1]


def test_positions_of_another_length_are_new(first: Path, begin: MakeConfig, drive: Drive, tmp_path: Path) -> None:
    positions = {"model.positions": "learned", "model.max_positions": 300, "data.max_length": 40}
    drive(train(begin({**positions, "training.steps": 1}), tmp_path / "a", vocabulary=first / "vocabulary"))
    longer = begin({**positions, "model.max_positions": 310, "training.init": str(tmp_path / "a")})
    (report,) = train(longer, tmp_path / "b", vocabulary=first / "vocabulary", dry_run=True)
    assert facts([report])[2] == (
        "newly initialised",
        "of another shape: source_embedding.positions.weight (300 × 16 there, 310 × 16 here), "
        "target_embedding.positions.weight (300 × 16 there, 310 × 16 here)",
    )


def test_another_vocabulary_of_the_same_size_brings_other_tokens(
    first: Path, begin: MakeConfig, corpus: tuple[str, str], tmp_path: Path
) -> None:
    other = tmp_path / "vocabulary"
    other.mkdir()
    backwards = [text[::-1] for file in corpus for text in Path(file).read_text().splitlines()]
    learn(backwards, kind="bpe", vocab_size=320).save(other / "shared.json")
    (report,) = train(begin(), tmp_path / "run", vocabulary=other, dry_run=True)
    told = facts([report])
    assert told[2:] == [
        ("newly initialised", "source_embedding.tokens.weight"),
        ("skipped", "source_embedding.tokens.weight"),
        ("note", f"the vocabulary differs from that of {first}: the embeddings are newly initialised"),
    ]


def test_rows_of_tokens_are_found_by_their_layers(first: Path) -> None:
    import regard

    model = regard.load(first, threads=1).model
    assert token_weights(model) == {"source_embedding.tokens.weight", "output.weight"}, "one layer is two sides' here"


@pytest.mark.parametrize(
    ("theirs", "own", "n_taken"), [(["a", "b"], ["a", "b"], 2), (["a", "b"], ["b", "c"], 0), (None, ["a", "b"], 0)]
)
def test_a_head_is_taken_with_its_labels_alone(
    theirs: list[str] | None,
    own: list[str],
    n_taken: int,
    first: Path,
    begin: MakeConfig,
    drive: Drive,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With networks of the caller's own and labels that stand for those of a classifier."""
    labels = theirs
    ordinary = TranslationTask.save

    def save(self: TranslationTask, vocabulary: Path) -> None:
        ordinary(self, vocabulary)
        if labels is not None:
            (vocabulary / "labels.json").write_text(json.dumps({"labels": labels}))

    monkeypatch.setattr(TranslationTask, "save", save)
    config = dataclasses.replace(begin({"training.init": "", "training.steps": 1}), model=ModelTable())
    drive(train(config, tmp_path / "a", model=Headed(seed=1), vocabulary=first / "vocabulary"))
    labels = own
    again = dataclasses.replace(config, training=dataclasses.replace(config.training, init=str(tmp_path / "a")))
    drive(train(again, tmp_path / "b", model=Headed(seed=2), vocabulary=first / "vocabulary"))
    taken = json.loads((tmp_path / "b" / "task.json").read_text())["init"]["taken"]
    assert "embedding.weight" in taken
    assert len([name for name in taken if name.startswith("head.")]) == n_taken


class Headed(nn.Module):
    """Somebody's own network, whose top is called its head."""

    def __init__(self, *, seed: int) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embedding, self.head = nn.Embedding(320, 8), nn.Linear(8, 320)

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        out: Tensor = self.head(self.embedding(target) + self.embedding(source).mean(1, keepdim=True))
        return out


def test_labels_of_a_ready_vocabulary_stay_where_they_are(
    first: Path, begin: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = Path(shutil.copytree(first / "vocabulary", tmp_path / "vocabulary"))
    (ready / "labels.json").write_text('{"labels": ["a"]}')
    seen: list[Path] = []
    ordinary = TranslationTask.prepare.__func__  # type: ignore[attr-defined]

    def prepare(cls: type[TranslationTask], config: RunConfig, *, vocabulary: Path, progress: Any) -> Any:
        seen.extend(vocabulary.iterdir())
        assert (vocabulary / "shared.json").read_bytes() == (ready / "shared.json").read_bytes()
        return ordinary(cls, config, vocabulary=vocabulary, progress=progress)

    monkeypatch.setattr(TranslationTask, "prepare", classmethod(prepare))
    list(train(begin(), tmp_path / "run", vocabulary=ready, dry_run=True))
    assert [file.name for file in seen] == ["shared.json"]
    assert not seen[0].exists(), "it was lent"


# what cannot be loaded


def language(corpus: tuple[str, str], preset: str, **settings: Any) -> RunConfig:
    tables: dict[str, Any] = {
        "task": "language",
        "data": {"train": [corpus[0]]},
        "tokenizer": {"kind": "characters"},
        "model": {"preset": preset, "n_layers": 2, "n_heads": 2, "d_model": 16, "context": 16},
        "training": {
            "steps": 4,
            "batch_tokens": 64,
            "schedule": "constant",
            "warmup": 0,
            "validate_every": 2,
            **settings,
        },
        "runtime": {"device": "cpu", "threads": 1},
    }
    return configuration.from_tables(tables, origin="test")


@pytest.fixture(scope="module")
def gpt(corpus: tuple[str, str], drive: Drive, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny language model. To be read, not changed."""
    path = tmp_path_factory.mktemp("gpt") / "run"
    drive(train(language(corpus, "gpt-nano"), path))
    return path


def test_another_family_is_refused(gpt: Path, corpus: tuple[str, str], tmp_path: Path) -> None:
    config = language(corpus, "llama-nano", init=str(gpt))
    with pytest.raises(CheckpointError) as caught:
        next(train(config, tmp_path / "run", vocabulary=gpt / "vocabulary"))
    assert caught.value.problem == (
        f"Cannot load weights of {gpt} (gpt-nano) into llama-nano: the architectures differ."
    )
    assert caught.value.remedy == "Choose another model with --model, or initialise from a run of llama-nano."
    assert not (tmp_path / "run").exists()


def test_a_model_of_other_sizes_is_refused(gpt: Path, corpus: tuple[str, str], tmp_path: Path) -> None:
    config = language(corpus, "gpt-nano", init=str(gpt))
    wider = dataclasses.replace(config, model=ModelTable(preset="gpt-nano", fields={"context": 16}))
    with pytest.raises(CheckpointError) as caught:
        next(train(wider, tmp_path / "run", vocabulary=gpt / "vocabulary"))
    assert caught.value.problem == f"No weight of {gpt} (gpt-nano) matches the new model (gpt-nano)."
    assert caught.value.remedy == (
        f"Initialise from a run of the same model and sizes, or leave --model out to use those of {gpt}."
    )


def test_a_network_of_ones_own_that_has_nothing_in_common(gpt: Path, corpus: tuple[str, str], tmp_path: Path) -> None:
    config = dataclasses.replace(language(corpus, "gpt-nano", init=str(gpt)), model=ModelTable())
    with pytest.raises(CheckpointError) as caught:
        next(train(config, tmp_path / "run", model=nn.Linear(2, 2), vocabulary=gpt / "vocabulary"))
    assert caught.value.problem == f"No weight of {gpt} (gpt-nano) matches the new model (a custom network)."


def test_a_checkpoint_that_is_not_there_is_told_before_the_data_are_read(
    gpt: Path, corpus: tuple[str, str], tmp_path: Path
) -> None:
    config = language(corpus, "gpt-nano", init=f"{gpt}@3")
    unread = dataclasses.replace(config, data=dataclasses.replace(config.data, train=("no such file",)))
    with pytest.raises(CheckpointError) as caught:
        next(train(unread, tmp_path / "run"))
    assert caught.value.problem == f"{gpt} has no checkpoint of step 3."
    assert caught.value.remedy == "There is one of: 2, 4."


def test_a_damaged_checkpoint_is_skipped_and_told(gpt: Path, corpus: tuple[str, str], tmp_path: Path) -> None:
    copied = Path(shutil.copytree(gpt, tmp_path / "gpt"))
    (copied / "checkpoints" / "step-00000004" / "model.safetensors").write_bytes(b"nothing")
    config = language(corpus, "gpt-nano", init=f"{copied}@last")
    (report,) = train(config, tmp_path / "run", vocabulary=copied / "vocabulary", dry_run=True)
    told = facts([report])
    assert told[0] == ("init from", f"{copied}@last, step-00000002 (gpt-nano)")
    assert told[-1][0] == "note" and told[-1][1].startswith("step-00000004 is skipped. The checkpoint is damaged: ")


# the same bytes, whatever happens


APART: list[dict[str, Any]] = [
    {},
    {"training.freeze_init": True, "model.n_encoder_layers": 2},
    {"training.init_lr_scale": 0.5, "training.layer_decay": 0.7, "model.n_encoder_layers": 2},
]


@pytest.mark.parametrize("apart", APART, ids=["plain", "frozen", "slow"])
def test_stopped_and_resumed_to_the_same_bytes(
    apart: dict[str, Any], first: Path, begin: MakeConfig, drive: Drive, tmp_path: Path, tensors_of: TensorsOf
) -> None:
    source = Path(shutil.copytree(first, tmp_path / "first"))
    settings = {"training.init": str(source), "training.ema": 0.8, "training.weight_decay": 0.1, **apart}
    config = begin({**settings, "training.validate_every": 4, "training.save_every_steps": 4})
    whole = drive(train(config, tmp_path / "whole", vocabulary=source / "vocabulary"))
    for stop, when in ((2, "before-the-first-save"), (5, "after-it")):
        drive(train(config, tmp_path / when, vocabulary=source / "vocabulary"), at_step(stop))
        if stop == 5:
            shutil.rmtree(source)  # the checkpoint has all that is needed
        resumed = drive(resume(tmp_path / when))
        assert isinstance(resumed[0], Report)
        assert facts(resumed) == facts(whole)
        assert tensors_of(tmp_path / when) == tensors_of(tmp_path / "whole"), when
        cards = [(tmp_path / name / "README.md").read_text() for name in ("whole", when)]
        assert cards[0].split("\n", 1)[1] == cards[1].split("\n", 1)[1].replace(when, "whole")


def test_frozen_layers_stay_as_they_are_and_the_rest_learns(
    first: Path, begin: MakeConfig, drive: Drive, tmp_path: Path
) -> None:
    config = begin({"training.freeze_init": True, "training.weight_decay": 0.1, "model.n_encoder_layers": 2})
    events = drive(train(config, tmp_path / "run", vocabulary=first / "vocabulary"))
    n_frozen = sum(tensor.numel() for name, tensor in weights(first, 4).items() if name not in TIED)
    assert facts(events)[-1] == ("frozen", f"{n_frozen:,} parameters")
    before = checkpoints.load_used_weights(checkpoints.verify(first / "checkpoints" / "step-00000004"))
    four, eight = (weights(tmp_path / "run", step) for step in (4, 8))
    for name, tensor in eight.items():
        assert torch.equal(tensor, four[name]) == (name in before), name
        assert name not in before or torch.equal(tensor, before[name])


TIED = ("target_embedding.tokens.weight", "output.weight")


def test_a_lower_rate_moves_less(first: Path, begin: MakeConfig, drive: Drive, tmp_path: Path) -> None:
    before = checkpoints.load_used_weights(checkpoints.verify(first / "checkpoints" / "step-00000004"))
    moved = {}
    for name, decay in (("plain", 1.0), ("decayed", 0.1)):
        config = begin({"training.layer_decay": decay, "training.steps": 1, "training.clip": 0.0})
        drive(train(config, tmp_path / name, vocabulary=first / "vocabulary"))
        after = weights(tmp_path / name, 1)
        moved[name] = {key: float((after[key] - before[key]).norm()) for key in before}
    share = {key: moved["decayed"][key] / moved["plain"][key] for key in before if moved["plain"][key] > 0}
    assert share["decoder.1.feed_forward.down.weight"] == pytest.approx(1, rel=1e-3)
    assert share["decoder.0.feed_forward.down.weight"] == pytest.approx(0.1, rel=1e-2)
    assert share["encoder.0.feed_forward.down.weight"] == pytest.approx(1, rel=1e-3)
    assert share["source_embedding.tokens.weight"] == pytest.approx(0.1, rel=1e-2)  # one encoder layer above it


@pytest.mark.parametrize("loss", ["gone", "changed"])
def test_stopped_before_its_first_save_a_run_needs_the_other_one(
    loss: str, first: Path, begin: MakeConfig, drive: Drive, tmp_path: Path
) -> None:
    source = Path(shutil.copytree(first, tmp_path / "first"))
    config = begin({"training.init": f"{source}@4", "training.save_every_minutes": 0.0})
    drive(train(config, tmp_path / "run", vocabulary=source / "vocabulary"), at_step(2))
    checkpoint = source / "checkpoints" / "step-00000004"
    if loss == "gone":
        shutil.rmtree(source)
    else:
        drive(train(begin({"training.steps": 4, "training.init": "", "seed": 5}), tmp_path / "other"))
        shutil.rmtree(checkpoint)
        shutil.copytree(tmp_path / "other" / "checkpoints" / "step-00000004", checkpoint)
    with pytest.raises(RunError) as caught:
        next(resume(tmp_path / "run"))
    assert caught.value.problem.startswith(
        f"{tmp_path}/run has no checkpoint yet, and the one it was initialised from, {checkpoint}, "
        + (f"cannot be loaded. {checkpoint} no longer exists." if loss == "gone" else "has changed.")
    )
    assert caught.value.remedy == "Restore that checkpoint, or train a new run."


def test_stopped_before_its_first_save_a_run_needs_its_own_network(
    first: Path, begin: MakeConfig, drive: Drive, tmp_path: Path
) -> None:
    config = dataclasses.replace(begin({"training.init": "", "training.steps": 4}), model=ModelTable())
    drive(train(config, tmp_path / "a", model=Headed(seed=1), vocabulary=first / "vocabulary"))
    again = dataclasses.replace(config, training=dataclasses.replace(config.training, init=str(tmp_path / "a")))
    drive(train(again, tmp_path / "b", model=Headed(seed=2), vocabulary=first / "vocabulary"), at_step(2))
    with pytest.raises(RunError) as caught:
        next(resume(tmp_path / "b", model=nn.Linear(2, 2)))
    assert caught.value.problem == (
        f"{tmp_path}/b was initialised with weights that this network does not have: embedding.weight, "
        "head.… (2 tensors)."
    )
    assert caught.value.remedy == "Resume with the same network."
    drive(resume(tmp_path / "b", model=Headed(seed=3)))


def test_init_cannot_change_on_resume(first: Path, begin: MakeConfig, drive: Drive, tmp_path: Path) -> None:
    drive(train(begin({"training.steps": 1}), tmp_path / "run", vocabulary=first / "vocabulary"))
    with pytest.raises(UsageError) as caught:
        next(resume(tmp_path / "run", settings={"training.init": "runs/other"}))
    assert caught.value.problem == "training.init cannot change on resume."
    assert caught.value.remedy == "Train a new run with other settings."


def test_frozen_layers_may_be_thawed_later(first: Path, begin: MakeConfig, drive: Drive, tmp_path: Path) -> None:
    config = begin({"training.freeze_init": True, "training.steps": 2, "model.n_encoder_layers": 2})
    drive(train(config, tmp_path / "run", vocabulary=first / "vocabulary"))
    settings = {"training.freeze_init": False, "training.init_lr_scale": 0.1, "training.steps": 4}
    events = drive(resume(tmp_path / "run", settings=settings))
    assert facts(events)[-1] == ("lr scale", "0.1")
    two, four = (weights(tmp_path / "run", step) for step in (2, 4))
    assert all(not torch.equal(two[name], four[name]) for name in ("encoder.0.feed_forward.up.weight", "output.weight"))


def test_the_other_run_is_found_from_any_folder(
    first: Path, begin: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(first.parent)
    config = begin({"training.init": "run@best"})
    (report,) = train(config, tmp_path / "run", vocabulary=first / "vocabulary", dry_run=True)
    assert report.config.training.init == f"{first}@best"


def test_frozen_layers_need_another_run(make_config: MakeConfig, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^--freeze-init needs --init RUN"):
        next(train(make_config({"training.freeze_init": True}), tmp_path / "run"))


@pytest.mark.parametrize(
    "init",
    [
        3,
        {},
        {"checkpoint": 3, "files": {}, "taken": [], "facts": []},
        {"checkpoint": "a\0b", "files": {}, "taken": [], "facts": []},
        {"checkpoint": "a", "files": 3, "taken": [], "facts": []},
        {"checkpoint": "a", "files": {}, "taken": [3], "facts": []},
        {"checkpoint": "a", "files": {}, "taken": [], "facts": [["one"]]},
        {"checkpoint": "a", "files": {}, "taken": [], "facts": [["one", 2]]},
    ],
)
def test_what_a_run_says_of_its_initialisation_is_checked(init: object, tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.write_task({"init": init})
    with pytest.raises(RunError) as caught:
        WarmStart.of_run(run)
    assert caught.value.problem == f"{run.task_file} is damaged: it does not say what the run was initialised with."
