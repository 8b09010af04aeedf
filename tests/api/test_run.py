"""Runs from Python: loaded, trained, resumed, scored, compared, averaged."""

import inspect
import itertools
import json
import re
import shutil
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import regard
from regard.api import Run, Translator, with_defaults
from regard.config import DataConfig, DecodingConfig, RunConfig, TrainingConfig
from regard.data.pipeline.validation_split import ValidationSplit
from regard.data.text.tokenizer_training import learn
from regard.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    LockedError,
    RegardError,
    RunError,
    TrainingError,
    UsageError,
)
from regard.evaluation.comparison import Comparison
from regard.evaluation.generated_text import score_translations
from regard.runs import checkpoints
from regard.runs.folder import RunFolder
from regard.runs.lock import locked
from regard.runs.metrics import read as read_metrics
from regard.runs.selection import prune
from regard.tasks.translation.task import read_test_set
from regard.training.events import Finished, Report, Updated

GREEDY = DecodingConfig(beam=1)


@pytest.fixture(scope="module")
def run(trained: Path) -> Run:
    return regard.load(trained, threads=1)


@pytest.fixture
def copied(trained: Path, tmp_path: Path) -> Path:
    """A copy of the trained run that may be changed."""
    return Path(shutil.copytree(trained, tmp_path / "copied"))


