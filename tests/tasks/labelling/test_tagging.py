"""Tagging: a tag a word, asked of its first piece; sentences in parts; entities."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard import config as configuration
from regard.errors import ConfigError, DataError, UsageError
from regard.evaluation.intervals import wilson
from regard.models.bert import Bert, BertConfig
from regard.tasks.labelling.base import LabelOptions
from regard.tasks.labelling.examples import SequenceExamples
from regard.tasks.labelling.tagging import TaggedText, TaggingTask
from regard.tasks.task import Prepared

CPU = torch.device("cpu")
SENTENCES = [
    [("Anna", "B-person"), ("Mu", "I-person"), ("sees", "O"), ("Rome", "B-place")],
    [("Rome", "B-place"), ("sees", "O"), ("Anna", "B-person")],
]
OPTIONS = LabelOptions()
SIZES: dict[str, Any] = {"n_layers": 1, "n_heads": 2, "d_model": 16, "d_ff": 32, "dropout": 0.0}


def no_progress(what: str, done: int) -> None:
    pass


def write(path: Path, sentences: list[list[tuple[str, str]]]) -> str:
    path.write_text("".join("".join(f"{word}\t{tag}\n" for word, tag in one) + "\n" for one in sentences))
    return str(path)


def prepare(
    tmp_path: Path,
    settings: dict[str, Any] | None = None,
    *,
    sentences: list[list[tuple[str, str]]] = SENTENCES,
) -> Prepared:
    file = write(tmp_path / "train.conll", sentences * 10)
    tables = {"task": "tag", "data": {"train": [file], "valid": [file]}}
    config = configuration.from_tables(tables, origin="test")
    common = {"tokenizer.kind": "characters", "model.preset": "bert-tiny", "model.max_positions": 40}
    config = configuration.override(config, {**common, **(settings or {})})
    return TaggingTask.prepare(config, vocabulary=None, progress=no_progress)


def parts(prepared: Prepared, *, max_positions: int = 40) -> tuple[TaggingTask, Bert, SequenceExamples]:
    assert isinstance(prepared.task, TaggingTask) and isinstance(prepared.valid, SequenceExamples)
    sizes: dict[str, Any] = prepared.task.model_fields()
    assert sizes["head"] == "tokens"
    model = Bert(BertConfig(**sizes, **SIZES, max_positions=max_positions), seed=1).eval()
    return prepared.task, model, prepared.valid


def learn_by_heart(task: TaggingTask, model: nn.Module, examples: SequenceExamples, *, rate: float = 0.01) -> None:
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    batch = examples.batch(np.arange(len(examples)), CPU)
    for _ in range(60):
        optimizer.zero_grad()
        loss, weight = task.loss(model, batch, smoothing=0.0)
        (loss / weight).backward()
        optimizer.step()
    model.eval()


def test_only_the_first_piece_of_a_word_is_asked(tmp_path: Path) -> None:
    task, model, valid = parts(prepared := prepare(tmp_path))
    assert task.table.labels == ("B-person", "B-place", "I-person", "O")
    facts = dict(prepared.facts)
    assert facts["training"].startswith("20 sentences, ")
    assert facts["tags"].startswith("4: B-person 20 (28.6 %), B-place 20 (28.6 %), O 20 (28.6 %), I-person 10 (14.3 %)")
    batch = valid.batch(np.array([0, 1]), CPU)
    assert batch.targets is not None
    #                                <start> A n n a _ M u _ s e e s _ R o m e <end>
    assert batch.targets[0].tolist() == [-1, 0, -1, -1, -1, -1, 2, -1, -1, 3, -1, -1, -1, -1, 1, -1, -1, -1, -1]
    logits = model(batch.inputs, batch.lengths, batch.segments)
    asked = logits[batch.targets >= 0]
    for smoothing in (0.0, 0.1):
        loss, weight = task.loss(model, batch, smoothing=smoothing)
        assert weight == 7
        gold = torch.tensor([0, 2, 3, 1, 1, 3, 0])
        expected = F.cross_entropy(asked, gold, label_smoothing=smoothing, reduction="sum")
        assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)


@pytest.mark.parametrize("kind", ["characters", "bpe", "words"])
def test_sentences_are_learnt_and_tagged(tmp_path: Path, kind: str) -> None:
    task, model, valid = parts(prepare(tmp_path, {"tokenizer.kind": kind}))
    learn_by_heart(task, model, valid)
    validation = task.validate(model, valid, task.config.decoding, n_samples=1)
    assert validation.scores == {"accuracy": 100, "entity_f1": 100, "entity_precision": 100, "entity_recall": 100}
    assert validation.samples[0] == (
        "Anna Mu sees Rome",
        "B-person I-person O B-place",
        "B-person I-person O B-place",
    )
    loss, weight = task.loss(model, valid.batch(np.arange(len(valid)), CPU), smoothing=0.0)
    assert validation.loss == pytest.approx(float(loss.detach()) / weight, rel=1e-4)
    task.save(tmp_path / "vocabulary")
    again = TaggingTask.load(task.config, tmp_path / "vocabulary")
    done: list[tuple[str, int]] = []
    first, none, second = again.predict(
        model,
        [["Rome", "sees", "Anna"], "", " Anna  Mu sees Rome\n"],
        LabelOptions(progress=lambda *told: done.append(told)),
    )
    assert done[-1] == ("reading", 2)
    assert (first.words, first.tags) == (("Rome", "sees", "Anna"), ("B-place", "O", "B-person"))
    assert (second.words, second.tags) == (("Anna", "Mu", "sees", "Rome"), ("B-person", "I-person", "O", "B-place"))
    assert (none.words, none.tags, none.probabilities) == ((), (), ())
    assert len(first.probabilities) == 3 and all(0.5 < share <= 1 for share in first.probabilities)
    assert first.n_segments == 1 and not first.truncation


def test_tags_that_mark_no_entities_have_no_f1(tmp_path: Path) -> None:
    task, model, valid = parts(prepare(tmp_path, sentences=[[("Anna", "NOUN"), ("sees", "VERB")]]))
    scores = task.scores(valid.corpus, task.logits(model, valid.sequences))
    assert [score.name for score in scores] == ["loss", "accuracy"]
    assert scores[1].signature == "words:20"
    n_correct = round(scores[1].value / 5)
    low, high = scores[1].interval or (0, 0)
    by_words = wilson(n_correct, 20) or (0, 0)
    assert low <= scores[1].value <= high
    assert high - low > by_words[1] - by_words[0]  # the same sentence ten times: right or wrong together


class Own(nn.Module):
    """A network of the caller's own that looks at one token at a time."""

    def __init__(self, vocab: int, n_outputs: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab, n_outputs)

    def forward(self, inputs: Tensor, lengths: Tensor, segments: Tensor | None) -> Tensor:
        logits: Tensor = self.tokens(inputs)
        return logits


