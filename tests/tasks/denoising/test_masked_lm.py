"""Masked words: what is asked and what it costs, guesses, the report, and what cannot be read."""

import json
import math
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard import config as configuration
from regard.config import DecodingConfig
from regard.data.text.tokenizer_training import learn
from regard.errors import ConfigError, DataError, UsageError
from regard.evaluation.sufficient_statistics import SummedCounts
from regard.models.presets import build_model, model_config
from regard.tasks.denoising.examples import SegmentBatch, SegmentExamples
from regard.tasks.denoising.masked_lm import MaskedLMTask, MaskOptions
from regard.tasks.task import Prepared

CPU = torch.device("cpu")
DECODING = DecodingConfig()
# Each animal makes a sound of its own, so that the one can be told from the other.
SOUNDS = {"dog": "barks", "cat": "meows", "cow": "moos", "pig": "grunts"}
SMALL = {"model.n_layers": 1, "model.d_model": 32, "model.d_ff": 64, "model.dropout": 0.0}


def lines(count: int) -> list[str]:
    chance = random.Random(3)
    animals = (chance.choice(list(SOUNDS)) for _ in range(count))
    return [f"The {chance.choice(['old', 'red', 'big'])} {animal} {SOUNDS[animal]}." for animal in animals]


def write(path: Path, texts: list[str]) -> str:
    path.write_text("".join(f"{text}\n" for text in texts))
    return str(path)


def prepare(
    tmp_path: Path, settings: dict[str, Any] | None = None, *, model: str = "bert-tiny", vocabulary: Path | None = None
) -> Prepared:
    file = tmp_path / "text.txt"
    if not file.exists():
        write(file, lines(200))
    config = configuration.from_tables({"task": "mask", "data": {"train": [str(file)]}}, origin="test")
    own = {"model.preset": model, "training.batch_tokens": 256, **({} if model != "bert-tiny" else SMALL)}
    config = configuration.override(config, {**own, **(settings or {})})
    return MaskedLMTask.prepare(config, vocabulary=vocabulary, progress=lambda what, done: None)


def parts(prepared: Prepared) -> tuple[MaskedLMTask, SegmentExamples, nn.Module]:
    """The task, its training text and a network for it."""
    task = prepared.task
    assert isinstance(task, MaskedLMTask) and isinstance(prepared.train, SegmentExamples)
    model = build_model(model_config(task.config.model, origin="test", **task.model_fields()), seed=1)
    task.initialise(model)
    return task, prepared.train, model