@pytest.fixture(scope="module")
def test_set(corpus: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The first twelve pairs of the corpus."""
    folder = tmp_path_factory.mktemp("test_set")
    for file in corpus:
        lines = Path(file).read_text().splitlines(keepends=True)[:12]
        (folder / Path(file).name).write_text("".join(lines))
    return str(folder / "train.en"), str(folder / "train.de")


def same(one: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))


# load


def test_a_loaded_run_is_ready(run: Run, trained: Path) -> None:
    (translation,) = run.translate(["a dog runs"])
    assert translation.text
    assert translation.source == "a dog runs"
    assert not run.model.training
    assert run.notes == ()
    assert run.n_parameters == sum(parameter.numel() for parameter in run.model.parameters())
    assert str(run.reference) == str(trained)


def test_plain_run_means_the_average_and_words_and_steps_their_own(run: Run, trained: Path) -> None:
    assert run.checkpoint.path.name == "average-00000120"
    assert same(run.model, regard.load(f"{trained}@average", threads=1).model)
    assert regard.load(f"{trained}@last", threads=1).checkpoint.path.name == "step-00000120"
    assert regard.load(f"{trained}@80", threads=1).checkpoint.path.name == "step-00000080"
    losses = {
        record["step"]: record["loss"] for record in read_metrics(RunFolder(trained)) if record["kind"] == "valid"
    }
    assert regard.load(f"{trained}@best", threads=1).checkpoint.step == min(losses, key=lambda step: losses[step])


def test_where_a_moving_average_was_kept_it_is_what_is_loaded(trained: Path) -> None:
    loaded = regard.load(f"{trained}@80", threads=1)
    average = checkpoints.load_weights(loaded.checkpoint, which="ema")
    parameters = dict(loaded.model.named_parameters())
    assert parameters.keys() == average.keys()
    assert all(torch.equal(parameter, average[name]) for name, parameter in parameters.items())
    # Source, target and output share one matrix, which the average knows by its first name only.
    assert loaded.model.output.weight is loaded.model.source_embedding.tokens.weight
    recorded = {record["step"]: record for record in read_metrics(RunFolder(trained)) if record["kind"] == "valid"}
    sources, targets = (Path(file).read_text().splitlines() for file in loaded.config.data.train)
    choice = ValidationSplit(loaded.config.data.valid_size)
    for source in sources:
        choice.add(source)
    held_out = [pair for pair in zip(sources, targets, strict=True) if choice.held_out().holds(pair[0])]
    assert loaded.task.reference_loss(loaded.model, *zip(*held_out, strict=True))[0] == pytest.approx(
        recorded[80]["loss"], rel=1e-5
    )


def test_a_damaged_checkpoint_is_skipped_and_said(copied: Path) -> None:
    (copied / "checkpoints" / "average-00000120" / "model.safetensors").write_bytes(b"?")
    loaded = regard.load(copied, threads=1)
    (note,) = loaded.notes
    assert note.startswith("average-00000120 is skipped. The checkpoint is damaged: ")
    assert loaded.checkpoint.path.name.startswith("step-")


def test_a_folder_that_is_no_run_is_told_apart(tmp_path: Path, copied: Path) -> None:
    with pytest.raises(RunError) as caught:
        regard.load(tmp_path / "copid")
    assert caught.value.problem == f"{tmp_path / 'copid'} is not a run: there is no such folder."
    assert caught.value.remedy == f"Did you mean {copied}?"


def test_a_config_of_another_model_does_not_fit(copied: Path) -> None:
    file = copied / "config.toml"
    file.write_text(file.read_text().replace("d_ff = 64", "d_ff = 65"))
    with pytest.raises(CheckpointError) as caught:
        regard.load(copied, threads=1)
    assert caught.value.problem.startswith(
        f"{copied / 'checkpoints' / 'average-00000120'} does not fit the model of the run's config.toml: "
    )
    assert caught.value.remedy == "Put back the config that the run was trained with."


@pytest.mark.parametrize(("asked", "threads"), [({}, 2), ({"threads": 1}, 1)])
def test_the_environment_says_how_many_threads_use_a_run_unless_the_caller_does(
    trained: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, int], threads: int
) -> None:
    before = torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    try:
        run = regard.load(trained, **asked)
        assert (run.config.runtime.threads, torch.get_num_threads()) == (1, threads)
    finally:
        torch.set_num_threads(before)


# train and resume


def test_train_gives_a_run_and_tells_its_events(corpus: tuple[str, str], tiny: dict[str, Any], tmp_path: Path) -> None:
    events: list[Any] = []
    run = regard.train(
        "translate",
        train=corpus,
        valid=corpus,
        run=tmp_path / "run",
        model="transformer-tiny",
        settings={**tiny, "training.steps": 3, "seed": 7},
        watch=events.append,
    )
    assert isinstance(run, Run)
    assert run.config.seed == 7
    assert run.config.model.preset == "transformer-tiny"
    assert run.checkpoint.path.name == "step-00000003"
    assert isinstance(events[0], Report)
    assert isinstance(events[-1], Finished)
    assert dict(events[0].facts)["validation"] == "90 pairs"
    regard.resume(tmp_path / "run", settings={"training.steps": 5}, watch=events.append)
    assert events[-1].step == 5
    assert [event.update.step for event in events if isinstance(event, Updated)] == [1, 2, 3, 4, 5]


def test_a_wrong_setting_gets_the_near_name(corpus: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        regard.train("translate", train=corpus, run=tmp_path / "run", settings={"training.step": 3})
    assert caught.value.problem == "regard.train: there is no key training.step."
    assert caught.value.remedy == "Did you mean steps?"
    with pytest.raises(UsageError) as unknown:
        regard.train("translate", train=corpus, run=tmp_path / "run", model="transformer-tinny")
    assert unknown.value.problem == "There is no model 'transformer-tinny'."
    assert unknown.value.remedy == "Did you mean transformer-tiny?"
    assert not (tmp_path / "run").exists()


class MyModel(nn.Module):
    """Somebody's own network: source words as a bag, target words one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.dropout, self.top = nn.Embedding(320, 16), nn.Dropout(0.1), nn.Linear(16, 320)

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        real = torch.arange(source.shape[1]) < source_lengths[:, None]
        bag = (self.embedding(source) * real[..., None]).sum(1, keepdim=True)
        return self.top(self.dropout(self.embedding(target) + bag))


def test_a_network_of_ones_own_is_trained(corpus: tuple[str, str], tiny: dict[str, Any], tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = MyModel()
    events: list[Any] = []
    settings = {**tiny, "training.steps": 30, "training.validate_every": 15, "training.learning_rate": 0.05}
    path = tmp_path / "run"
    trained = regard.train("translate", train=corpus, run=path, model=model, settings=settings, watch=events.append)
    assert isinstance(trained, Translator)
    assert trained.model is model
    assert not model.training
    losses = [event.update.loss for event in events if isinstance(event, Updated)]
    assert losses[-1] < 0.7 * losses[0]
    assert set(events[-1].best) == {"step", "loss", "perplexity"}
    assert 'preset = ""\n' in (path / "config.toml").read_text()
    assert "a custom network, " in (path / "README.md").read_text()
    with pytest.raises(RunError, match="trained with a custom network"):
        regard.load(path)
    loaded = regard.load(path, model=MyModel(), threads=1)
    assert same(loaded.model, model)
    regard.resume(path, model=MyModel(), settings={"training.steps": 32}, watch=events.append)
    assert events[-1].step == 32


def test_a_network_of_ones_own_that_is_too_small_for_the_vocabulary(
    corpus: tuple[str, str], tiny: dict[str, Any], tmp_path: Path
) -> None:
    model = MyModel()
    model.embedding = nn.Embedding(20, 16)
    with pytest.raises(TrainingError) as caught:
        regard.train(
            "translate", train=corpus, run=tmp_path / "run", model=model, settings={**tiny, "training.steps": 2}
        )
    assert caught.value.problem == "The network raised an IndexError: index out of range in self."
    assert caught.value.remedy.endswith("by the data they are: source_vocab 320, target_vocab 320.")


def test_a_network_of_ones_own_comes_back_as_it_will_be_loaded(
    corpus: tuple[str, str], tiny: dict[str, Any], tmp_path: Path
) -> None:
    torch.manual_seed(1)
    model = MyModel()
    settings = {**tiny, "training.steps": 8, "training.learning_rate": 0.05, "training.ema": 0.9}
    regard.train("translate", train=corpus, run=tmp_path / "run", model=model, settings=settings)
    assert same(model, regard.load(tmp_path / "run", model=MyModel(), threads=1).model)


def test_files_may_be_paths_and_one_file_needs_no_list(
    corpus: tuple[str, str], tiny: dict[str, Any], tmp_path: Path
) -> None:
    table = tmp_path / "pairs.tsv"
    sides = [Path(file).read_text().splitlines() for file in corpus]
    table.write_text("".join(f"{source}\t{target}\n" for source, target in zip(*sides, strict=True)))
    settings = {**tiny, "training.steps": 2, "training.validate_samples": 0}
    for number, train in enumerate((table, str(table), [table])):
        run = regard.train("translate", train=train, run=tmp_path / f"run{number}", settings=settings)
        assert isinstance(run, Run)
        assert run.config.data.train == (str(table),)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_caller_too_once_the_run_is_saved(
    corpus: tuple[str, str], tiny: dict[str, Any], tmp_path: Path, number: signal.Signals
) -> None:
    reached: list[int] = []

    def stop(number: int, frame: object) -> None:
        raise SystemExit(number)

    before = signal.signal(number, stop)

    def watch(event: Any) -> None:
        if isinstance(event, Updated):
            reached.append(event.update.step)
            if event.update.step == 3:
                signal.raise_signal(number)

    try:
        with pytest.raises(SystemExit) as caught:
            regard.train("translate", train=corpus, run=tmp_path / "run", settings=tiny, watch=watch)
    finally:
        signal.signal(number, before)
    assert caught.value.code == number
    assert reached == [1, 2, 3]
    assert (tmp_path / "run" / "checkpoints" / "step-00000003").is_dir()


def test_what_a_user_need_not_say() -> None:
    plain = with_defaults(RunConfig(task="translate"))
    assert plain.model.preset == "transformer-tiny"
    assert (plain.training.steps, plain.training.patience) == (10_000, 10)
    ended = with_defaults(RunConfig(task="translate", training=TrainingConfig(minutes=3)))
    assert (ended.training.steps, ended.training.patience) == (0, 0)
    for task, epochs in {"classify": 6, "tag": 10, "regress": 10}.items():
        labelled = with_defaults(RunConfig(task=task)).training
        assert (labelled.steps, labelled.epochs, labelled.min_steps, labelled.patience) == (0, epochs, 500, 4)
        asked = with_defaults(RunConfig(task=task, training=TrainingConfig(epochs=3))).training
        assert (asked.epochs, asked.min_steps) == (3, 0)
    for task in ("language", "mask", "denoise"):
        written = with_defaults(RunConfig(task=task)).training
        assert (written.steps, written.epochs, written.patience) == (10_000, 0, 10)
    impatient = with_defaults(RunConfig(task="translate", training=TrainingConfig(patience=2)))
    assert impatient.training.patience == 2


def test_a_run_begins_with_another(trained: Path, corpus: tuple[str, str], tmp_path: Path) -> None:
    events: list[Any] = []
    settings = {"training.init": f"{trained}@best", "training.steps": 1, "training.learning_rate": 0.0}
    settings |= {"training.batch_tokens": 96, "training.validate_samples": 0, "runtime.threads": 1}
    settings |= {"training.muon_learning_rate": 0.0}
    run = regard.train("translate", train=corpus, run=tmp_path / "run", settings=settings, watch=events.append)
    assert isinstance(run, Run)
    assert same(run.model, regard.load(f"{trained}@best", threads=1).model), "at a rate of 0 it is the other one"
    assert dict(events[0].facts)["init from"].startswith(f"{trained}@best, step-")
    assert run.task.vocabulary.fingerprint() == regard.load(trained).task.vocabulary.fingerprint()


def test_a_network_of_ones_own_begins_with_another_of_its_kind(
    corpus: tuple[str, str], tiny: dict[str, Any], tmp_path: Path
) -> None:
    settings = {**tiny, "training.steps": 1}
    torch.manual_seed(1)
    regard.train("translate", train=corpus, run=tmp_path / "a", model=MyModel(), settings=settings)
    settings |= {"training.init": str(tmp_path / "a"), "training.learning_rate": 0.0}
    second = regard.train("translate", train=corpus, run=tmp_path / "b", model=MyModel(), settings=settings)
    assert same(second.model, regard.load(tmp_path / "a", model=MyModel(), threads=1).model)


# translate


def test_runs_of_different_vocabularies_cannot_vote(
    run: Run, corpus: tuple[str, str], tiny: dict[str, Any], tmp_path: Path
) -> None:
    settings = {**tiny, "training.steps": 1, "tokenizer.vocab_size": 300, "training.validate_samples": 0}
    other = regard.train("translate", train=corpus, run=tmp_path / "other", settings=settings)
    assert isinstance(other, Run)
    with pytest.raises(UsageError) as caught:
        run.translate(["a dog"], ensemble=[other])
    assert caught.value.problem == (
        f"{other.reference} has another vocabulary than {run.reference}: they cannot vote on tokens."
    )
    assert caught.value.remedy == ("Train the runs of an ensemble on one vocabulary (regard train … --vocabulary RUN).")


def test_a_run_of_another_task_does_not_translate(run: Run) -> None:
    with pytest.raises(UsageError) as caught:
        regard.Classifier.load(run.reference)
    problem = f"{run.reference} is a Translator, not a Classifier: it was trained for the task 'translate'."
    assert caught.value.problem == problem
    assert caught.value.remedy == f"Use it with: regard translate {run.reference}"
    assert isinstance(Translator.load(run.reference), Translator)
    assert not hasattr(run, "predict")
    assert not hasattr(run, "generate")


def test_the_runs_own_decoding_is_the_default(trained: Path) -> None:
    run, line = regard.load(trained, threads=1, engine="torch"), ["a dog runs"]
    assert run.translate(line) == run.translate(line, decoding=run.config.decoding)
    told: list[tuple[str, int]] = []
    run.translate(line * 5, decoding=GREEDY, batch_size=2, progress=lambda what, done: told.append((what, done)))
    assert told == [("translating", 2), ("translating", 4), ("translating", 5)]


def test_one_text_gives_one_result_and_settings_go_by_their_names(run: Run) -> None:
    one = run.translate("a dog runs", beam=1)
    assert one == run.translate(["a dog runs"], decoding=GREEDY)[0]
    assert one.to_json()["translations"][0]["text"] == one.text
    assert run.embed("a dog").vector.tolist() == run.embed(["a dog"])[0].vector.tolist()
    several = run.translate("a dog runs", beam=4, n_best=2)
    assert [line.split("\t")[1] for line in several.lines()] == [output.text for output in several.outputs]
    with pytest.raises(UsageError) as caught:
        run.translate("a dog", beem=2)
    assert str(caught.value) == "'beem' does not apply to translate runs.\nDid you mean beam?"


def test_a_run_shows_itself(run: Run) -> None:
    assert (
        repr(run) == f"Translator({run.reference}: transformer-tiny, {run.n_parameters:,} parameters, average-00000120)"
    )
    assert "<td>translate</td>" in run._repr_html_()
    assert inspect.getmembers(run)
    assert "translate" in dir(run)


# evaluate, compare, average


def test_evaluation_scores_the_whole_test_set(run: Run, test_set: tuple[str, str]) -> None:
    found = run.evaluate(test_set, decoding=GREEDY)
    sources, references = (Path(file).read_text().splitlines() for file in test_set)
    outputs = [one.text for one in run.translate(sources, decoding=GREEDY)]
    assert found.generated is not None
    assert found.generated.outputs == found.output == tuple(outputs)
    assert found.expected == tuple(references)
    assert found["bleu"] == found.scores[0].value
    assert found.records()[0]["metric"] == "bleu"
    assert repr(found).startswith("Evaluation(BLEU ")
    assert [score.name for score in found.scores] == ["bleu", "chrf", "ter", "perplexity"]
    assert list(found.scores[:3]) == score_translations(outputs, references)
    assert found.scores[3].value == pytest.approx(
        torch.tensor(run.task.reference_loss(run.model, sources, references)[0]).exp().item(), rel=1e-5
    )
    assert found.seconds > 0
    lowered = run.evaluate(test_set, decoding=GREEDY, tokenize="none", lowercase=True)
    assert "tok:none" in lowered.scores[0].signature
    assert "case:lc" in lowered.scores[0].signature
    one = run.evaluate(test_set, beam=1, metrics="wer")
    assert [score.name for score in one.scores] == ["wer", "perplexity"]
    others = run.evaluate(test_set, beam=1, metrics=["exact_match", "wer", "cer"])
    assert [score.name for score in others.scores[:3]] == ["exact_match", "wer", "cer"]


def test_a_test_set_with_bad_pairs_is_scored_without_them_if_that_is_asked_for(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.en").write_text("a dog\n\nthe cat\n")
    (tmp_path / "t.de").write_text("ein Hund\nleer\ndie Katze\n")
    files = (str(tmp_path / "t.en"), str(tmp_path / "t.de"))
    with pytest.raises(DataError) as caught:
        run.evaluate(files)
    assert caught.value.problem == (
        f"1 of 3 pairs are bad (33.3%, at most 1% may be): 1 empty source. First: {files[0]}:2 (empty source) 'leer'."
    )
    assert caught.value.remedy == "Fix the files, or leave the bad pairs out with --on-bad keep-going."
    found = run.evaluate(files, on_bad="keep-going")
    assert (found.count, found.expected) == (2, ("ein Hund", "die Katze"))
    assert found.notes == (f"Left out: 1 bad pair, empty source: {files[0]}:2 'leer'.",)
    (tmp_path / "u.tsv").write_text("".join(f"a dog {number}\tein Hund\n" for number in range(99)) + "the cat\t\n")
    [left_out] = run.evaluate(str(tmp_path / "u.tsv"), beam=1).notes
    assert left_out == f"Left out: 1 bad pair, empty target: {tmp_path}/u.tsv:100 'the cat'."


def test_a_test_set_comes_in_any_format(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("de\ten\nein Hund\ta dog\n")
    (pair,), _ = read_test_set([str(tmp_path / "t.tsv")], DataConfig(source="en", target="de"))
    assert (pair.source, pair.target) == ("a dog", "ein Hund")


def test_comparison_of_checkpoints(run: Run, trained: Path, test_set: tuple[str, str]) -> None:
    early = regard.load(f"{trained}@40", threads=1)
    told: list[tuple[str, int]] = []
    found = regard.compare(
        [run, early], test_set, decoding=GREEDY, progress=lambda what, done: told.append((what, done))
    )
    assert isinstance(found, Comparison)
    assert (found.unit, found.n_units) == ("sentences", 12)
    assert [row.system for row in found.results] == [str(trained), f"{trained}@40"]
    bleu = [row.scores[0].value for row in found.results]
    assert bleu[0] == run.evaluate(test_set, decoding=GREEDY).scores[0].value
    assert found.results[1].significance[0].delta == pytest.approx(bleu[1] - bleu[0])
    assert {row.parameters for row in found.results} == {run.n_parameters}
    assert told == [(f"translating with {trained}", 12), (f"translating with {trained}@40", 12)]


def test_wrong_runs_are_told_before_anything_is_compared(run: Run, classify_run: Path) -> None:
    with pytest.raises(UsageError, match="Two systems are named"):
        regard.compare([run, run], ["none.en", "none.de"])
    with pytest.raises(UsageError, match="There are no systems to compare"):
        regard.compare([], ["none.en", "none.de"])
    with pytest.raises(UsageError, match=r"'translate', .* for 'classify': no score compares them"):
        regard.compare([run, classify_run], ["none.en", "none.de"])


def test_an_average_is_made_and_meant(copied: Path) -> None:
    shutil.rmtree(copied / "checkpoints" / "average-00000120")
    with pytest.raises(CheckpointError, match=re.escape(f"{copied} has no average.")):
        regard.load(f"{copied}@average")
    made = regard.average(copied, last=3)
    assert made.path.name == "average-00000120"
    loaded = regard.load(copied, threads=1)
    assert loaded.checkpoint.path == made.path
    steps = [
        checkpoints.load_weights(checkpoints.verify(copied / "checkpoints" / f"step-{step:08d}"), which="ema")
        for step in (40, 80, 120)
    ]
    name = "encoder.0.self_attention.query.weight"
    mean = torch.stack([weights[name].double() for weights in steps]).mean(0).float()
    torch.testing.assert_close(loaded.model.state_dict()[name], mean)
    regard.average(copied, steps=[40])
    assert (copied / "checkpoints" / "average-00000040").is_dir()


def test_a_run_in_training_is_not_averaged(copied: Path) -> None:
    with locked(RunFolder(copied)), pytest.raises(LockedError):
        regard.average(copied, last=2)


# the package


def test_the_public_names_are_there() -> None:
    for name in regard.__all__:
        assert getattr(regard, name) is not None
        assert name in dir(regard)
    with pytest.raises(AttributeError, match="module 'regard' has no attribute 'trane'"):
        regard.trane  # noqa: B018


# runs that somebody else made


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("n_encoder_layers = 1", "n_encoder_layers = 1000000000", "at least 1 and at most 1,000, not 1000000000"),
        ("d_model = 32", "d_model = 1000000000", "at least 1 and at most 65,536, not 1000000000"),
        ("source_vocab = 320", "source_vocab = 4000000000", "model.source_vocab must be"),
        ("d_ff = 64", "d_ff = 1000000", "does not fit the model of the run's config.toml: decoder.0.feed_forward.down"),
        (
            "n_encoder_layers = 1",
            "n_encoder_layers = 50",
            "encoder.1.feed_forward.down.bias is missing in the checkpoint",
        ),
    ],
)
def test_sizes_are_refused_before_anything_is_allocated(copied: Path, before: str, after: str, problem: str) -> None:
    file = copied / "config.toml"
    assert before in file.read_text()
    file.write_text(file.read_text().replace(before, after))
    with pytest.raises(RegardError, match=re.escape(problem)):
        regard.load(copied, threads=1)


def test_a_vocabulary_of_another_size_is_refused(copied: Path) -> None:
    learn(["A dog runs."] * 3, kind="words", vocab_size=300).save(copied / "vocabulary" / "shared.json")
    with pytest.raises(RunError) as caught:
        regard.load(copied, threads=1)
    assert caught.value.problem.startswith(f"{copied}/vocabulary does not fit the model of the run's config.toml: ")
    assert caught.value.remedy == "Put back the vocabulary that the run was trained with."


def test_labels_that_the_model_has_no_outputs_for_are_refused(classify_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(classify_run, tmp_path / "run"))
    file = run / "vocabulary" / "labels.json"
    kept = json.loads(file.read_bytes())
    file.write_text(json.dumps({**kept, "labels": [*kept["labels"], "other"], "counts": [*kept["counts"], 1]}))
    with pytest.raises(RunError, match="n_outputs is 3 by the one and 2 by the other"):
        regard.load(run, threads=1)


def test_raw_weights_do_not_stand_in_for_an_average_that_is_gone(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_weights = checkpoints.load_weights

    def delete_after(checkpoint: Any, *, which: Any = "model") -> Any:
        weights = load_weights(checkpoint, which=which)
        (checkpoint.path / "ema.safetensors").unlink(missing_ok=True)
        return weights

    shutil.rmtree(copied / "checkpoints" / "average-00000120")
    monkeypatch.setattr(checkpoints, "load_weights", delete_after)
    with pytest.raises(CheckpointError, match=r"ema\.safetensors cannot be read"):
        regard.load(copied, threads=1)


def test_a_run_is_loaded_while_its_training_deletes_checkpoints(copied: Path) -> None:
    folder = RunFolder(copied)
    newest = checkpoints.verify(copied / "checkpoints" / "step-00000120")
    model, ema = (checkpoints.load_weights(newest, which=which) for which in ("model", "ema"))
    stopped = threading.Event()

    def save() -> None:
        for step in itertools.count(121):
            state = {"validation": {"loss": 1 / step}, "best_by": "loss"}
            checkpoints.write(folder, step=step, model=model, ema=ema, state=state, facts={})
            prune(folder, keep=1)
            if stopped.is_set():
                return

    thread = threading.Thread(target=save)
    thread.start()
    try:
        found = [regard.load(copied, threads=1) for _ in range(20)]
    finally:
        stopped.set()
        thread.join()
    assert [run.notes for run in found] == [()] * 20
    assert found[-1].checkpoint.step > 121
