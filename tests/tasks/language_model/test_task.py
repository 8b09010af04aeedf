"""Language modelling: the report, word vectors. What becomes of prompts is in test_generating.py."""

import math
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor, nn

from regard import config as configuration
from regard.errors import ConfigError
from regard.models.gpt import GPT, GPTConfig
from regard.tasks.language_model.corpus_loss import text_costs
from regard.tasks.language_model.examples import WindowExamples
from regard.tasks.language_model.task import LanguageModelTask
from regard.tasks.options import GenerationOptions
from regard.tasks.task import Prepared

TEXT = "the dog sees the cat\nthe cat sees a tree\n" * 20


def prepare(tmp_path: Path, settings: dict[str, Any] | None = None) -> Prepared:
    file = tmp_path / "text.txt"
    if not file.exists():
        file.write_text(TEXT)
    config = configuration.from_tables({"task": "language", "data": {"train": [str(file)]}}, origin="test")
    config = configuration.override(config, {"model.preset": "gpt-nano", **(settings or {})})
    return LanguageModelTask.prepare(config, vocabulary=None, progress=lambda what, done: None)


def test_lines_that_are_left_out_are_told(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(TEXT.encode() + b"\xff\n")
    valid = tmp_path / "valid.jsonl"
    valid.write_text('{"text": "the dog"}\n{"text": ""}\n')
    prepared = prepare(tmp_path, {"data.valid": [str(valid)], "data.on_bad": "keep-going"})
    assert [text for label, text in prepared.facts if label == "left out"] == [
        rf"1 bad line, not UTF-8: {tmp_path / 'text.txt'}:41 '\xff\n'",
        f"of validation, 1 bad line, no text: {valid}:2",
    ]


# Scores


def test_what_each_token_costs_adds_up_to_the_loss(tmp_path: Path) -> None:
    prepared = prepare(tmp_path, {"tokenizer.kind": "characters", "model.context": 8})
    task, model = prepared.task, network(prepared).eval()
    assert isinstance(task, LanguageModelTask)
    file = tmp_path / "test.jsonl"
    file.write_text('{"text": "the dog sees a tree"}\n{"text": "the cat"}\n')
    encoded: list[tuple[str, int]] = []
    text = task.read([str(file)], GenerationOptions(progress=lambda what, done: encoded.append((what, done))))
    assert encoded == [("encoding", 2)]
    done: list[int] = []
    losses = task.losses(model, text, progress=done.append)
    n_tokens = len("the dog sees a tree") + len("the cat") + 2
    assert losses.shape == (n_tokens,)
    assert done[-1] == n_tokens
    loss, _, bits = (score.value for score in task.scores(model, text))
    assert losses.mean() == pytest.approx(loss, rel=1e-5)
    costs = text_costs(text, task.config.data, task.tokenizer, lambda: task.losses(model, text))
    assert costs.unit == "stretches of 1,000 characters"
    assert costs.n_bytes.tolist() == [len("the dog sees a tree"), len("the cat")]
    assert costs.n_tokens.tolist() == [len("the dog sees a tree") + 1, len("the cat") + 1]
    assert costs.nats.sum() / math.log(2) / costs.n_bytes.sum() == pytest.approx(bits, rel=1e-5)
    assert costs.nats[1] == pytest.approx(losses[-8:].sum())
    assert costs.seconds > 0


def test_bits_per_byte_are_of_a_text_that_is_read_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT * 3)  # enough to tell that it is lower-cased
    prepared = prepare(tmp_path, {"tokenizer.kind": "characters", "model.context": 8})
    task, model = prepared.task, network(prepared).eval()
    assert isinstance(task, LanguageModelTask) and task.tokenizer.lowercase
    assert ("lower case", "training text is lower-cased: input is lower-cased too") in prepared.facts

    def evaluated(text: str) -> tuple[list[str], tuple[str, ...]]:
        (tmp_path / "test.txt").write_text(text)
        found = task.evaluate(model, [str(tmp_path / "test.txt")], GenerationOptions())
        return [score.name for score in found.scores], found.notes

    assert evaluated("the dog\n") == (["loss", "perplexity", "bits_per_byte"], ())
    told = "The text is lower-cased when it is read: there are no bits per byte of it as it stands."
    assert evaluated("The dog\n") == (["loss", "perplexity"], (told,))


def test_a_prompt_is_shown_as_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT * 3)  # enough to tell that it is lower-cased
    prepared = prepare(tmp_path, {"tokenizer.kind": "characters", "model.context": 8})
    task, model = prepared.task, network(prepared).eval()
    assert isinstance(task, LanguageModelTask)
    greedy = GenerationOptions(decoding=configuration.DecodingConfig(beam=1, max_length=5))
    cased, small = task.predict(model, ["The D", "the d"], greedy)
    assert (cased.prompt, cased.unknown, cased.text) == ("The D", (), small.text)
    assert cased.lines() == ["The D" + small.text.replace("\n", " ")]


class Plain(nn.Module):
    """A network of the caller's own: logits, and nothing else."""

    def __init__(self, network: GPT) -> None:
        super().__init__()
        self.network = network

    def forward(self, ids: Tensor, documents: Tensor | None = None) -> Tensor:
        logits: Tensor = self.network(ids, documents)
        return logits


def test_a_network_of_ones_own_costs_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = prepare(tmp_path, {"tokenizer.kind": "characters", "model.context": 8})
    task, model = prepared.task, network(prepared).eval()
    assert isinstance(task, LanguageModelTask) and isinstance(prepared.valid, WindowExamples)
    whole = task.losses(model, prepared.valid)
    assert task.losses(Plain(model), prepared.valid) == pytest.approx(whole, abs=1e-5)
    monkeypatch.setattr("regard.tasks.token_loss.CHUNK_ELEMENTS", 3 * task.tokenizer.vocab_size)
    assert task.losses(model, prepared.valid) == pytest.approx(whole, abs=1e-5)


# Word vectors


@pytest.fixture
def with_vectors(tmp_path: Path) -> dict[str, Any]:
    """Settings with vectors of four features for two of five words."""
    path = tmp_path / "vectors.txt"
    path.write_text("2 4\ndog 1 2 3 4\ntree 5 6 7 8\n")
    return {"tokenizer.kind": "words", "tokenizer.vectors": str(path)}


def network(prepared: Prepared) -> GPT:
    return GPT(GPTConfig(**prepared.task.model_fields(), n_layers=1, n_heads=1, d_model=4, context=8), seed=1)


def test_word_vectors_are_put_in_and_told(tmp_path: Path, with_vectors: dict[str, Any]) -> None:
    prepared = prepare(tmp_path, with_vectors)
    model = network(prepared)
    prepared.task.initialise(model)
    assert isinstance(prepared.task, LanguageModelTask)
    [dog] = prepared.task.tokenizer.encode("dog")
    assert model.embedding.tokens.weight[dog].tolist() == [1, 2, 3, 4]
    n_words = prepared.task.tokenizer.vocab_size
    assert ("vectors", f"2 of {n_words} words, from {tmp_path / 'vectors.txt'}") in prepared.facts


def test_frozen_vectors_need_the_default_weight_decay_off(tmp_path: Path, with_vectors: dict[str, Any]) -> None:
    prepared = prepare(tmp_path, {**with_vectors, "tokenizer.freeze_vectors": True})
    with pytest.raises(ConfigError, match="Weight decay would shrink the vectors"):
        prepared.task.initialise(network(prepared))
    prepared = prepare(tmp_path, {**with_vectors, "tokenizer.freeze_vectors": True, "training.weight_decay": 0.0})
    prepared.task.initialise(network(prepared))