class Plain(nn.Module):
    """A network of the caller's own: logits, and nothing else."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        logits: Tensor = self.network(ids, lengths)
        return logits


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> tuple[MaskedLMTask, SegmentExamples, nn.Module]:
    """A network that has learned which animal makes which sound, from documents of one or two sentences."""
    folder, sentences = tmp_path_factory.mktemp("learned"), lines(160)
    texts = [" ".join(sentences[start : start + 1 + start % 3 % 2]) for start in range(0, 160, 2)]
    file = write(folder / "text.jsonl", [json.dumps({"text": text}) for text in texts])
    settings = {"tokenizer.kind": "words", "training.batch_tokens": 1024}
    task, train, model = parts(prepare(folder, {**settings, "data.train": [file], "data.valid": [file]}))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.005)
    torch.manual_seed(1)
    for epoch in range(150):
        for indices in train.order(epoch):
            loss, weight = task.loss(model.train(), train.batch(indices, CPU), smoothing=0.0)
            optimizer.zero_grad()
            (loss / weight).backward()
            optimizer.step()
    return task, train, model.eval()


# The text


def test_the_vocabulary_is_one_of_sentences_with_a_mask(tmp_path: Path) -> None:
    prepared = prepare(tmp_path)
    task, train, _ = parts(prepared)
    assert task.tokenizer.spaced
    assert task.model_fields() == {"vocab": task.tokenizer.vocab_size, "head": "words"}
    assert task.tokenizer.id_of("<mask>") == 4
    [text] = train.batch(np.array([0]), CPU).texts()
    assert task.tokenizer.decode(text.tolist()).startswith("The ")
    assert "\n" not in task.tokenizer.decode(text.tolist())
    task.save(tmp_path / "vocabulary")
    again = MaskedLMTask.load(task.config, tmp_path / "vocabulary")
    assert again.tokenizer.to_json() == task.tokenizer.to_json()
    given = prepare(tmp_path, vocabulary=tmp_path / "vocabulary").task
    assert isinstance(given, MaskedLMTask)
    assert given.tokenizer.to_json() == task.tokenizer.to_json()


def test_the_report(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes("".join(f"{line}\n" for line in lines(200)).encode() + b"\xff\n")
    prepared = prepare(tmp_path, {"tokenizer.kind": "words", "data.max_length": 30})
    train, valid = prepared.train, prepared.valid
    assert isinstance(train, SegmentExamples) and isinstance(valid, SegmentExamples)
    assert train.n_tokens + valid.n_tokens == 200 * 5  # the full stop is a word
    facts = dict(prepared.facts)
    n_segments = math.ceil(train.n_tokens / 30)
    assert facts.pop("training") == f"{train.n_tokens} tokens, 1 document, {n_segments} segments of at most 30"
    assert facts.pop("validation") == f"{valid.n_tokens} tokens, the last 10% of the text, held out"
    assert facts.pop("vocabulary") == "18 tokens (words)"
    assert facts.pop("hidden") == (
        "15% of the tokens, drawn anew each time: 80% of them as <mask>, 10% as any other token, the rest as they are"
    )
    assert facts.pop("batches") == f"{len(train.order(0))} per epoch, {_padding(train):.1%} padding"
    assert facts.pop("left out") == rf"1 bad line, not UTF-8: {tmp_path / 'text.txt'}:201 '\xff\n'"
    assert facts.pop("tokenizer loss").startswith("Words that are not in the vocabulary")
    assert not facts


def _padding(train: SegmentExamples) -> float:
    batches = [train.batch(indices, CPU) for indices in train.order(0)]
    return 1 - sum(batch.lengths.sum() for batch in batches) / sum(batch.ids.size for batch in batches)


@pytest.mark.parametrize(
    ("positions", "allowed", "longest"), [(20, 256, 18), (20, 18, 18), (20, 10, 10), (512, 256, 256)]
)
def test_segments_fit_the_positions(tmp_path: Path, positions: int, allowed: int, longest: int) -> None:
    task, train, _ = parts(prepare(tmp_path, {"model.max_positions": positions, "data.max_length": allowed}))
    assert task.longest == longest
    assert train.lengths.max() - 2 <= longest
    assert len(train) == math.ceil(train.n_tokens / longest)


def test_a_recurrent_encoder_has_no_positions_to_run_out_of(tmp_path: Path) -> None:
    settings = {"data.max_length": 1000, "model.d_model": 16, "model.d_state": 8}
    task, train, model = parts(prepare(tmp_path, settings, model="birnn"))
    assert train.longest == 1000
    loss, weight = task.loss(model.eval(), train.batch(np.array([0]), CPU), smoothing=0.0)
    assert float(loss.detach()) / weight == pytest.approx(math.log(task.tokenizer.vocab_size), rel=0.3)


def test_too_few_positions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        prepare(tmp_path, {"model.max_positions": 2})
    assert str(caught.value) == (
        "model.max_positions is 2, and 2 special tokens stand around a text.\n"
        "Set model.max_positions to more than 2, as 512."
    )
    task, _, model = parts(prepare(tmp_path, {"model.max_positions": 20}))
    own = MaskedLMTask(task.tokenizer, configuration.override(task.config, {"model.preset": ""}))
    with pytest.raises(ConfigError) as caught:
        own.initialise(model)
    assert str(caught.value) == (
        "data.max_length is 256, but the model has positions for 20 tokens, 2 of them for special ones.\n"
        "Set data.max_length=18, or give the model more positions."
    )


def test_word_vectors_are_put_in_and_told(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(f"1 32\ndog {' '.join(map(str, range(32)))}\n")
    prepared = prepare(tmp_path, {"tokenizer.kind": "words", "tokenizer.vectors": str(path)})
    task, _, model = parts(prepared)
    [dog] = task.tokenizer.encode("dog")
    assert model.get_parameter("embedding.tokens.weight")[dog].tolist() == list(range(32))
    assert ("vectors", f"1 of 18 words, from {path}") in prepared.facts


# What is hidden, and what it costs


def test_the_loss_is_the_cross_entropy_of_the_hidden_tokens(tmp_path: Path) -> None:
    task, train, model = parts(prepare(tmp_path))
    batch = train.batch(train.fixed_order()[0], CPU)
    shown, hidden = task.hide(batch, anew=False)
    logits = model.eval()(torch.from_numpy(shown), torch.from_numpy(batch.lengths))
    expected = F.cross_entropy(logits[hidden], torch.from_numpy(batch.ids[hidden]), reduction="sum")
    for network in (model, Plain(model).eval()):
        for smoothing in (0.0, 0.1):
            with torch.inference_mode():
                loss, weight = task.loss(network, batch, smoothing=smoothing)
            assert weight == hidden.sum()
            if not smoothing:
                assert float(loss) == pytest.approx(float(expected.detach()), rel=1e-5)
            else:
                assert float(loss) != pytest.approx(float(expected.detach()), rel=1e-5)
    assert (hidden.sum(axis=1) == np.maximum(1, np.floor(0.15 * (batch.lengths - 2) + 0.5))).all()


def test_a_step_hides_by_torchs_generator_and_validation_always_the_same(tmp_path: Path) -> None:
    task, train, model = parts(prepare(tmp_path, {"data.max_length": 12}))
    batch = train.batch(train.fixed_order()[0], CPU)

    def loss(seed: int, batch: SegmentBatch = batch) -> float:
        torch.manual_seed(seed)
        return float(task.loss(model, batch, smoothing=0.0)[0].detach())

    model.train()
    assert loss(1) == loss(1) != loss(2)
    model.eval()
    assert loss(1) == loss(2)
    alone = sum(loss(1, train.batch(np.array([number]), CPU)) for number in batch.numbers)
    assert alone == pytest.approx(loss(1), rel=1e-5)


def answers(task: MaskedLMTask, model: nn.Module, text: SegmentExamples) -> Iterator[tuple[Tensor, Tensor]]:
    for indices in text.fixed_order():
        batch = text.batch(indices, CPU)
        shown, hidden = task.hide(batch, anew=False)
        logits = model(torch.from_numpy(shown), torch.from_numpy(batch.lengths))
        yield logits[torch.from_numpy(hidden)], torch.from_numpy(batch.ids[hidden])


def test_the_loss_waits_for_no_device(tmp_path: Path) -> None:
    task, train, model = parts(prepare(tmp_path))
    expected = task.loss(model.eval(), train.batch(np.arange(4), CPU), smoothing=0.0)
    # On `meta`, tensors have a shape and no content: whoever looks at them is told so.
    loss, weight = task.loss(model.to("meta"), train.batch(np.arange(4), torch.device("meta")), smoothing=0.0)
    assert (loss.shape, weight) == (expected[0].shape, expected[1])


def test_scores_are_over_all_hidden_tokens(
    learned: tuple[MaskedLMTask, SegmentExamples, nn.Module], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, _, model = learned
    file = write(tmp_path / "test.txt", lines(50))
    text = task.read([file], MaskOptions())
    done: list[int] = []
    scores = task.scores(model, text, progress=done.append)
    loss, perplexity, accuracy = scores
    assert [score.name for score in scores] == ["loss", "perplexity", "masked_accuracy"]
    n_hidden = sum(len(goals) for _, goals in answers(task, model, text))
    assert [score.signature for score in scores] == [
        f"{own}|hidden:0.15" for own in ("unit:nats per token", "unit:token", f"tokens:{n_hidden}")
    ]
    assert done[-1] == text.n_tokens == 250
    total, weight = 0.0, 0.0
    for indices in text.fixed_order():
        with torch.inference_mode():
            own, count = task.loss(model, text.batch(indices, CPU), smoothing=0.0)
        total, weight = total + float(own), weight + count
    assert loss.value == pytest.approx(total / weight, rel=1e-5)
    assert perplexity.value == pytest.approx(math.exp(loss.value), rel=1e-5)
    n_right = sum(int((logits.argmax(1) == goals).sum()) for logits, goals in answers(task, model, text))
    assert accuracy.value == pytest.approx(100 * n_right / weight)
    monkeypatch.setattr("regard.tasks.denoising.masked_lm.CHUNK_ELEMENTS", 3 * task.tokenizer.vocab_size)
    for network in (model, Plain(model).eval()):
        assert [one.value for one in task.scores(network, text)] == pytest.approx(
            [one.value for one in scores], rel=1e-5
        )


def test_what_each_segment_adds_to_the_scores(
    learned: tuple[MaskedLMTask, SegmentExamples, nn.Module], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, _, model = learned
    file = write(tmp_path / "test.jsonl", [json.dumps({"text": text}) for text in lines(50)])
    whole = task.evaluate(model, [file], MaskOptions())
    assert (whole.statistics, whole.count, whole.unit) == ((), 250, "tokens")
    monkeypatch.setattr("regard.tasks.denoising.masked_lm.CHUNK_ELEMENTS", 3 * task.tokenizer.vocab_size)
    for network in (model, Plain(model).eval()):
        found = task.evaluate(network, [file], MaskOptions(paired=True))
        assert [one.metric for one in found.statistics] == ["loss", "perplexity", "masked_accuracy"]
        assert list(found.values.values()) == pytest.approx(list(whole.values.values()), rel=1e-5)
        assert (found.paired_unit, [len(one) for one in found.statistics]) == ("segments", [50] * 3)
    signature = found.statistics[0].signature
    assert re.fullmatch(r"unit:nats per token\|hidden:0\.15\|longest:256\|vocabulary:[0-9a-f]{8}", signature)
    text = task.read([file], MaskOptions())
    batch = text.batch(np.array([7]), CPU)
    with torch.inference_mode():
        loss, weight = task.loss(model, batch, smoothing=0.0)
    costs = found.statistics[0]
    assert isinstance(costs, SummedCounts)
    assert costs.counts[7].tolist() == pytest.approx([float(loss), weight], abs=1e-5)


def test_a_validation_shows_what_was_hidden(learned: tuple[MaskedLMTask, SegmentExamples, nn.Module]) -> None:
    task, train, model = learned
    found = task.validate(model, train, DECODING, n_samples=1)
    assert found.scores.keys() == {"perplexity", "masked_accuracy"}
    low, high = found.intervals["masked_accuracy"]
    assert low <= found.scores["masked_accuracy"] <= high
    assert len(found.samples) == 3
    for shown, was, guessed in found.samples:
        n_hidden = 2 if len(shown.split()) == 10 else 1  # of two sentences or one
        assert shown.count("[MASK]") == len(was.split(" | ")) == len(guessed.split(" | ")) == n_hidden
        for word in was.split(" | "):
            shown = shown.replace("[MASK]", word, 1)
        assert SOUNDS[shown.split()[2]] == shown.split()[3]
    assert task.validate(model, train, DECODING, n_samples=0).samples == ()


def test_what_is_left_out_of_a_scored_text_is_told(
    learned: tuple[MaskedLMTask, SegmentExamples, nn.Module], tmp_path: Path
) -> None:
    task = learned[0]
    file = tmp_path / "test.jsonl"
    file.write_text('{"text": "The dog barks."}\n{"text": ""}\n')
    data = configuration.override(task.config, {"data.on_bad": "keep-going"}).data
    found = task.evaluate(learned[2], [str(file)], MaskOptions(data=data))
    assert (found.count, found.unit) == (4, "tokens")
    assert found.notes == (f"Left out: 1 bad line, no text: {file}:2.",)


# Guesses


def test_masks_are_filled_with_what_is_likeliest(learned: tuple[MaskedLMTask, SegmentExamples, nn.Module]) -> None:
    task, _, model = learned
    texts = ["The old [MASK] meows.", "The big cow <mask>.", "The red [MASK] barks. The old pig [MASK]."]
    done: list[tuple[str, int]] = []
    found = task.predict(model, texts, MaskOptions(top=3, progress=lambda *told: done.append(told)))
    assert [one.text for one in found] == [
        "The old cat meows.",
        "The big cow moos.",
        "The red dog barks. The old pig grunts.",
    ]
    assert [one.source for one in found] == texts
    assert [len(one.guesses) for one in found] == [1, 1, 2]
    for one in found:
        for guesses in one.guesses:
            probabilities = [guess.probability for guess in guesses]
            assert len(guesses) == 3
            assert probabilities == sorted(probabilities, reverse=True)
            assert 0.5 < sum(probabilities) <= 1.0001
    assert found[0].guesses[0][0].text == "cat"
    assert done == [("reading", 3)]


def test_batched_guesses_equal_those_alone(learned: tuple[MaskedLMTask, SegmentExamples, nn.Module]) -> None:
    task, _, model = learned
    texts = ["[MASK]", "The old dog barks. The [MASK] cat [MASK].", "The [MASK]"]
    for one, text in zip(task.predict(model, texts, MaskOptions()), texts, strict=True):
        [alone] = task.predict(model, [text], MaskOptions())
        assert one.text == alone.text
        for guesses, others in zip(one.guesses, alone.guesses, strict=True):
            assert [guess.text for guess in guesses] == [guess.text for guess in others]
            expected = [guess.probability for guess in others]
            assert [guess.probability for guess in guesses] == pytest.approx(expected, abs=1e-5)


def test_only_text_is_guessed(learned: tuple[MaskedLMTask, SegmentExamples, nn.Module]) -> None:
    task, _, model = learned
    [found] = task.predict(model, ["The [MASK]"], MaskOptions(top=100))
    [guesses] = found.guesses
    assert len(guesses) == task.tokenizer.vocab_size - 5
    assert not {guess.text for guess in guesses} & {*task.tokenizer.specials}


def test_guesses_of_a_bpe_have_their_space(tmp_path: Path) -> None:
    task, _, model = parts(prepare(tmp_path))
    [found] = task.predict(model.eval(), ["The old [MASK] barks."], MaskOptions(top=2))
    best = found.guesses[0][0].text
    assert found.text == f"The old{best} barks."


def test_texts_that_cannot_be_filled(learned: tuple[MaskedLMTask, SegmentExamples, nn.Module]) -> None:
    task, _, model = learned
    with pytest.raises(UsageError, match=r"There is no \[MASK\] in 'The dog barks.'"):
        task.predict(model, ["The [MASK] barks.", "The dog barks."], MaskOptions())
    with pytest.raises(UsageError, match="At least 1 guess is made for each blank, not 0"):
        task.predict(model, ["The [MASK] barks."], MaskOptions(top=0))


def test_of_a_long_text_what_stands_around_the_masks_is_read(tmp_path: Path) -> None:
    task, _, model = parts(prepare(tmp_path, {"model.max_positions": 8, "tokenizer.kind": "words"}))
    model.eval()
    whole, long = task.predict(model, ["dog barks . The old [MASK]", "The dog barks . The old [MASK]"], MaskOptions())
    assert (whole.cut, long.cut, long.truncation) == (False, True, "read around the blanks")
    assert long.text == f"The {whole.text}"
    assert [one.text for one in long.guesses[0]] == [one.text for one in whole.guesses[0]]
    far = "The [MASK] barks . The old dog barks . The old [MASK] sees the dog ."
    [found] = task.predict(model, [far], MaskOptions())
    assert (len(found.guesses), found.cut) == (2, True)
    assert found.text.endswith(" sees the dog .") and "[MASK]" not in found.text


# Bad input


def test_empty_files_and_texts_without_words(tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    with pytest.raises(DataError, match=r"empty.txt"):
        prepare(tmp_path, {"data.train": [str(empty)]})
    blank = write(tmp_path / "blank.txt", ["   ", "", "\t"] * 50)
    with pytest.raises(DataError) as caught:
        prepare(tmp_path, {"data.train": [blank]})
    assert str(caught.value) == ("There is no text to learn a vocabulary from.\nGive a corpus with at least one word.")
    parts(prepare(tmp_path))[0].save(tmp_path / "vocabulary")
    with pytest.raises(DataError) as caught:
        prepare(tmp_path, {"data.train": [blank]}, vocabulary=tmp_path / "vocabulary")
    assert str(caught.value) == ("No text is left for training.\nGive more, or give validation files with --valid.")
    with pytest.raises(DataError, match=r"^No text is left for validation\."):
        prepare(tmp_path, {"data.valid": [blank]}, vocabulary=tmp_path / "vocabulary")


def test_a_vocabulary_without_a_mask_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vocabulary").mkdir()
    learn(lines(20), kind="bpe", vocab_size=300).save(tmp_path / "vocabulary" / "shared.json")
    message = (
        "The vocabulary has no token <mask>: it was learned for another task.\n"
        "Take that of a run of the same task, or let a new one be learned."
    )
    with pytest.raises(ConfigError) as caught:
        prepare(tmp_path, vocabulary=tmp_path / "vocabulary")
    assert str(caught.value) == message
    with pytest.raises(ConfigError) as caught:
        prepare(tmp_path, {"tokenizer.file": str(tmp_path / "vocabulary" / "shared.json")})
    assert str(caught.value) == message


def test_unknown_words_alone_leave_nothing_to_guess(
    learned: tuple[MaskedLMTask, SegmentExamples, nn.Module], tmp_path: Path
) -> None:
    file = write(tmp_path / "test.txt", ["lorem ipsum"])
    with pytest.raises(DataError) as caught:
        learned[0].read([file], MaskOptions())
    assert str(caught.value) == (
        f"{file}: there is nothing to guess: no token of the text is in the vocabulary.\n"
        "Check that these are the right files and the right vocabulary."
    )
