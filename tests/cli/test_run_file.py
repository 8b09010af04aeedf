"""From the options of `regard train` to the keys of a run file."""

from pathlib import Path
from typing import Any

import pytest

from regard.cli.options import named
from regard.cli.run_file import assignments, changed_keys, free_folder, new_run
from regard.cli.train_options import DataOptions, LearningOptions, ModelOptions
from regard.config import ModelTable, RunConfig
from regard.errors import ConfigError, UsageError


def test_options_change_the_keys_of_a_run_file() -> None:
    options = named(
        DataOptions(train=("a.csv",), source="en", split_column="part"),
        ModelOptions(model="bert-tiny", vocab_size=300, init="runs/x", freeze_init=False, layer_decay=0.9),
        LearningOptions(steps=0, class_weights="balanced", seed=0),
    )
    assert changed_keys(options) == {
        "data.train": ("a.csv",),
        "data.source": "en",
        "data.split_column": "part",
        "tokenizer.vocab_size": 300,
        "training.init": "runs/x",
        "training.freeze_init": False,
        "training.layer_decay": 0.9,
        "training.steps": 0,
        "training.class_weights": "balanced",
        "seed": 0,
    }


@pytest.mark.parametrize(
    ("tokenizer", "key"),
    [("words", "kind"), ("cl100k_base.tiktoken", "file"), ("runs/x/shared", "file")],
)
def test_a_tokenizer_is_a_kind_or_a_file(tokenizer: str, key: str) -> None:
    assert changed_keys(named(ModelOptions(tokenizer=tokenizer))) == {f"tokenizer.{key}": tokenizer}


def test_what_is_not_allowed_is_refused_by_its_option() -> None:
    with pytest.raises(ConfigError) as raised:
        changed_keys(named(ModelOptions(init_lr_scale=-1.0)))
    assert raised.value.problem == "--init-lr-scale must be at least 0, not -1.0."
    with pytest.raises(
        ConfigError, match=r"^--tokenizer must be .* or vectors, not 'unigramm'\.\nDid you mean unigram\?"
    ):
        changed_keys(named(ModelOptions(tokenizer="unigramm")))


def test_set_has_the_last_word() -> None:
    found = new_run(
        "translate",
        DataOptions(),
        ModelOptions(model="transformer-small"),
        LearningOptions(steps=100, learning_rate=0.5),
        ("training.steps=200",),
    )
    assert (found.config.training.steps, found.config.training.learning_rate) == (200, 0.5)
    assert found.config.model == ModelTable(preset="transformer-small")


@pytest.mark.parametrize(
    ("task", "options", "problem", "remedy"),
    [
        ("translate", {"learning": LearningOptions(class_weights="balanced")}, "--class-weights", "Leave it out."),
        ("image", {"model": ModelOptions(vocabulary="runs/x")}, "--vocabulary", "Leave it out."),
        ("image", {"learning": LearningOptions(batch_tokens=8)}, "--batch-tokens", "Did you mean --batch-images?"),
        ("tag", {"data": DataOptions(text_b="x")}, "--text-b", "Did you mean --text?"),
    ],
)
def test_options_of_other_tasks_are_refused(task: str, options: dict[str, Any], problem: str, remedy: str) -> None:
    groups: dict[str, Any] = {"data": DataOptions(), "model": ModelOptions(), "learning": LearningOptions()}
    with pytest.raises(UsageError) as raised:
        new_run(task, **{**groups, **options})
    assert raised.value.problem == f"{problem} does not apply to {task} runs."
    assert raised.value.remedy == remedy


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
