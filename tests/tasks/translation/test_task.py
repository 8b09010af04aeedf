"""Translation: batches, the loss, the report, word vectors. What becomes of lines is in test_translator.py."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regard
from regard import config as configuration
from regard.api import Run
from regard.config import DecodingConfig, ModelTable
from regard.data.pairs.dataset import Vocabulary
from regard.data.text.tokenizer_training import learn
from regard.errors import ConfigError, DataError
from regard.evaluation.generated_text import score_translations
from regard.models.transformer import Transformer, TransformerConfig
from regard.tasks.task import Prepared
from regard.tasks.translation.examples import PairExamples, pair_batch
from regard.tasks.translation.task import TranslationTask
from regard.tasks.translation.translator import Translation, TranslationOptions

GREEDY = DecodingConfig(beam=1)
BEAM = DecodingConfig(beam=4)
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def run(trained: Path) -> Run:
    return regard.load(trained, threads=1, engine="torch")


@pytest.fixture(scope="module")
def prepare(corpus: tuple[str, str], tiny: dict[str, Any]) -> Callable[..., Prepared]:
    def make(settings: dict[str, Any] | None = None, **options: Any) -> Prepared:
        tables: dict[str, Any] = {"task": "translate", "data": {"train": list(corpus)}}
        for key, value in {**tiny, **(settings or {})}.items():
            table, _, name = key.rpartition(".")
            tables.setdefault(table, {})[name] = value
        config = configuration.from_tables(tables, origin="test")
        return TranslationTask.prepare(config, vocabulary=None, progress=lambda what, done: None, **options)

    return make


def texts(translations: list[Translation]) -> list[str]:
    return [one.text for one in translations]


# Batches and the loss


def test_a_batch_is_padded_behind_with_start_and_end_tokens(run: Run) -> None:
    vocabulary = run.task.vocabulary
    batch = pair_batch([[7, 8, 9], [5]], [[4], [6, 7]], vocabulary, CPU)
    pad, start, end = 0, 1, 2
    assert batch.source.tolist() == [[7, 8, 9, end], [5, end, pad, pad]]
    assert batch.source_lengths.tolist() == [4, 2]
    assert batch.target.tolist() == [[start, 4, end, pad], [start, 6, 7, end]]
    assert batch.target_lengths.tolist() == [2, 3]


def test_examples_come_as_they_were_written(prepare: Callable[..., Prepared], corpus: tuple[str, str]) -> None:
    prepared = prepare()
    assert isinstance(prepared.train, PairExamples)
    order = prepared.train.order(3)
    assert sorted(np.concatenate(order).tolist()) == list(range(len(prepared.train)))
    lines = Path(corpus[0]).read_text().splitlines()
    batch = prepared.train.batch(order[0], CPU)
    for row, place in zip(batch.source, prepared.train.places(order[0]), strict=True):
        file, _, line = place.rpartition(":")
        assert file == corpus[0]
        assert prepared.train.vocabulary.source.decode(row.tolist()) == lines[int(line) - 1]
    budget = 96
    assert all(len(indices) * prepared.train.lengths[indices].max() <= budget for indices in order)


def test_the_order_is_a_function_of_seed_and_epoch(prepare: Callable[..., Prepared]) -> None:
    def order(epoch: int) -> list[list[int]]:
        return [batch.tolist() for batch in prepare().train.order(epoch)]

    assert order(0) == order(0)
    assert order(0) != order(1)


def test_the_loss_is_the_sum_over_real_tokens(run: Run) -> None:
    batch = pair_batch([[7, 8, 9], [5]], [[4], [6, 7]], run.task.vocabulary, CPU)
    with torch.no_grad():
        loss, weight = run.task.loss(run.model, batch, smoothing=0.1)
        logits = run.model(batch.source, batch.source_lengths, batch.target[:, :-1])
    assert weight == 5  # the end tokens count, start tokens and padding do not
    expected = F.cross_entropy(logits[0, :2], torch.tensor([4, 2]), label_smoothing=0.1, reduction="sum")
    expected += F.cross_entropy(logits[1], torch.tensor([6, 7, 2]), label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(loss, expected)


def test_a_batch_has_the_loss_of_its_examples(run: Run) -> None:
    pairs = [([7, 8, 9], [4]), ([5], [6, 7]), ([9, 9, 9, 9, 9, 9], [8, 8, 8, 8])]
    with torch.no_grad():
        alone = [
            run.task.loss(run.model, pair_batch([source], [target], run.task.vocabulary, CPU), smoothing=0.1)
            for source, target in pairs
        ]
        sources, targets = zip(*pairs, strict=True)
        together, weight = run.task.loss(
            run.model, pair_batch(sources, targets, run.task.vocabulary, CPU), smoothing=0.1
        )
    assert weight == sum(one for _, one in alone)
    torch.testing.assert_close(together, torch.stack([loss for loss, _ in alone]).sum())


class Biased(nn.Module):
    """An own network with states and an output layer that has a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.output = nn.Embedding(320, 8), nn.Linear(8, 320)

    def states(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        return self.embedding(target)

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        return self.output(self.states(source, source_lengths, target))


def test_the_bias_of_an_own_output_layer_counts(run: Run) -> None:
    torch.manual_seed(2)
    model = Biased()
    plain = nn.Module()
    plain.forward = model.forward  # type: ignore[method-assign]
    batch = pair_batch([[7]], [[4, 5]], run.task.vocabulary, CPU)
    torch.testing.assert_close(
        run.task.loss(model, batch, smoothing=0.1)[0], run.task.loss(plain, batch, smoothing=0.1)[0]
    )


def test_validation_is_token_weighted_and_decodes_greedily(run: Run, prepare: Callable[..., Prepared]) -> None:
    prepared = prepare()
    assert isinstance(prepared.valid, PairExamples)
    found = run.task.validate(run.model, prepared.valid, BEAM, n_samples=-1)
    sources, references = prepared.valid.texts(1000)
    total = weight = 0.0
    with torch.no_grad():
        for source, target in zip(sources, references, strict=True):
            ids = [run.task.vocabulary.source.encode(text) for text in (source, target)]
            loss, n = run.task.loss(run.model, pair_batch([ids[0]], [ids[1]], run.task.vocabulary, CPU), smoothing=0.0)
            total, weight = total + float(loss), weight + n
    assert found.loss == pytest.approx(total / weight, rel=1e-5)
    assert found.scores["perplexity"] == pytest.approx(math.exp(found.loss))
    assert run.task.reference_loss(run.model, sources, references) == (
        pytest.approx(found.loss, rel=1e-5),
        len(sources),
    )
    outputs = texts(run.translate(sources, decoding=GREEDY))
    assert found.samples == tuple(zip(sources, references, outputs, strict=True))[:3]
    expected = {score.name: score.value for score in score_translations(outputs, references)}
    assert found.scores["bleu"] == pytest.approx(expected["bleu"])
    assert found.scores["chrf"] == pytest.approx(expected["chrf"])


def test_without_decoding_there_is_a_loss_and_no_bleu(run: Run, prepare: Callable[..., Prepared]) -> None:
    valid = prepare().valid
    assert set(run.task.validate(run.model, valid, BEAM, n_samples=0).scores) == {"perplexity"}
    # An own network without `start` and `step` cannot be decoded, but it can be trained.
    assert set(run.task.validate(Biased(), valid, BEAM, n_samples=2).scores) == {"perplexity"}


def test_pairs_longer_than_the_learned_positions_have_no_loss(run: Run) -> None:
    sizes = {
        **run.task.model_fields(),
        "d_model": 8,
        "n_heads": 1,
        "d_ff": 8,
        "n_encoder_layers": 1,
        "n_decoder_layers": 1,
    }
    model = Transformer(TransformerConfig(**sizes, positions="learned", max_positions=9), seed=3).eval()
    line = " ".join(["the big old dog"] * 10)
    loss, n_pairs = run.task.reference_loss(model, [line, "the dog"], ["der Hund", "der Hund"])
    assert n_pairs == 1
    assert loss == run.task.reference_loss(model, ["the dog"], ["der Hund"])[0]
    assert math.isnan(run.task.reference_loss(model, [line], ["der Hund"])[0])


# The report


def test_the_report_tells_of_the_data(prepare: Callable[..., Prepared]) -> None:
    facts = dict(prepare({"data.valid_size": 9}).facts)
    training, held_out = (int(facts[name].split()[0]) for name in ("training", "validation"))
    assert training + held_out == 90
    assert facts["validation"] == f"{held_out} held out by source sentence"
    assert facts["vocabulary"] == "320 shared tokens (bpe)"
    assert re.fullmatch(r"\d+ per epoch, \d+\.\d% padding", facts["batches"])
    apart = dict(prepare({"tokenizer.shared": False, "tokenizer.kind": "words"}).facts)
    assert apart["vocabulary"] == "17 source, 17 target tokens (words)"
    assert apart["tokenizer loss"].startswith("Words that are not in the vocabulary are dropped")


def test_padding_is_under_a_tenth_where_there_is_enough_text(prepare: Callable[..., Prepared], tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    files = [tmp_path / "long.en", tmp_path / "long.de"]
    lengths = chance.integers(3, 40, size=3000)
    files[0].write_text("".join("word " * n + f"{row}\n" for row, n in enumerate(lengths)))
    files[1].write_text("".join("Wort " * (n + n // 8) + f"{row}\n" for row, n in enumerate(lengths)))
    settings = {"data.train": [str(file) for file in files], "training.batch_tokens": 2048, "tokenizer.kind": "words"}
    facts = dict(prepare(settings).facts)
    share = float(facts["batches"].split(", ")[1].removesuffix("% padding"))
    assert 0 < share < 10


def test_what_was_left_out_is_told(prepare: Callable[..., Prepared], tmp_path: Path) -> None:
    source = [f"a dog {n}" for n in range(300)]
    source[4] = ""
    source[6] = "dog " * 60
    target = ["Hund " * 60 if n == 6 else "ein Hund" for n in range(300)]
    files = [tmp_path / "some.en", tmp_path / "some.de"]
    for file, lines in zip(files, (source, target), strict=True):
        file.write_text("\n".join(lines) + "\n")
    settings = {"data.train": [str(file) for file in files], "data.valid": [str(file) for file in files]}
    facts = prepare({**settings, "data.max_length": 40}).facts
    bad = f"1 bad pair, empty source: {files[0]}:5 'ein Hund'"
    long = f"1 bad pair, longer than 40 tokens: {files[0]}:7 '{('dog ' * 60)[:60]}…'"
    assert [text for label, text in facts if label == "left out"] == [
        *(bad, long),
        *(f"of validation, {one}" for one in (bad, long)),
    ]
    assert dict(facts)["validation"] == "298 pairs"


# Word vectors


@pytest.fixture
def task_with_vectors(corpus: tuple[str, str], tmp_path: Path) -> Callable[..., TranslationTask]:
    """Make a task with vectors of four features for two words."""
    path = tmp_path / "vectors.txt"
    path.write_text("2 4\ndog 1 2 3 4\nHund 5 6 7 8\n")

    def make(settings: dict[str, str] | None = None, *, shared: bool = False, kind: str = "words") -> TranslationTask:
        lines = [Path(file).read_text().splitlines() for file in corpus]
        if shared:
            one = learn([*lines[0], *lines[1]], kind=kind, vocab_size=400)
            vocabulary = Vocabulary(one, one)
        else:
            vocabulary = Vocabulary(*(learn(side, kind=kind, vocab_size=400) for side in lines))
        tables = {"task": "translate", "tokenizer": {"kind": kind, "vectors": str(path)}}
        config = configuration.from_tables(tables, origin="test")
        return TranslationTask(vocabulary, configuration.override(config, settings or {}))

    return make


def network(task: TranslationTask, **settings: Any) -> Transformer:
    sizes = {**task.model_fields(), "d_model": 4, "n_heads": 1, "d_ff": 4, "n_encoder_layers": 1, "n_decoder_layers": 1}
    return Transformer(TransformerConfig(**{**sizes, **settings}), seed=1)


def test_word_vectors_are_put_in(task_with_vectors: Callable[..., TranslationTask]) -> None:
    task = task_with_vectors()
    model = network(task, tied="none")
    before = model.source_embedding.tokens.weight.detach().clone()
    task.initialise(model)
    source, target = model.source_embedding.tokens.weight, model.target_embedding.tokens.weight
    dog, cat = (task.vocabulary.source.encode(word)[0] for word in ("dog", "cat"))
    assert source[dog].tolist() == [1, 2, 3, 4]
    assert target[task.vocabulary.target.encode("Hund")[0]].tolist() == [5, 6, 7, 8]
    assert torch.equal(source[cat], before[cat]), "a word without a vector keeps its random one"


@pytest.mark.parametrize("frozen", [False, True])
def test_frozen_vectors_stay_while_other_words_learn(
    task_with_vectors: Callable[..., TranslationTask], frozen: bool
) -> None:
    task = task_with_vectors({"tokenizer.freeze_vectors": str(frozen).lower()}, shared=True)
    model = network(task, tied="all", dropout=0.0)
    task.initialise(model)
    weight = model.output.weight
    before = weight.detach().clone()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    sides = [task.vocabulary.source.encode("the dog"), task.vocabulary.target.encode("der Hund")]
    for _ in range(3):
        optimizer.zero_grad()
        task.loss(model, pair_batch([sides[0]], [sides[1]], task.vocabulary, CPU), smoothing=0.1)[0].backward()
        optimizer.step()
    given = [task.vocabulary.source.encode(word)[0] for word in ("dog", "Hund")]
    changed = (weight != before).any(dim=1)
    assert changed[given].tolist() == [not frozen] * 2
    assert changed.sum() >= len(changed) - 2, "every other word learns, the special tokens among them"


def test_vectors_of_another_width_are_refused(
    task_with_vectors: Callable[..., TranslationTask], tmp_path: Path
) -> None:
    task = task_with_vectors()
    with pytest.raises(ConfigError) as caught:
        task.initialise(network(task, tied="none", d_model=8))
    assert caught.value.problem == (
        f"The vectors of {tmp_path / 'vectors.txt'} have 4 features, the model's embedding 8."
    )
    assert caught.value.remedy == "Set model.d_model = 4."


def test_vectors_need_words(task_with_vectors: Callable[..., TranslationTask]) -> None:
    with pytest.raises(ConfigError) as caught:
        _ = task_with_vectors(kind="bpe").word_vectors
    assert caught.value.problem == "tokenizer.vectors are of words, and the tokens of kind bpe are none."


def test_vectors_of_other_words_only(task_with_vectors: Callable[..., TranslationTask], tmp_path: Path) -> None:
    task = task_with_vectors()
    (tmp_path / "vectors.txt").write_text("1 4\nchien 1 2 3 4\n")
    with pytest.raises(DataError, match="it has a vector for none of the"):
        _ = task.word_vectors


def test_frozen_vectors_and_weight_decay_exclude_each_other(task_with_vectors: Callable[..., TranslationTask]) -> None:
    task = task_with_vectors({"tokenizer.freeze_vectors": "true", "training.weight_decay": "0.1"})
    with pytest.raises(ConfigError, match="Weight decay would shrink the vectors"):
        task.initialise(network(task, tied="none"))


# Saved and loaded


def test_a_loaded_task_is_the_saved_one(run: Run, tmp_path: Path) -> None:
    run.task.save(tmp_path / "vocabulary")
    loaded = TranslationTask.load(run.config, tmp_path / "vocabulary")
    assert loaded.vocabulary.fingerprint() == run.task.vocabulary.fingerprint()
    assert loaded.model_fields() == {"source_vocab": 320, "target_vocab": 320}
    assert texts(loaded.predict(run.model, ["a dog"], TranslationOptions(decoding=BEAM))) == texts(
        run.translate(["a dog"], decoding=BEAM)
    )


def test_a_run_without_its_vocabulary_says_what_is_missing(run: Run, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape(f"{tmp_path / 'source.json'}: there is no such file.")):
        TranslationTask.load(run.config, tmp_path)


def test_validation_pairs_that_are_left_out_are_told(
    prepare: Callable[..., Prepared], corpus: tuple[str, str], tmp_path: Path
) -> None:
    for side, file in zip(("en", "de"), corpus, strict=True):
        lines = Path(file).read_text().splitlines() * 3
        lines[1] = "" if side == "de" else lines[1]
        (tmp_path / f"valid.{side}").write_text("\n".join(lines) + "\n")
    prepared = prepare({"data.valid": [str(tmp_path / "valid.en"), str(tmp_path / "valid.de")]})
    [left_out] = [text for label, text in prepared.facts if label == "left out"]
    assert left_out.startswith(f"of validation, 1 bad pair, empty target: {tmp_path / 'valid.en'}:2 ")


@pytest.mark.parametrize(
    ("preset", "n_pairs", "suited"),
    [
        ("transformer-tiny", 99_999, {}),
        ("transformer-tiny", 100_000, {"dropout": 0.1}),
        ("t5-tiny", 100_000, {"dropout": 0.1}),
        ("transformer-base", 100_000, {}),  # as the paper has it already
        ("transformer-big", 10**6, {}),
        ("", 10**6, {}),  # a network of the caller's own
    ],
)
def test_many_pairs_need_less_dropout(run: Run, preset: str, n_pairs: int, suited: dict[str, float]) -> None:
    config = replace(run.config, model=ModelTable(preset=preset))
    assert TranslationTask(run.task.vocabulary, config).suited_fields(n_pairs) == suited
