"""What another run decides of the settings of one that begins with it: model and vocabulary."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest

from regard.config import ModelTable, RunConfig, TokenizerConfig, TrainingConfig, read
from regard.data.text.tokenizer_training import learn
from regard.errors import CheckpointError, DataError, RunError, UsageError
from regard.training.init_from import (
    ParentRun,
    lent_tokenizers,
    refuse_other_architecture,
    with_model,
    with_vocabulary,
)


def begin(run: Path | str, task: str = "translate", **tables: Any) -> RunConfig:
    return RunConfig(task=task, training=TrainingConfig(init=str(run)), **tables)


def rewrite(run: Path, found: str, replacement: str) -> None:
    file = run / "config.toml"
    text = file.read_text()
    assert found in text
    file.write_text(text.replace(found, replacement))


@pytest.fixture
def copied(trained: Path, tmp_path: Path) -> Path:
    """The trained run's settings and vocabulary, to be changed."""
    path = tmp_path / "other"
    path.mkdir()
    shutil.copy(trained / "config.toml", path)
    shutil.copytree(trained / "vocabulary", path / "vocabulary")
    return path


# the model


def test_the_model_is_that_of_the_other_run(trained: Path) -> None:
    theirs = read(trained / "config.toml").model
    model = with_model(begin(trained)).model
    assert model.preset == theirs.preset == "transformer-tiny"
    assert (model.fields["d_model"], model.fields["dropout"]) == (32, 0.0)
    assert "source_vocab" not in model.fields, "the data decides it"
    assert set(theirs.fields) - set(model.fields) == {"source_vocab", "target_vocab"}


def test_a_pooling_that_was_never_used_is_not_taken_over(mask_run: Path, classify_run: Path) -> None:
    of_words, of_texts = (with_model(begin(run, task="classify")).model.fields for run in (mask_run, classify_run))
    assert "pooling" not in of_words
    assert of_texts["pooling"] == "mean"


def test_fields_that_are_set_stay(trained: Path) -> None:
    model = with_model(begin(f"{trained}@best", model=ModelTable(fields={"dropout": 0.4}))).model
    assert (model.fields["dropout"], model.fields["d_model"]) == (0.4, 32)


def test_a_model_that_is_named_stays(trained: Path) -> None:
    config = begin(trained, model=ModelTable(preset="transformer-small", fields={"dropout": 0.4}))
    assert with_model(config) == config
    alone = RunConfig(task="translate")
    assert with_model(alone) == alone


def test_the_other_model_must_serve_the_task(trained: Path) -> None:
    with pytest.raises(UsageError) as caught:
        with_model(begin(trained, task="language"))
    assert caught.value.problem == f"{trained} is a transformer-tiny, which does not support the task 'language'."
    assert caught.value.remedy.startswith("Initialise from a run of one of: llama-nano, llama-mini, ")
    with pytest.raises(UsageError, match="There is no task 'langage'"):
        with_model(begin(trained, task="langage"))


def test_a_network_of_somebodys_own_has_no_preset(copied: Path) -> None:
    rewrite(copied, 'preset = "transformer-tiny"', 'preset = ""')
    with pytest.raises(UsageError) as caught:
        with_model(begin(copied))
    assert caught.value.problem == (f"{copied} was trained with a custom network, which no preset describes.")
    assert caught.value.remedy.startswith("Name the model of the new run with --model: transformer-tiny, ")
    assert ParentRun.open(str(copied)).model_name == "a custom network"


def test_the_other_run_must_be_one(tmp_path: Path, trained: Path) -> None:
    with pytest.raises(RunError) as caught:
        with_model(begin(trained.with_name("trainde")))
    assert caught.value.remedy == f"Did you mean {trained}?"


def test_families_are_told_apart(trained: Path) -> None:
    parent = ParentRun.open(f"{trained}@best")
    refuse_other_architecture(parent, ModelTable(preset="transformer-big"))
    refuse_other_architecture(parent, ModelTable())  # a network of the caller's own: its names will show
    with pytest.raises(CheckpointError) as caught:
        refuse_other_architecture(parent, ModelTable(preset="rnn"))
    assert caught.value.problem == (
        f"Cannot load weights of {trained}@best (transformer-tiny) into rnn: the architectures differ."
    )
    assert caught.value.remedy == "Choose another model with --model, or initialise from a run of rnn."


# the vocabulary


def test_the_vocabulary_is_that_of_the_other_run(trained: Path) -> None:
    config, vocabulary = with_vocabulary(begin(f"{trained}@last"), None)
    assert vocabulary == trained / "vocabulary"
    assert config.tokenizer == read(trained / "config.toml").tokenizer
    assert with_vocabulary(config, None) == (config, vocabulary), "settled once, it stays so"


