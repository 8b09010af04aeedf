"""Denoising: spans that are hidden, what they cost, texts that are filled in, and the way on to translation."""

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import regard
from regard import config as configuration
from regard.config import DecodingConfig
from regard.data.pairs.dataset import Vocabulary
from regard.data.text.tokenizer_training import learn
from regard.decoding.result import Hypothesis
from regard.errors import ConfigError, DataError, UsageError
from regard.evaluation.sufficient_statistics import SummedCounts
from regard.models.transformer import Transformer, TransformerConfig
from regard.tasks.denoising.examples import SegmentExamples
from regard.tasks.denoising.span_corruption import DenoisingTask
from regard.tasks.options import GenerationOptions
from regard.tasks.task import Prepared

CPU = torch.device("cpu")
DECODING = DecodingConfig(beam=1)
OPTIONS = GenerationOptions()
SOUNDS = {"dog": "barks", "cat": "meows", "cow": "moos", "pig": "grunts"}


def lines(count: int) -> list[str]:
    chance = random.Random(3)
    animals = (chance.choice(list(SOUNDS)) for _ in range(count))
    return [f"The {chance.choice(['old', 'red', 'big'])} {animal} {SOUNDS[animal]}." for animal in animals]


def write(path: Path, texts: list[str]) -> str:
    path.write_text("".join(f"{text}\n" for text in texts))
    return str(path)


def prepare(tmp_path: Path, settings: dict[str, Any] | None = None, *, vocabulary: Path | None = None) -> Prepared:
    """The task for a network of the caller's own."""
    file = tmp_path / "text.txt"
    if not file.exists():
        write(file, lines(200))
    config = configuration.from_tables({"task": "denoise", "data": {"train": [str(file)]}}, origin="test")
    config = configuration.override(config, {"training.batch_tokens": 256, **(settings or {})})
    return DenoisingTask.prepare(config, vocabulary=vocabulary, progress=lambda what, done: None)


def network(task: DenoisingTask, **settings: Any) -> Transformer:
    sizes = {"n_encoder_layers": 1, "n_decoder_layers": 1, "d_model": 32, "d_ff": 64, "n_heads": 2, "dropout": 0.0}
    return Transformer(TransformerConfig(**task.model_fields(), **{**sizes, **settings}), seed=1)  # type: ignore[arg-type]


def parts(prepared: Prepared, **settings: Any) -> tuple[DenoisingTask, SegmentExamples, Transformer]:
    """The task, its training text and a network for it."""
    assert isinstance(prepared.task, DenoisingTask) and isinstance(prepared.train, SegmentExamples)
    model = network(prepared.task, **settings)
    prepared.task.initialise(model)
    return prepared.task, prepared.train, model


