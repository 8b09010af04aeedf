import shutil
from pathlib import Path
from typing import Any

import pytest

from regard.cli.run_file import assignments, free_folder, settings, starting_point
from regard.cli.train_options import DataOptions, LearningOptions, ModelOptions
from regard.config import ModelTable, RunConfig, read
from regard.errors import UsageError

NO_DATA, NO_MODEL = DataOptions(), ModelOptions()


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(
        'task = "translate"\nseed = 9\n[data]\ntrain = ["a.en", "a.de"]\n[model]\npreset = "transformer-tiny"\n'
        "dropout = 0.25\n[training]\nsteps = 70\nclip = 0.5\n"
    )
    return str(path)


def test_a_task_alone_gets_a_model_and_an_end() -> None:
    config, vocabulary = settings("translate", NO_DATA, NO_MODEL, None, ())
    assert vocabulary is None
    assert config.model.preset == "transformer-tiny"
    assert (config.training.steps, config.training.patience) == (10_000, 10)


def test_options_change_the_file_and_set_has_the_last_word(file: str) -> None:
    config, _ = settings(
        file,
        DataOptions(valid=("v.en", "v.de"), source="en"),
        NO_MODEL,
        LearningOptions(steps=100, learning_rate=0.5, seed=0),
        ("training.steps=200", "model.dropout=0.0", "data.on_bad=keep-going"),
    )
    assert config.seed == 0
    assert config.data.train == ("a.en", "a.de")
    assert (config.data.valid, config.data.source, config.data.on_bad) == (("v.en", "v.de"), "en", "keep-going")
    assert (config.training.steps, config.training.clip, config.training.learning_rate) == (200, 0.5, 0.5)
    assert config.model.fields == {"dropout": 0.0}


def test_another_model_does_not_keep_the_fields_of_the_old_one(file: str) -> None:
    config, _ = settings(file, NO_DATA, ModelOptions(model="transformer-small"), None, ())
    assert config.model == ModelTable(preset="transformer-small")


def test_the_file_of_a_run_brings_its_vocabulary(trained: Path) -> None:
    config, vocabulary = settings(str(trained / "config.toml"), NO_DATA, NO_MODEL, None, ())
    assert vocabulary == trained / "vocabulary"
    assert config == read(trained / "config.toml")


def test_other_settings_of_the_tokenizer_ask_for_another_vocabulary(trained: Path) -> None:
    _, vocabulary = settings(str(trained / "config.toml"), NO_DATA, ModelOptions(vocab_size=300), None, ())
    assert vocabulary is None