def test_a_vocabulary_that_is_given_stays(trained: Path, tmp_path: Path) -> None:
    config = begin(trained, tokenizer=TokenizerConfig(kind="words"))
    assert with_vocabulary(config, tmp_path) == (config, tmp_path)
    alone = RunConfig(task="translate")
    assert with_vocabulary(alone, None) == (alone, None)


def test_another_vocabulary_cannot_be_asked_for(trained: Path) -> None:
    with pytest.raises(UsageError) as caught:
        with_vocabulary(begin(trained, tokenizer=TokenizerConfig(vocab_size=300)), None)
    assert caught.value.problem == (
        f"--init uses the vocabulary of {trained}, which conflicts with tokenizer.vocab_size = 300."
    )
    assert caught.value.remedy == (
        "Leave tokenizer.vocab_size out, or name a run with such a vocabulary: --vocabulary RUN."
    )
    same = begin(trained, tokenizer=TokenizerConfig(vocab_size=320))
    assert with_vocabulary(same, None)[0].tokenizer.vocab_size == 320


@pytest.mark.parametrize("lowercase", [True, False])
def test_lower_casing_may_be_asked_for(trained: Path, lowercase: bool) -> None:
    config, vocabulary = with_vocabulary(begin(trained, tokenizer=TokenizerConfig(lowercase=lowercase)), None)
    assert vocabulary == trained / "vocabulary"
    assert (config.tokenizer.lowercase, config.tokenizer.vocab_size) == (lowercase, 320)


def test_word_vectors_are_not_put_in_again(copied: Path) -> None:
    rewrite(copied, 'vectors = ""\nfreeze_vectors = false', 'vectors = "/gone.txt"\nfreeze_vectors = true')
    config, _ = with_vocabulary(begin(copied), None)
    assert (config.tokenizer.vectors, config.tokenizer.freeze_vectors) == ("", False)
    given = begin(copied, tokenizer=TokenizerConfig(vectors="/mine.txt"))
    with pytest.raises(UsageError, match=r"conflicts with tokenizer\.vectors = /mine\.txt"):
        with_vocabulary(given, None)


def test_a_run_that_reads_vectors_has_no_vocabulary(copied: Path) -> None:
    shutil.rmtree(copied / "vocabulary")
    config, vocabulary = with_vocabulary(begin(copied), None)
    assert vocabulary is None
    assert config.tokenizer == read(copied / "config.toml").tokenizer


# what is lent of a ready vocabulary


def test_tokenizers_are_lent_and_labels_are_not(copied: Path) -> None:
    (copied / "vocabulary" / "labels.json").write_text('{"labels": ["a", "b"]}')
    with lent_tokenizers(copied / "vocabulary", task="language") as lent:
        assert lent is not None
        assert [file.name for file in lent.iterdir()] == ["shared.json"]
        assert (lent / "shared.json").read_bytes() == (copied / "vocabulary" / "shared.json").read_bytes()
    assert not lent.exists()


def test_where_there_is_no_tokenizer_nothing_is_lent(tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text("{}")
    for folder in (None, tmp_path):
        with lent_tokenizers(folder, task="classify") as lent:
            assert lent is None


def test_two_sides_are_for_translation_alone(tmp_path: Path) -> None:
    for name in ("source", "target"):
        learn(["a b"], kind="characters", vocab_size=10).save(tmp_path / f"{name}.json")
    with lent_tokenizers(tmp_path, task="translate") as lent:
        assert lent is not None
        assert sorted(file.name for file in lent.iterdir()) == ["source.json", "target.json"]
    with pytest.raises(UsageError) as caught, lent_tokenizers(tmp_path, task="language"):
        pass
    assert caught.value.problem == (
        f"{tmp_path} has separate source and target vocabularies, and the task 'language' needs a single one."
    )
    assert caught.value.remedy == "Use that of a run with a shared vocabulary (tokenizer.shared = true)."


def test_a_damaged_tokenizer_is_told_by_its_own_place(tmp_path: Path) -> None:
    (tmp_path / "shared.json").write_text("{")
    with pytest.raises(DataError) as caught, lent_tokenizers(tmp_path, task="language"):
        pass
    assert caught.value.problem.startswith(f"{tmp_path}/shared.json: not a tokenizer file: ")


def test_settings_without_another_run_are_left_alone() -> None:
    config = dataclasses.replace(begin(""), model=ModelTable(preset="gpt-nano"))
    assert with_model(config) is config