def test_a_network_of_ones_own_learns_to_tag(tmp_path: Path) -> None:
    task, _, valid = parts(prepare(tmp_path, {"tokenizer.kind": "words"}))
    assert task.tokenizer is not None
    torch.manual_seed(1)
    model = Own(task.tokenizer.vocab_size, task.table.n_outputs)
    task.initialise(model)
    learn_by_heart(task, model, valid, rate=0.3)
    assert task.predict(model, ["Rome sees Mu"], OPTIONS)[0].tags == ("B-place", "O", "I-person")
    with pytest.raises(
        ConfigError, match=r"^The network returned .* was expected: 4 numbers for each token\.\nLet its forw"
    ):
        task.predict(Own(task.tokenizer.vocab_size, 3), ["Rome"], OPTIONS)


# Long sentences


def test_every_word_of_a_long_sentence_is_tagged_and_scored(tmp_path: Path) -> None:
    task, model, valid = parts(prepare(tmp_path, {"data.max_length": 19}))
    learn_by_heart(task, model, valid)
    [whole] = task.predict(model, ["Anna Mu sees Rome " * 9], OPTIONS)
    assert len(whole.words) == len(whole.tags) == len(whole.probabilities) == 36
    assert (whole.n_segments, whole.truncation) == (9, "read in parts")
    assert whole.tags == ("B-person", "I-person", "O", "B-place") * 9
    test = write(tmp_path / "test.conll", [SENTENCES[0] * 9, SENTENCES[1]])
    found = task.evaluate(model, [test], OPTIONS)
    first, second = (one for one in found.predictions if isinstance(one, TaggedText))
    assert first.words == whole.words and first.tags == whole.tags
    assert [first.n_segments, second.n_segments] == [9, 1]
    assert found.expected[1] == ("B-place", "O", "B-person")
    assert found.scores[1].signature == "words:39"
    n_right = sum(tag == gold for tag, (_, gold) in zip(first.tags, SENTENCES[0] * 9, strict=True))
    n_right += sum(tag == gold for tag, (_, gold) in zip(second.tags, SENTENCES[1], strict=True))
    assert found["accuracy"] == pytest.approx(100 * n_right / 39)
    assert found.notes == ()