def test_other_training_data_ask_for_another_vocabulary(
    trained: Path, corpus: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(trained / "config.toml")
    for data in (DataOptions(train=("b.en", "b.de")), DataOptions(source="en", target="fr"), DataOptions(text="t")):
        _, vocabulary = settings(file, data, NO_MODEL, None, ())
        assert vocabulary is None
        assert capsys.readouterr().err == (
            f"note: the training data are others than those of {file}: a new vocabulary is learned\n"
        )
    # A vocabulary that is named is taken for any data.
    _, vocabulary = settings(file, DataOptions(train=("b.en", "b.de")), ModelOptions(vocabulary=str(trained)), None, ())
    assert vocabulary == trained / "vocabulary"


def test_the_same_files_by_other_names_keep_the_vocabulary(
    trained: Path, corpus: tuple[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(Path(corpus[0]).parent)
    data = DataOptions(train=("train.en", "train.de"), valid=("v.en", "v.de"))
    _, vocabulary = settings(str(trained / "config.toml"), data, NO_MODEL, None, ())
    assert vocabulary == trained / "vocabulary"
    assert capsys.readouterr().err == ""


def test_the_vocabulary_of_another_run_comes_with_its_settings(trained: Path) -> None:
    config, vocabulary = settings("translate", NO_DATA, ModelOptions(vocabulary=str(trained)), None, ())
    assert vocabulary == trained / "vocabulary"
    assert config.tokenizer == read(trained / "config.toml").tokenizer


def test_a_ready_vocabulary_has_its_size(trained: Path) -> None:
    with pytest.raises(UsageError) as raised:
        settings("translate", NO_DATA, ModelOptions(vocabulary=str(trained), vocab_size=300), None, ())
    assert raised.value.problem == "--vocabulary takes a ready vocabulary, --vocab-size another one."
    assert raised.value.remedy == "Give one of the two options."


def test_a_run_to_begin_with_brings_its_vocabulary_and_its_model(trained: Path) -> None:
    model = ModelOptions(init=f"{trained}@best", init_lr_scale=0.5, layer_decay=0.9)
    config, vocabulary = settings("translate", NO_DATA, model, None, ("model.dropout=0.25",))
    begun = read(trained / "config.toml")
    assert vocabulary == trained / "vocabulary"
    assert config.tokenizer == begun.tokenizer
    assert (config.model.fields["d_model"], config.model.fields["dropout"]) == (32, 0.25)
    assert config.training.init == f"{trained}@best"
    assert (config.training.init_lr_scale, config.training.layer_decay, config.training.freeze_init) == (
        0.5,
        0.9,
        False,
    )
    assert config.training.learning_rate != begun.training.learning_rate, "how it learned is not taken over"
    by_key, again = settings("translate", NO_DATA, NO_MODEL, None, (f"training.init={trained}",))
    assert (by_key.tokenizer, by_key.model.fields["d_model"], again) == (begun.tokenizer, 32, vocabulary)


def test_a_run_file_may_name_the_run_to_begin_with(file: str, trained: Path) -> None:
    begun = Path(file).with_name("begun.toml")
    begun.write_text(Path(file).read_text() + f'init = "{trained}"\nfreeze_init = true\n')
    config, vocabulary = settings(str(begun), NO_DATA, NO_MODEL, None, ())
    assert vocabulary == trained / "vocabulary"
    assert config.training.freeze_init
    assert config.model == ModelTable(preset="transformer-tiny", fields={"dropout": 0.25}), "it names a model"
    thawed, _ = settings(str(begun), NO_DATA, ModelOptions(freeze_init=False), None, ())
    assert not thawed.training.freeze_init


def test_a_run_to_begin_with_replaces_the_vocabulary_of_the_file(file: str, trained: Path) -> None:
    own = Path(file).with_name("own.toml")
    own.write_text(Path(file).read_text() + "[tokenizer]\nvocab_size = 500\n")
    config, vocabulary = settings(str(own), NO_DATA, ModelOptions(init=str(trained)), None, ())
    assert (config.tokenizer.vocab_size, vocabulary) == (320, trained / "vocabulary")
    with pytest.raises(UsageError) as raised:
        settings(str(own), NO_DATA, NO_MODEL, None, (f"training.init={trained}",))
    assert raised.value.problem == (
        f"--init uses the vocabulary of {trained}, which conflicts with tokenizer.vocab_size = 500."
    )


def test_a_named_vocabulary_is_taken_in_place_of_that_of_the_run_to_begin_with(
    trained: Path, language_run: str
) -> None:
    model = ModelOptions(init=str(trained), vocabulary=language_run)
    config, vocabulary = settings("translate", NO_DATA, model, None, ())
    assert vocabulary == Path(language_run) / "vocabulary"
    assert config.tokenizer.kind == "characters"
    assert config.model.fields["d_model"] == 32


@pytest.mark.parametrize(
    ("options", "option"),
    [({"vocab_size": 300}, "--vocab-size"), ({"tokenizer": "words"}, "--tokenizer")],
)
def test_a_run_to_begin_with_has_its_vocabulary(options: dict[str, Any], option: str, trained: Path) -> None:
    with pytest.raises(UsageError) as raised:
        settings("translate", NO_DATA, ModelOptions(init=str(trained), **options), None, ())
    assert raised.value.problem == f"--init takes a ready vocabulary, {option} another one."
    assert raised.value.remedy == "Give one of the two options."


def test_a_run_that_began_with_another_is_repeated_with_its_own_vocabulary(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(trained, tmp_path / "begun"))
    config = folder / "config.toml"
    config.write_text(config.read_text().replace('init = ""', f'init = "{trained}"'))
    assert settings(str(config), NO_DATA, NO_MODEL, None, ())[1] == folder / "vocabulary"
    # On other data it begins with the same run, and so with that one's vocabulary: none is learned.
    _, vocabulary = settings(str(config), DataOptions(train=("b.en", "b.de")), NO_MODEL, None, ())
    assert vocabulary == trained / "vocabulary"
    assert capsys.readouterr().err == ""


def test_columns_and_class_weights_have_options() -> None:
    data = DataOptions(text="review", text_b="reply", label="stars", split_column="part")
    config, _ = settings("classify", data, NO_MODEL, LearningOptions(class_weights="balanced"), ())
    assert (config.data.text, config.data.text_b, config.data.label, config.data.split_column) == (
        "review",
        "reply",
        "stars",
        "part",
    )
    assert config.training.class_weights == "balanced"


def test_a_run_is_no_run_file(trained: Path) -> None:
    with pytest.raises(UsageError) as raised:
        starting_point(str(trained))
    assert raised.value.problem == f"{trained} is the folder of a run."
    assert raised.value.remedy == (
        f"Go on with it: regard resume {trained}. Repeat it: regard train {trained}/config.toml"
    )


@pytest.mark.parametrize("text", ["training.steps", "=4", " =4"])
def test_assignments_need_a_key_and_a_value(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        assignments([text])
    assert raised.value.problem == f"--set takes KEY=VALUE, not '{text}'."
    assert raised.value.remedy == "Write, for example: --set training.steps=400"


def test_a_value_may_hold_an_equals_sign() -> None:
    assert assignments(["data.source = a=b"]) == {"data.source": "a=b"}


def test_a_free_folder_has_the_next_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = RunConfig(task="translate", model=ModelTable(preset="transformer-tiny"))
    assert free_folder(config) == Path("runs/translate-transformer-tiny-1")
    (tmp_path / "runs/translate-transformer-tiny-1").mkdir(parents=True)
    assert free_folder(config) == Path("runs/translate-transformer-tiny-2")