class Plain(nn.Module):
    """A network of the caller's own: logits, and nothing else."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
        logits: Tensor = self.network(source, lengths, target)
        return logits


# The text


def test_the_vocabulary_is_one_that_translation_takes(tmp_path: Path) -> None:
    task, train, _ = parts(prepare(tmp_path))
    assert task.tokenizer.spaced
    assert task.model_fields() == {"source_vocab": task.tokenizer.vocab_size, "target_vocab": task.tokenizer.vocab_size}
    assert task.gaps == tuple(range(4, 68))
    task.save(tmp_path / "vocabulary")
    vocabulary = Vocabulary.load(tmp_path / "vocabulary")
    assert vocabulary.shared
    assert vocabulary.source.encode("The dog") == task.tokenizer.encode("The dog")
    again = DenoisingTask.load(task.config, tmp_path / "vocabulary")
    assert again.tokenizer.to_json() == task.tokenizer.to_json()
    assert train.longest == task.config.data.max_length == 256


def test_the_report_says_what_is_hidden(tmp_path: Path) -> None:
    prepared = prepare(tmp_path, {"corruption.rate": 0.3, "corruption.span": 2.5, "data.max_length": 30})
    facts = dict(prepared.facts)
    assert facts["hidden"] == "30% of the tokens, in spans of 2.5 on average, drawn anew each time"
    assert facts["training"].endswith(" of at most 30")


def test_a_vocabulary_without_gaps_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vocabulary").mkdir()
    learn(lines(20), kind="bpe", vocab_size=300, specials=["<mask>"]).save(tmp_path / "vocabulary" / "shared.json")
    with pytest.raises(ConfigError, match="The vocabulary has no token <gap_0>: it was learned for another task"):
        prepare(tmp_path, vocabulary=tmp_path / "vocabulary")


def test_text_without_words_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="There is no text to learn a vocabulary from"):
        prepare(tmp_path, {"data.train": [write(tmp_path / "blank.txt", [" "] * 100)]})


def test_positions_must_reach_over_a_segment(tmp_path: Path) -> None:
    prepared = prepare(tmp_path)
    with pytest.raises(ConfigError, match=r"^data\.max_length is 256, but the model has positions for 257 tokens"):
        parts(prepared, positions="learned", max_positions=257)
    parts(prepared, positions="learned", max_positions=258)


# What is hidden, and what it costs


@pytest.mark.parametrize(("rate", "span"), [(0.15, 3.0), (0.5, 1.0), (0.9, 1.0)])
def test_the_loss_is_that_of_the_pair(tmp_path: Path, rate: float, span: float) -> None:
    settings = {"corruption.rate": rate, "corruption.span": span, "data.max_length": 30}
    task, train, model = parts(prepare(tmp_path, settings), positions="learned", max_positions=32)
    model.eval()
    batch = train.batch(train.fixed_order()[-1], CPU)
    sources, targets = task.hide(batch, anew=False)
    total, n_tokens = 0.0, 0
    for source, target in zip(sources, targets, strict=True):
        ids = torch.tensor([[*source, task.tokenizer.end_id]])
        read = torch.tensor([[task.tokenizer.start_id, *target]])
        with torch.inference_mode():
            log_probs = model(ids, torch.tensor([ids.shape[1]]), read)[0].log_softmax(-1)
        wanted = [*target, task.tokenizer.end_id]
        total -= float(log_probs[range(len(wanted)), wanted].sum())
        n_tokens += len(wanted)
    for whole in (model, Plain(model).eval()):
        with torch.inference_mode():
            loss, weight = task.loss(whole, batch, smoothing=0.0)
        assert weight == n_tokens
        assert float(loss) == pytest.approx(total, rel=1e-4)


def test_a_step_hides_by_torchs_generator_and_validation_always_the_same(tmp_path: Path) -> None:
    task, train, model = parts(prepare(tmp_path, {"data.max_length": 24}))
    batch = train.batch(train.fixed_order()[0], CPU)

    def loss(seed: int) -> float:
        torch.manual_seed(seed)
        return float(task.loss(model, batch, smoothing=0.0)[0].detach())

    model.train()
    assert loss(1) == loss(1) != loss(2)
    model.eval()
    assert loss(1) == loss(2)


def test_scores_are_over_all_that_is_written(tmp_path: Path) -> None:
    task, _, model = parts(prepare(tmp_path, {"data.max_length": 24}))
    model.eval()
    file = write(tmp_path / "test.txt", lines(30))
    text = task.read([file], OPTIONS)
    done: list[int] = []
    loss, perplexity = task.scores(model, text, progress=done.append)
    assert (loss.name, loss.signature) == ("loss", "unit:nats per token|hidden:0.15|span:3")
    assert (perplexity.name, perplexity.signature) == ("perplexity", "unit:token|hidden:0.15|span:3")
    assert loss.value == pytest.approx(math.log(task.tokenizer.vocab_size), rel=0.3)
    assert perplexity.value == pytest.approx(math.exp(loss.value))
    assert done[-1] == text.n_tokens


def test_what_each_segment_adds_to_the_scores(tmp_path: Path) -> None:
    task, _, model = parts(prepare(tmp_path, {"data.max_length": 24}))
    file = write(tmp_path / "test.txt", lines(30))
    whole = task.evaluate(model.eval(), [file], OPTIONS)
    assert [score.signature for score in whole.scores][1] == "unit:token|hidden:0.15|span:3"
    text = task.read([file], OPTIONS)
    for network in (model, Plain(model).eval()):
        found = task.evaluate(network, [file], GenerationOptions(paired=True))
        assert list(found.values) == ["loss", "perplexity"]
        assert list(found.values.values()) == pytest.approx(list(whole.values.values()), rel=1e-5)
        costs = found.statistics[0]
        assert isinstance(costs, SummedCounts) and len(costs) == len(text)
        with torch.inference_mode():
            loss, weight = task.loss(model, text.batch(np.array([3]), CPU), smoothing=0.0)
        assert costs.counts[3].tolist() == pytest.approx([float(loss), weight], rel=1e-5)
    assert found.count == whole.count == text.n_tokens


def test_a_validation_shows_what_was_hidden(tmp_path: Path) -> None:
    task, train, model = parts(prepare(tmp_path, {"tokenizer.kind": "words", "data.max_length": 20}))
    found = task.validate(model.eval(), train, DECODING, n_samples=1)
    assert found.scores.keys() == {"perplexity"}
    assert len(found.samples) == 3
    for number, (shown, was, _) in zip((0, len(train) // 3, 2 * (len(train) // 3)), found.samples, strict=True):
        assert shown.count("[MASK]") == 1
        [text] = train.batch(np.array([number]), CPU).texts()
        assert shown.replace("[MASK]", was) == task.tokenizer.decode(text.tolist())
    assert task.validate(model, train, DECODING, n_samples=0).samples == ()
    assert task.validate(Plain(model).eval(), train, DECODING, n_samples=1).samples == ()


# Texts filled in


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> tuple[DenoisingTask, Transformer]:
    """A network that has learned which animal makes which sound."""
    folder = tmp_path_factory.mktemp("learned")
    file = write(folder / "text.jsonl", [json.dumps({"text": text}) for text in lines(72)])
    settings = {
        "tokenizer.kind": "words",
        "data.train": [file],
        "data.valid": [file],
        "corruption.rate": 0.4,
        "corruption.span": 1.0,
        "training.batch_tokens": 1024,
    }
    task, train, model = parts(prepare(folder, settings), norm_order="pre")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.005)
    torch.manual_seed(1)
    for epoch in range(80):
        for indices in train.order(epoch):
            loss, weight = task.loss(model.train(), train.batch(indices, CPU), smoothing=0.0)
            optimizer.zero_grad()
            (loss / weight).backward()
            optimizer.step()
    return task, model.eval()


def test_gaps_are_filled_with_what_the_decoder_writes(learned: tuple[DenoisingTask, Transformer]) -> None:
    task, model = learned
    texts = ["The old [MASK] meows.", "The [MASK] cow <mask>."]
    done: list[tuple[str, int]] = []
    for decoding in (None, DecodingConfig(beam=3, n_best=2)):
        options = GenerationOptions(decoding=decoding, progress=lambda *told: done.append(told))
        first, second = task.predict(model, texts, options)
        assert first.text == "The old cat meows."
        assert first.source == texts[0]
        [[guess]] = first.guesses
        assert guess.text == " cat"
        assert 0.5 < guess.probability <= 1
        assert second.text.endswith(" cow moos.")
        assert len(second.guesses) == 2
    assert done == [("writing", 2)] * 2


def test_what_is_banned_is_not_written(learned: tuple[DenoisingTask, Transformer]) -> None:
    task, model = learned
    [found] = task.predict(model, ["The old [MASK] meows."], GenerationOptions(banned=("cat",)))
    assert "cat" not in found.text


def test_batched_equals_alone(learned: tuple[DenoisingTask, Transformer]) -> None:
    task, model = learned
    texts = ["[MASK]", "The old dog [MASK]", "The [MASK] pig [MASK]."]
    alone = [task.predict(model, [text], OPTIONS)[0].text for text in texts]
    assert [one.text for one in task.predict(model, texts, OPTIONS)] == alone


def test_what_is_written_is_read_by_its_gaps(tmp_path: Path) -> None:
    task, _, _ = parts(prepare(tmp_path))
    first, second, third = task.gaps[:3]

    def spans(*ids: int, count: int = 2) -> list[tuple[list[int], float]]:
        written = Hypothesis(ids=ids, log_probs=(-1.0,) * (len(ids) + 1), score=0.0, finished=True)
        return task.spans(written.ids, written.log_probs, count)

    assert spans(first, 70, 71, second, 72) == [([70, 71], -3.0), ([72], -2.0)]
    assert spans(second, 72) == [([], -math.inf), ([72], -2.0)]
    assert spans(first, second) == [([], -1.0), ([], -1.0)]
    assert spans(first, 70, third, 71, second, 72) == [([70], -2.0), ([], -math.inf)]  # a gap that is not there ends it
    assert spans(first, 70, first, 71) == [([70], -2.0), ([], -math.inf)]
    assert spans(70, first, 71) == [([71], -2.0), ([], -math.inf)]


def test_what_is_written_fits_the_positions(tmp_path: Path) -> None:
    settings = {"tokenizer.kind": "words", "data.max_length": 14}
    task, _, model = parts(prepare(tmp_path, settings), positions="learned", max_positions=16)
    [found] = task.predict(model.eval(), ["The [MASK] dog"], OPTIONS)
    assert found.text.startswith("The")
    whole, long = task.predict(model, ["The [MASK]" + " dog" * 13, "The [MASK]" + " dog" * 14], OPTIONS)
    assert (whole.cut, long.cut, long.truncation) == (False, True, "read around the blanks")
    assert long.text == f"{whole.text} dog"
    [far] = task.predict(model, ["The [MASK]" + " dog" * 20 + " [MASK] dog"], OPTIONS)
    assert (len(far.guesses), far.cut, "[MASK]" in far.text) == (2, True, False)


def test_texts_that_cannot_be_filled(learned: tuple[DenoisingTask, Transformer]) -> None:
    task, model = learned
    with pytest.raises(UsageError, match=r"There is no \[MASK\] in 'The dog'"):
        task.predict(model, ["The dog"], OPTIONS)
    with pytest.raises(UsageError) as caught:
        task.predict(model, ["[MASK] " * 65], OPTIONS)
    assert str(caught.value).endswith("has 65 blanks, and a model knows 64.\nFill it in parts.")


# The way on


def test_a_run_can_be_stopped_and_goes_on_to_translate(tmp_path: Path, corpus: tuple[str, str]) -> None:
    settings = {
        "model.d_model": 16,
        "model.d_ff": 32,
        "model.n_heads": 2,
        "model.n_encoder_layers": 1,
        "model.n_decoder_layers": 1,
        "tokenizer.vocab_size": 400,
        "data.max_length": 24,
        "training.batch_tokens": 128,
        "training.warmup": 2,
        "training.schedule": "constant",  # which does not depend on the last step
        "runtime.device": "cpu",
        "runtime.threads": 1,
    }
    steps = {"training.steps": 6, "training.validate_every": 3}
    whole = regard.train(
        "denoise", train=corpus, model="t5-tiny", run=tmp_path / "whole", settings={**settings, **steps}
    )
    halves = {**settings, "training.steps": 3}
    regard.train("denoise", train=corpus, model="t5-tiny", run=tmp_path / "halves", settings=halves)
    resumed = regard.resume(tmp_path / "halves", settings={"training.steps": 6})
    assert isinstance(whole, regard.Run)
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, resumed.model.state_dict()[name])
    translated = regard.train(
        "translate",
        train=corpus,
        run=tmp_path / "translated",
        settings={"training.init": str(tmp_path / "whole"), "training.steps": 2, "runtime.device": "cpu"},
    )
    assert isinstance(translated, regard.Run)
    assert translated.task.vocabulary.source.to_json() == whole.task.tokenizer.to_json()