def test_an_evaluation_has_the_kinds_of_entities_and_what_conlleval_reads(tmp_path: Path) -> None:
    task, model, valid = parts(prepare(tmp_path, {"tokenizer.kind": "words"}))
    learn_by_heart(task, model, valid)
    test = write(tmp_path / "test.conll", [SENTENCES[0], [("Anna", "B-place"), ("sees", "O")]])
    found = task.evaluate(model, [test], OPTIONS)
    assert found.output[:6] == (
        "Anna\tB-person\tB-person",
        "Mu\tI-person\tI-person",
        "sees\tO\tO",
        "Rome\tB-place\tB-place",
        "",
        "Anna\tB-place\tB-person",
    )
    report = found.to_json()["classes"]
    assert report["unit"] == "entities"
    assert [(one["label"], one["recall"], one["support"]) for one in report["classes"]] == [
        ("person", 100, 1),
        ("place", 50, 2),
    ]
    assert found.to_json()["labels"] == ["B-person", "B-place", "I-person", "O"]
    assert found.confusion is None
    metrics = ["accuracy", "entity_f1", "entity_precision", "entity_recall"]
    assert [one.metric for one in found.statistics] == metrics
    assert [one.value for one in found.statistics] == pytest.approx([found[metric] for metric in metrics])
    assert found.scores[2].signature == "sentences:2|entities:3|predicted:3|averaging:micro|scheme:BIO"
    assert found.statistics[1].signature == "sentences:2|entities:3|averaging:micro|scheme:BIO"


def test_tags_that_mark_no_entities_are_reported_one_by_one(tmp_path: Path) -> None:
    task, model, _ = parts(prepare(tmp_path, sentences=[[("Anna", "NOUN"), ("sees", "VERB")]]))
    found = task.evaluate(model, task.config.data.train, OPTIONS)
    assert found.to_json()["classes"]["unit"] == "words"
    assert [one.metric for one in found.statistics] == ["accuracy"]


@pytest.mark.parametrize("kind", ["characters", "bpe"])
def test_a_word_may_hold_a_space(tmp_path: Path, kind: str) -> None:
    task, model, _ = parts(prepare(tmp_path, {"tokenizer.kind": kind}))
    test = write(tmp_path / "test.conll", [[("Anna Mu", "B-person"), ("sees", "O"), ("Rome", "B-place")]])
    [found] = task.evaluate(model, [test], OPTIONS).predictions
    assert isinstance(found, TaggedText)
    assert found.words == ("Anna Mu", "sees", "Rome")
    assert found.tags == task.predict(model, [["Anna Mu", "sees", "Rome"]], OPTIONS)[0].tags


# What is refused


def test_an_empty_word_is_refused(tmp_path: Path) -> None:
    task, model, _ = parts(prepare(tmp_path))
    with pytest.raises(UsageError, match=r"^Word 1 of sentence 1 is empty: there is nothing to tag\.\nLeave it out\."):
        task.predict(model, ["Anna", ["sees", " "]], OPTIONS)
    with pytest.raises(UsageError, match=r"^A sentence whose words are tagged has no second text\.\nLeave"):
        task.predict(model, ["Anna"], LabelOptions(texts_b=("Rome",)))


def test_an_unknown_tag_is_an_error_with_its_place(tmp_path: Path) -> None:
    task, _, _ = parts(prepare(tmp_path))
    test = write(tmp_path / "test.conll", [[("Anna", "O")], [("Rome", "B-plaec")]])
    with pytest.raises(DataError, match=r"test\.conll:3: .*'B-plaec'.*\n.*B-place"):
        task.read([test], OPTIONS)


def test_the_loss_waits_for_no_device(tmp_path: Path) -> None:
    task, model, valid = parts(prepare(tmp_path))
    expected = task.loss(model, valid.batch(np.arange(20), CPU), smoothing=0.0)
    # On `meta`, tensors have a shape and no content: whoever looks at them is told so.
    loss, weight = task.loss(model.to("meta"), valid.batch(np.arange(20), torch.device("meta")), smoothing=0.0)
    assert (loss.shape, weight) == (expected[0].shape, 70)


def test_tagged_words_show_themselves() -> None:
    found = TaggedText(words=("Anna", "sees"), tags=("B-person", "O"), probabilities=(0.9, 0.8))
    assert found.lines() == ["Anna\tB-person", "sees\tO", ""]
    assert found.cells() == {"text": "Anna sees", "tags": "B-person O"}
    facts = {"words": ("Anna", "sees"), "tags": ("B-person", "O"), "probabilities": (0.9, 0.8), "parts": 1}
    assert found.to_json() == facts
