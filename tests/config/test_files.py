"""Run files: read, written back, overridden, and every complaint about them."""

import dataclasses
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config import (
    DataConfig,
    ModelTable,
    RunConfig,
    TokenizerConfig,
    TrainingConfig,
    build,
    default_config,
    from_tables,
    override,
    read,
    refuse_unread,
    to_tables,
    to_toml,
)
from regard.errors import ConfigError
from regard.models.resnet import ResNetConfig
from regard.tasks.spec import TASKS, find_spec

TABLES = [field for field in dataclasses.fields(RunConfig) if dataclasses.is_dataclass(field.type)]


def written_and_read(config: RunConfig) -> RunConfig:
    return from_tables(tomllib.loads(to_toml(config)), origin="test")


def complaint(tables: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        from_tables(tables, origin="run.toml")
    return str(caught.value)


def complaint_of_override(assignments: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as caught:
        override(RunConfig(task="translate"), assignments)
    return str(caught.value)


# -- reading and writing ------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(
    text=st.text(),
    files=st.lists(st.text(), max_size=3),
    rate=st.floats(min_value=0, max_value=100),
    seed=st.integers(0, 2**63 - 1),
    shared=st.booleans(),
)
def test_written_and_read_again_it_is_the_same(
    text: str, files: list[str], rate: float, seed: int, shared: bool
) -> None:
    config = RunConfig(
        task="translate",
        seed=seed,
        data=DataConfig(train=tuple(files)),
        tokenizer=TokenizerConfig(file=text, shared=shared),
        training=TrainingConfig(learning_rate=rate),
        model=ModelTable(preset="transformer-tiny", fields={"d_model": 64, "dropout": rate, "norm": text}),
    )
    assert written_and_read(config) == config


def test_every_table_and_key_is_written(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(to_toml(RunConfig(task="translate")), encoding="utf-8")
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    assert list(tables) == [
        "task",
        "seed",
        "data",
        "tokenizer",
        "model",
        "training",
        "decoding",
        "inspection",
        "runtime",
    ]
    for table in TABLES:
        if table.name in tables and table.name != "model":
            keys = [field.name for field in dataclasses.fields(table.type)]  # type: ignore[arg-type]
            assert list(tables[table.name]) == [
                key for key in keys if TASKS["translate"].reads_setting(table.name, key)
            ]
    assert read(path) == RunConfig(task="translate")


@pytest.mark.parametrize("task", TASKS)
def test_the_table_of_tasks_names_keys_that_exist(task: str) -> None:
    tables = {table.name: {field.name for field in dataclasses.fields(table.type)} for table in TABLES}  # type: ignore[arg-type]
    for name, keys in TASKS[task].settings.items():
        assert set(keys) <= tables[name]
    for name, defaults in TASKS[task].defaults.items():
        assert set(defaults) <= tables[name]
        assert default_config(task) == from_tables({"task": task, **to_tables(default_config(task))}, origin="test")


@pytest.mark.parametrize("task", TASKS)
def test_what_a_task_does_not_read_is_neither_written_nor_taken(task: str) -> None:
    written = to_tables(default_config(task))
    for table in TABLES:
        for field in dataclasses.fields(table.type) if table.name != "model" else ():  # type: ignore[arg-type]
            applies = TASKS[task].reads_setting(table.name, field.name)
            assert (field.name in written.get(table.name, {})) == applies
            if not applies:
                value = 7 if isinstance(field.default, int) else "seven"
                tables = {"task": task, table.name: {field.name: value}}
                key = f"{table.name}.{field.name}"
                renamed = key in TASKS[task].renamed
                told = (
                    f"is now called {TASKS[task].renamed[key]}." if renamed else f"does not apply to the task {task}."
                )
                assert complaint(tables).startswith(f"run.toml: {key} {told}")


def test_a_setting_of_another_task_is_refused_wherever_it_comes_from() -> None:
    config = default_config("regress")
    refuse_unread(config)
    with pytest.raises(ConfigError) as caught:
        refuse_unread(dataclasses.replace(config, training=TrainingConfig(label_smoothing=0.1)))
    assert str(caught.value) == "training.label_smoothing does not apply to the task regress.\nLeave it out."


def test_a_renamed_key_gets_its_new_name() -> None:
    assert complaint({"task": "translate", "data": {"hold_out": 3}}) == (
        "run.toml: data.hold_out is now called data.valid_size.\nWrite data.valid_size instead."
    )


@pytest.mark.parametrize(
    ("task", "new"), [("language", "text"), ("mask", "text"), ("denoise", "text"), ("caption", "image")]
)
def test_a_column_that_some_tasks_called_the_source(tmp_path: Path, task: str, new: str) -> None:
    table = {"source": "review"}
    assert complaint({"task": task, "data": table}) == (
        f"run.toml: data.source is now called data.{new}.\nWrite data.{new} instead."
    )
    path = tmp_path / "config.toml"
    path.write_text(f'task = "{task}"\n[data]\nsource = "review"\ntext = ""\n')
    assert getattr(read(path, of_run=True).data, new) == "review"
    path.write_text(f'task = "{task}"\n[data]\nsource = ""\ntext = "review"\n')
    assert read(path, of_run=True).data.text == "review"
    assert from_tables({"task": "translate", "data": table}, origin="run.toml").data.source == "review"


def test_a_run_written_with_every_key_and_old_names_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('task = "translate"\n[data]\nhold_out = 3\nimage_size = 0\n[augmentation]\ncrop = 0\n')
    before = override(default_config("translate"), {"data.valid_size": 3, "training.optimizer": "adamw"})
    assert read(path, of_run=True) == before, "it was trained before there was a choice of optimizers"
    with pytest.raises(ConfigError, match="is now called"):
        read(path)


def test_a_required_key_that_is_missing_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        build(ResNetConfig, {"n_channels": 3}, origin="config.toml", path="model")
    assert str(caught.value) == (
        "config.toml does not say model.n_outputs.\nPut the file back that training wrote, or add the key."
    )


def test_every_option_explains_itself() -> None:
    for table in TABLES:
        if table.name != "model":
            for field in dataclasses.fields(table.type):  # type: ignore[arg-type]
                assert field.metadata["help"], f"{table.name}.{field.name}"


def test_a_file_says_only_what_differs_from_the_defaults() -> None:
    config = from_tables({"task": "translate", "training": {"steps": 7}}, origin="test")
    usual = find_spec("translate").defaults["training"]
    assert config == RunConfig(task="translate", training=TrainingConfig(steps=7, **usual))


def test_the_model_table_keeps_its_fields_for_the_model() -> None:
    config = from_tables({"task": "translate", "model": {"preset": "transformer-tiny", "d_ff": 512}}, origin="test")
    assert config.model == ModelTable(preset="transformer-tiny", fields={"d_ff": 512})
    assert to_tables(config)["model"] == {"preset": "transformer-tiny", "d_ff": 512}


def test_a_whole_number_serves_as_a_float() -> None:
    rate = from_tables({"task": "translate", "training": {"learning_rate": 1}}, origin="test").training.learning_rate
    assert rate == 1.0
    assert isinstance(rate, float)


def test_one_file_serves_as_a_list_of_one() -> None:
    assert from_tables({"task": "translate", "data": {"train": "memory.tmx"}}, origin="test").data.train == (
        "memory.tmx",
    )


# -- complaints ---------------------------------------------------------------------------------------------------------


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path / "none.toml")
    assert str(caught.value) == (
        f"There is no run file {tmp_path / 'none.toml'}.\nGive the path of a TOML file, or a task's name."
    )


@pytest.mark.parametrize("content", [b"task = translate", b"task = '\xff'"])
def test_a_file_that_is_not_toml(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read(path)
    assert caught.value.problem.startswith(f"{path} is not valid TOML: ")
    assert caught.value.remedy == "Correct the file at that place."


def test_the_place_of_the_mistake_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text('task = "translate"\nseed = one\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"line 2, column 8"):
        read(path)


def test_a_file_without_a_task() -> None:
    assert complaint({"seed": 1}) == (
        'run.toml does not say which task it is for.\nAdd a line such as: task = "translate"'
    )


def test_an_unknown_key_gets_the_near_name() -> None:
    assert complaint({"task": "translate", "training": {"lerning_rate": 1.0}}) == (
        "run.toml: there is no key training.lerning_rate.\nDid you mean learning_rate?"
    )
    assert complaint({"task": "translate", "training": {"lr": 1}}) == (
        "run.toml: there is no key training.lr.\nDid you mean learning_rate?"
    )
    assert complaint({"task": "image", "training": {"batch_size": 1}}) == (
        "run.toml: there is no key training.batch_size.\nDid you mean batch_images?"
    )
    assert len(complaint({"task": "translate", "training": {"a" * 9000: 1}})) < 2000
    assert complaint({"task": "translate", "sed": 1}) == "run.toml: there is no key sed.\nDid you mean seed?"


def test_an_unknown_key_without_a_near_name_gets_the_list() -> None:
    assert complaint({"task": "translate", "runtime": {"zzz": 1}}) == (
        "run.toml: there is no key runtime.zzz.\nAvailable: device, int8, precision, threads, timeout, workers."
    )


@pytest.mark.parametrize(
    ("table", "key", "value", "text"),
    [
        ("training", "steps", "many", "training.steps must be a whole number, not 'many'."),
        ("training", "steps", 4.0, "training.steps must be a whole number, not 4.0."),
        ("training", "steps", True, "training.steps must be a whole number, not True."),
        ("training", "learning_rate", "fast", "training.learning_rate must be a number, not 'fast'."),
        ("training", "learning_rate", False, "training.learning_rate must be a number, not False."),
        ("training", "schedule", 3, "training.schedule must be text, not 3."),
        ("tokenizer", "shared", 1, "tokenizer.shared must be true or false, not 1."),
        ("data", "train", ["a.en", 5], "data.train must be text, not 5."),
    ],
)
def test_a_value_of_another_type(table: str, key: str, value: object, text: str) -> None:
    place = f"{table}.{key}"
    assert complaint({"task": "translate", table: {key: value}}) == (
        f"run.toml: {text}\nCorrect {place} and run the command again."
    )


def test_a_value_where_a_table_belongs() -> None:
    assert (
        complaint({"task": "translate", "training": 400})
        == "run.toml: training must be a table, not 400.\nWrite: [training]"
    )
    assert complaint({"task": "translate", "model": "tiny"}) == (
        "run.toml: model must be a table, not 'tiny'.\nWrite: [model] and below it preset = \"…\""
    )


def test_a_choice_of_types() -> None:
    @dataclasses.dataclass(frozen=True)
    class Table:
        limit: int | str = 0

    assert build(Table, {"limit": "none"}, origin="test").limit == "none"
    with pytest.raises(ConfigError, match=r"limit must be a whole number or text, not \[\]"):
        build(Table, {"limit": []}, origin="test")


def test_a_word_beside_true_and_false() -> None:
    for written in (True, False, "auto", "true", "false"):
        config = from_tables({"task": "translate", "tokenizer": {"lowercase": written}}, origin="run.toml")
        assert config.tokenizer.lowercase == {"true": True, "false": False}.get(str(written), written)
        assert override(default_config("translate"), {"tokenizer.lowercase": str(written).lower()}) == config
        assert written_and_read(config) == config
    assert complaint({"task": "translate", "tokenizer": {"lowercase": "yes"}}).startswith(
        "run.toml: tokenizer.lowercase must be auto, true or false, not 'yes'."
    )
    assert complaint({"task": "translate", "tokenizer": {"lowercase": 1}}).startswith(
        "run.toml: tokenizer.lowercase must be true or false or text, not 1."
    )
    assert complaint({"task": "translate", "tokenizer": {"normalisation": "nfd"}}).startswith(
        "run.toml: tokenizer.normalisation must be auto, none, nfc or nfkc, not 'nfd'."
    )


# -- overrides ----------------------------------------------------------------------------------------------------------


def test_overrides_are_read_as_toml_else_as_text() -> None:
    before = RunConfig(task="translate", seed=3)
    after = override(
        before,
        {
            "seed": "9",
            "training.steps": "400",
            "training.learning_rate": "5e-4",
            "training.schedule": "cosine",
            "tokenizer.shared": "false",
            "data.train": '["a.en", "a.de"]',
            "model.preset": "transformer-tiny",
            "model.d_model": "64",
        },
    )
    assert (after.seed, after.training.steps, after.training.learning_rate) == (9, 400, 5e-4)
    assert (after.training.schedule, after.tokenizer.shared) == ("cosine", False)
    assert after.data.train == ("a.en", "a.de")
    assert after.model == ModelTable(preset="transformer-tiny", fields={"d_model": 64})
    assert before == RunConfig(task="translate", seed=3)


def test_overrides_keep_everything_else() -> None:
    config = RunConfig(task="translate", training=TrainingConfig(steps=5, clip=2.0), model=ModelTable(fields={"n": 1}))
    changed = dataclasses.replace(config, training=TrainingConfig(steps=6, clip=2.0))
    assert override(config, {"training.steps": "6"}) == changed


def test_an_override_of_no_table() -> None:
    assert complaint_of_override({"trainig.steps": "4"}) == (
        "--set: there is no table trainig in trainig.steps.\nDid you mean training?"
    )


def test_an_override_of_no_key() -> None:
    assert complaint_of_override({"training.step": "4"}) == (
        "--set: there is no key training.step.\nDid you mean steps?"
    )


def test_an_override_of_the_wrong_type() -> None:
    assert complaint_of_override({"training.steps": "true"}) == (
        "--set: training.steps must be a whole number, not True.\nCorrect training.steps and run the command again."
    )


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("seed", "-1", "seed must be at least 0, not -1."),
        ("data.valid_size", "-5", "data.valid_size must be at least 0, not -5."),
        ("tokenizer.vocab_size", "-5", "tokenizer.vocab_size must be at least 0, not -5."),
        ("training.accumulate", "0", "training.accumulate must be at least 1, not 0."),
        ("training.keep", "0", "training.keep must be at least 1, not 0."),
        ("training.batch_tokens", "-4", "training.batch_tokens must be at least 1, not -4."),
        ("training.clip", "-1.0", "training.clip must be at least 0, not -1.0."),
        ("training.learning_rate", "nan", "training.learning_rate must be a finite number, not nan."),
        ("training.minutes", "inf", "training.minutes must be a finite number, not inf."),
        ("training.validate_samples", "-7", "training.validate_samples must be at least -1, not -7."),
        ("training.ema", "1.0", "training.ema must be at least 0 and below 1, not 1.0."),
        ("training.beta2", "1.0", "training.beta2 must be at least 0 and below 1, not 1.0."),
        ("training.label_smoothing", "-0.1", "training.label_smoothing must be at least 0 and below 1, not -0.1."),
        ("decoding.beam", "0", "decoding.beam must be at least 1, not 0."),
        ("decoding.beam", "1000000000", "decoding.beam must be at least 1 and at most 1,000, not 1000000000."),
        ("decoding.min_length", "10001", "decoding.min_length must be at least 0 and at most 10,000, not 10001."),
        ("inspection.probes", "-1", "inspection.probes must be at least 0, not -1."),
        ("inspection.probes", "65", "inspection.probes must be at least 0 and at most 64, not 65."),
        ("inspection.every", "0", "inspection.every must be at least 1, not 0."),
        ("runtime.workers", "257", "runtime.workers must be at least 0 and at most 256, not 257."),
        ("runtime.threads", "1025", "runtime.threads must be at least 0 and at most 1,024, not 1025."),
    ],
)
def test_a_number_outside_its_range(key: str, value: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        override(RunConfig(task="translate"), {key: value})
    assert str(caught.value) == f"--set: {expected}\nCorrect {key} and run the command again."


@pytest.mark.parametrize(
    ("key", "value", "choices", "near"),
    [
        ("data.on_bad", "kep-going", "stop or keep-going", "keep-going"),
        ("training.schedule", "cosin", "inverse-sqrt, cosine, linear or constant", "cosine"),
        ("training.class_weights", "balance", "none or balanced", "balanced"),
        ("runtime.precision", "bf61", "auto, fp32 or bf16", "bf16"),
        (
            "tokenizer.kind",
            "unigramm",
            "auto, bpe, unigram, wordpiece, sentencepiece, characters, bytes, words, tiktoken or vectors",
            "unigram",
        ),
    ],
)
def test_a_word_that_is_not_among_the_choices(key: str, value: str, choices: str, near: str) -> None:
    with pytest.raises(ConfigError) as caught:
        override(RunConfig(task="classify"), {key: value})
    assert str(caught.value) == f"--set: {key} must be {choices}, not '{value}'.\nDid you mean {near}?"


def test_the_defaults_lie_in_their_ranges() -> None:
    config = RunConfig(task="translate")
    assert from_tables(to_tables(config), origin="test") == config


def test_text_that_looks_like_a_number_is_text_where_text_is_asked_for() -> None:
    assert override(RunConfig(task="translate"), {"data.source": "1"}).data.source == "1"
    assert override(RunConfig(task="translate"), {"data.source": '"1"'}).data.source == "1"


def test_a_folder_for_a_run_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path)
    assert caught.value.problem == f"{tmp_path} cannot be read: Is a directory."


def test_a_byte_order_mark_in_a_run_file(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text('task = "translate"\n', encoding="utf-8-sig")
    assert read(path).task == "translate"


def test_what_toml_cannot_hold_is_refused() -> None:
    for value in ("\udcff.en", {"a": None}):
        with pytest.raises(ConfigError, match="cannot be written into a run file"):
            to_toml(RunConfig(task="translate", model=ModelTable(preset="p", fields={"x": value})))


# files that somebody else wrote


def refusal(path: Path, *, of_run: bool = True) -> str:
    with pytest.raises(ConfigError) as caught:
        read(path, of_run=of_run)
    assert "\n" not in caught.value.problem
    return caught.value.problem


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("seed = " + "9" * 5_000, "Exceeds the limit (4300 digits) for integer string conversion"),
        ("seed = " + "9" * 30, "a whole number of more than 64 bits"),
        ("seed = 0x" + "f" * 100_000, "a whole number of more than 64 bits"),
        ("training.learning_rate = 1" + "0" * 400, "a whole number of more than 64 bits"),
        ("seed = " + "[" * 5_000, "it is nested too deeply"),
        ("seed = 2020-01-01", "a date or time, 2020-01-01, which no key takes"),
        ("seed = " + "[" * 100 + "]" * 100, "it is nested too deeply"),
        ("seed = " + "{a = " * 100 + "1" + "}" * 100, "it is nested too deeply"),
        ("a" + ".a" * 100_000 + " = 1", "a key of more than 50 parts"),
        ('"."' + " . '.'" * 100_000 + " = 1", "a key of more than 50 parts"),
        ("[a" + ".a" * 100_000 + "]", "a key of more than 50 parts"),
        ('x = {y = """\n""", z' + ".'z'" * 100_000 + " = 1}", "a key of more than 50 parts"),
        ('"' + '\\"' * 1_000_000, "Illegal character"),
    ],
)
def test_what_would_take_for_ever_is_refused_at_once(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f'task = "translate"\n{line}\n')
    assert refusal(path).startswith(f"{path} is not valid TOML: {reason}")


def test_dots_in_texts_and_numbers_are_no_parts_of_a_key(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    files = [f"{'a.' * 60}{number}.txt" for number in range(200)]
    path.write_text(f'# {"a." * 60}\ntask = "translate"\n[data]\ntrain = {files}\n[training]\nminutes = 1.5\n')
    config = read(path)
    assert config.data.train == tuple(files)
    assert config.training.minutes == 1.5


def test_the_config_of_a_run_is_a_regular_file(tmp_path: Path) -> None:
    own, path = tmp_path / "own.toml", tmp_path / "config.toml"
    own.write_text('task = "translate"\n')
    path.symlink_to(own)
    assert refusal(path) == f"{path} cannot be read: it is a link, not a file."
    assert read(path).task == "translate", "a run file of one's own may be a link"
    path.unlink()
    os.mkfifo(path)
    assert refusal(path) == f"{path} cannot be read: it is a pipe, not a file."
    assert refusal(Path("/dev/zero"), of_run=False) == "/dev/zero cannot be read: it has more than 4 MB."


@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_a_number_of_any_size_from_python(value: int) -> None:
    with pytest.raises(ConfigError, match=r"decoding\.beam must be at least 1"):
        override(RunConfig(task="translate"), {"decoding.beam": value})
