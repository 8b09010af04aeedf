"""The settings of a new run: from a task or a run file, with changes, defaults and a vocabulary."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from regard.api.new_run import NewRun, assemble, starting_point
from regard.config import ModelTable, read
from regard.errors import UsageError


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(
        'task = "translate"\nseed = 9\n[data]\ntrain = ["a.en", "a.de"]\n[model]\npreset = "transformer-tiny"\n'
        "dropout = 0.25\n[training]\nsteps = 70\nclip = 0.5\n"
    )
    return str(path)


def new(what: str | Path, changes: dict[str, Any] | None = None, **others: Any) -> NewRun:
    return assemble(str(what), changes or {}, origin="test", **others)


def test_a_task_alone_gets_a_model_and_an_end() -> None:
    found = new("translate")
    assert (found.vocabulary, found.notes) == (None, ())
    assert found.config.model.preset == "transformer-tiny"
    assert (found.config.training.steps, found.config.training.patience) == (10_000, 10)


def test_changes_have_the_last_word(file: str) -> None:
    config = new(file, {"training.steps": "200", "model.dropout": 0.0, "data.source": "en", "seed": 0}).config
    assert (config.seed, config.data.train, config.data.source) == (0, ("a.en", "a.de"), "en")
    assert (config.training.steps, config.training.clip) == (200, 0.5)
    assert config.model.fields == {"dropout": 0.0}


def test_another_model_does_not_keep_the_fields_of_the_old_one(file: str) -> None:
    assert new(file, model="transformer-small").config.model == ModelTable(preset="transformer-small")


def test_a_network_of_the_callers_own_is_no_preset(file: str) -> None:
    assert new(file, own_network=True).config.model == ModelTable()


def test_a_run_with_a_custom_network_is_repeated_with_that_network_only(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('task = "classify"\n[model]\npreset = ""\n')
    with pytest.raises(UsageError) as caught:
        new(path)
    assert caught.value.problem == f"{path} is of a run with a custom network, which no file describes."
    assert caught.value.remedy.startswith(f'Pass it from Python: regard.train("{path}", model=YourNetwork(…), run=…)')
    assert new(path, own_network=True).config.model == ModelTable()
    assert new(path, model="bert-tiny").config.model.preset == "bert-tiny"
    assert new(path, {"model.preset": "bert-tiny"}).config.model.preset == "bert-tiny"


def test_a_key_of_another_task_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^test: data\.image_size does not apply to the task translate\."):
        new("translate", {"data.image_size": 8})


# the vocabulary of a run's own config.toml


def test_the_file_of_a_run_brings_its_vocabulary(trained: Path) -> None:
    found = new(trained / "config.toml")
    assert found.vocabulary == trained / "vocabulary"
    assert found.config == read(trained / "config.toml")


def test_other_settings_of_the_tokenizer_ask_for_another_vocabulary(trained: Path) -> None:
    assert new(trained / "config.toml", {"tokenizer.vocab_size": 300}).vocabulary is None


@pytest.mark.parametrize("changes", [{"data.train": ["b.en", "b.de"]}, {"data.source": "en", "data.target": "fr"}])
def test_other_training_data_ask_for_another_vocabulary(trained: Path, changes: dict[str, Any]) -> None:
    file = trained / "config.toml"
    found = new(file, changes)
    assert found.vocabulary is None
    assert found.notes == (f"the training data differ from those of {file}: a new vocabulary is learned",)
    # A vocabulary that is named is taken for any data.
    named = new(file, changes, vocabulary=trained)
    assert (named.vocabulary, named.notes) == (trained / "vocabulary", ())


def test_the_same_files_by_other_names_keep_the_vocabulary(
    trained: Path, corpus: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(corpus[0]).parent)
    found = new(trained / "config.toml", {"data.train": ["train.en", "train.de"], "data.valid": ["v.en", "v.de"]})
    assert (found.vocabulary, found.notes) == (trained / "vocabulary", ())


def test_a_run_that_began_with_another_is_repeated_with_its_own_vocabulary(trained: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(trained, tmp_path / "begun"))
    config = folder / "config.toml"
    config.write_text(config.read_text().replace('init = ""', f'init = "{trained}"'))
    assert new(config).vocabulary == folder / "vocabulary"
    # On other data it begins with the same run, and so with that one's vocabulary: none is learned.
    found = new(config, {"data.train": ["b.en", "b.de"]})
    assert (found.vocabulary, found.notes) == (trained / "vocabulary", ())


# the vocabulary of another run


def test_the_vocabulary_of_another_run_comes_with_its_settings(trained: Path) -> None:
    found = new("translate", vocabulary=trained)
    assert found.vocabulary == trained / "vocabulary"
    assert found.config.tokenizer == read(trained / "config.toml").tokenizer


def test_a_ready_vocabulary_has_its_size(trained: Path) -> None:
    with pytest.raises(UsageError) as raised:
        new("translate", {"tokenizer.vocab_size": 300}, vocabulary=trained)
    assert raised.value.problem == (
        f"--vocabulary uses the vocabulary of {trained}, which conflicts with tokenizer.vocab_size = 300."
    )
    assert raised.value.remedy == "Leave out one of them: --vocabulary or tokenizer.vocab_size."


def test_a_ready_vocabulary_lower_cases_as_asked(trained: Path) -> None:
    found = new("translate", {"tokenizer.lowercase": True}, vocabulary=trained)
    assert (found.vocabulary, found.config.tokenizer.lowercase) == (trained / "vocabulary", True)
    assert found.config.tokenizer.vocab_size == read(trained / "config.toml").tokenizer.vocab_size


def test_a_run_to_begin_with_brings_its_vocabulary_and_its_model(trained: Path) -> None:
    begun = read(trained / "config.toml")
    found = new("translate", {"training.init": f"{trained}@best", "model.dropout": 0.25})
    assert (found.vocabulary, found.config.tokenizer) == (trained / "vocabulary", begun.tokenizer)
    assert (found.config.model.fields["d_model"], found.config.model.fields["dropout"]) == (32, 0.25)
    assert found.config.training.init == f"{trained}@best"
    assert found.config.training.learning_rate != begun.training.learning_rate, "how it learned is not taken over"


def test_a_run_file_may_name_the_run_to_begin_with(file: str, trained: Path) -> None:
    begun = Path(file).with_name("begun.toml")
    begun.write_text(Path(file).read_text() + f'init = "{trained}"\nfreeze_init = true\n')
    found = new(begun)
    assert found.vocabulary == trained / "vocabulary"
    assert found.config.training.freeze_init
    assert found.config.model == ModelTable(preset="transformer-tiny", fields={"dropout": 0.25}), "it names a model"
    assert not new(begun, {"training.freeze_init": False}).config.training.freeze_init


def test_a_run_to_begin_with_replaces_the_vocabulary_of_the_file(file: str, trained: Path) -> None:
    own = Path(file).with_name("own.toml")
    own.write_text(Path(file).read_text() + "[tokenizer]\nvocab_size = 500\n")
    found = new(own, {"training.init": str(trained)})
    assert (found.config.tokenizer.vocab_size, found.vocabulary) == (320, trained / "vocabulary")
    with pytest.raises(UsageError) as raised:
        new(own, {"training.init": str(trained), "tokenizer.kind": "words"})
    assert raised.value.problem == (
        f"--init uses the vocabulary of {trained}, which conflicts with tokenizer.kind = words."
    )


def test_a_named_vocabulary_is_taken_in_place_of_that_of_the_run_to_begin_with(trained: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(trained, tmp_path / "other"))
    found = new("translate", {"training.init": str(trained)}, vocabulary=other)
    assert found.vocabulary == other / "vocabulary"
    assert found.config.model.fields["d_model"] == 32


def test_a_run_is_no_run_file(trained: Path) -> None:
    with pytest.raises(UsageError) as raised:
        starting_point(str(trained))
    assert raised.value.problem == f"{trained} is the folder of a run."
    assert raised.value.remedy == f"Resume it: regard resume {trained}. Repeat it: regard train {trained}/config.toml"
