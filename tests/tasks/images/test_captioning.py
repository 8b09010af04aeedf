"""The task caption: images with all their captions, the loss, captions that are written, scores, and where a model looks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.conftest import DESCRIBING, draw_captions
from torch import nn

import regard
from regard import config as configuration
from regard.errors import UsageError
from regard.evaluation.generated_text import score_translations
from regard.models.captioner import Captioner
from regard.models.presets import build_model, model_config
from regard.tasks.images.caption_examples import CaptionBatch, CaptionExamples
from regard.tasks.images.caption_generation import Described
from regard.tasks.images.captioning import CaptioningTask
from regard.tasks.task import Prepared

CPU = torch.device("cpu")


def prepare(folder: Path, settings: dict[str, Any] | None = None, *, vocabulary: Path | None = None) -> Prepared:
    drawn = folder / "images" / "captions.tsv"
    table = str(drawn) if drawn.exists() else draw_captions(folder / "images")
    config = configuration.from_tables({"task": "caption", "data": {"train": [table]}}, origin="test")
    config = configuration.override(config, {**DESCRIBING, **(settings or {})})
    return CaptioningTask.prepare(config, vocabulary=vocabulary, progress=lambda what, done: None)


def parts(prepared: Prepared) -> tuple[CaptioningTask, Captioner, CaptionExamples]:
    """The task, a network for it, and the training examples."""
    assert isinstance(prepared.task, CaptioningTask) and isinstance(prepared.train, CaptionExamples)
    config = model_config(prepared.task.config.model, origin="test", **prepared.task.model_fields())
    model = build_model(config, seed=1).eval()
    assert isinstance(model, Captioner)
    return prepared.task, model, prepared.train


def test_what_is_told_before_the_first_step(tmp_path: Path) -> None:
    prepared = prepare(tmp_path, {"augmentation.crop": 1})
    facts = dict(prepared.facts)
    n_train, n_valid = len(prepared.train), len(prepared.valid)
    assert n_train + n_valid == 60
    assert facts["training"] == f"{2 * n_train} captions of {n_train} images, 8 × 8 pixels, in colours"
    assert facts["validation"] == f"{2 * n_valid} captions of {n_valid} images, held out"
    assert facts["augmentation"] == "moved by up to 1 pixels"
    assert facts["vocabulary"].endswith("tokens (words)")


def test_a_batch_has_an_image_once_and_all_its_captions(tmp_path: Path) -> None:
    task, _, train = parts(prepare(tmp_path))
    indices = np.array([4, 0, 9])
    batch = train.batch(indices, CPU)
    assert batch.images.shape == (3, 8, 8, 3)
    assert batch.image_of.tolist() == [0, 0, 1, 1, 2, 2]
    assert (batch.target[:, 0] == task.tokenizer.start_id).all()
    texts = []
    for row, length in zip(batch.target.tolist(), batch.lengths.tolist(), strict=True):
        assert row[length] == task.tokenizer.end_id
        assert all(id == task.tokenizer.pad_id for id in row[length + 1 :])
        texts.append(task.tokenizer.decode(row[1:length]))
    assert texts == [text for index in indices.tolist() for text in train.captions.captions_of(index)]


def test_the_loss_is_that_of_each_caption_with_its_own_image(tmp_path: Path) -> None:
    task, model, train = parts(prepare(tmp_path))
    batch = train.batch(np.array([4, 0, 9]), CPU)
    with torch.inference_mode():
        loss, weight = task.loss(model, batch, smoothing=0.1)
        expected = torch.zeros(())
        for row, length in enumerate(batch.lengths.tolist()):
            image = task.scaled(batch.images[batch.image_of[row]][None])
            ids = batch.target[row : row + 1, : length + 1]
            logits = model(image, ids[:, :-1])
            expected += F.cross_entropy(logits[0], ids[0, 1:], label_smoothing=0.1, reduction="sum")
    assert weight == batch.lengths.sum()
    torch.testing.assert_close(loss, expected, atol=1e-3, rtol=1e-5)


def test_a_run_that_goes_on_keeps_the_size_of_its_images(tmp_path: Path) -> None:
    task, _, _ = parts(prepare(tmp_path, {"data.image_size": 12, "data.channels": 1}))
    task.save(tmp_path / "vocabulary")
    again, _, _ = parts(prepare(tmp_path, vocabulary=tmp_path / "vocabulary"))
    assert again.table.shape.dimensions == (12, 12, 1)


def test_images_are_changed_while_a_model_learns(tmp_path: Path) -> None:
    task, _, train = parts(prepare(tmp_path, {"augmentation.crop": 2}))
    batch, seen = train.batch(np.arange(4), CPU), []

    class Seen(nn.Module):
        def forward(self, images: torch.Tensor, target: torch.Tensor, image_of: torch.Tensor) -> torch.Tensor:
            seen.append(images)
            return torch.zeros(*target.shape, task.tokenizer.vocab_size)

    model = Seen()
    for training, seed in ((False, 1), (True, 1), (True, 1), (True, 2)):
        torch.manual_seed(seed)
        task.loss(model.train(training), batch, smoothing=0.0)
    assert torch.equal(seen[0], task.scaled(batch.images))
    assert not torch.equal(seen[1], seen[0])
    assert torch.equal(seen[1], seen[2])
    assert not torch.equal(seen[1], seen[3])


def test_an_image_with_fewer_captions_is_scored_by_those_it_has() -> None:
    class Captions:
        def captions_of(self, image: int) -> list[str]:
            return [["a b c d", "e f g h", "a b c h"], ["i j k l"]][image]

    examples = CaptionExamples(Captions(), None, batch_images=1, seed=1)  # type: ignore[arg-type]
    references = examples.references(2)
    assert references == [["a b c d", "i j k l"], ["e f g h", "i j k l"], ["a b c h", "i j k l"]]
    [bleu] = score_translations(["e f g h", "i j k l"], references, metrics=("bleu",))
    assert bleu.value == pytest.approx(100)


# A run that has learned


def files(caption_run: Path, *names: str) -> list[str]:
    return [str(caption_run.parent / "images" / f"{name}.png") for name in names]


def test_captions_are_written_from_files(caption_run: Path) -> None:
    run = regard.load(caption_run)
    found = run.predict(files(caption_run, "lying-000", "none-001", "standing-002"))
    assert all(isinstance(one, Described) for one in found)
    texts = [one.text for one in found]  # type: ignore[union-attr]
    assert [text.split()[-1] for text in texts] == ["lie", "pattern", "stand"]
    best = found[0].candidates[0]  # type: ignore[union-attr]
    assert len(best.tokens) == len(best.ids) and len(best.log_probs) >= len(best.ids)
    assert run.predict([]) == []


def test_the_scores_against_all_captions(caption_run: Path) -> None:
    run = regard.load(caption_run)
    table = str(caption_run.parent / "images" / "captions.tsv")
    found = run.evaluate([table], split="all")
    assert [score.name for score in found.scores] == ["bleu", "chrf", "perplexity"]
    assert found.scores[0].value > 80
    assert "nrefs:2" in found.scores[0].signature
    assert (found.count, found.unit, len(found.translations)) == (60, "images", 60)
    loss = run.task.mean_loss(run.model, run.task.read([table], run.config.data, split="", progress=lambda w, d: None))
    assert found.scores[2].value == pytest.approx(np.exp(loss))


def test_where_a_model_looks(caption_run: Path) -> None:
    run = regard.load(caption_run)
    [file] = files(caption_run, "lying-000")
    [found] = run.predict([file])
    looking = run.task.look(run.model, file, found.candidates[0].ids)  # type: ignore[union-attr]
    assert list(looking.words) == found.text.split()  # type: ignore[union-attr]
    assert looking.weights.shape == (len(looking.words), *run.model.grid)  # type: ignore[misc]
    assert looking.weights.sum((1, 2)).tolist() == pytest.approx([1] * len(looking.words), abs=1e-4)


def test_a_captioner_reads_no_text(caption_run: Path) -> None:
    with pytest.raises(UsageError, match="reads images, no text"):
        regard.load(caption_run).embed(["a text"])


def test_all_captions_of_a_validation_count(tmp_path: Path) -> None:
    prepared = prepare(tmp_path)
    task, model, _ = parts(prepared)
    decoding = task.config.decoding
    loss: Callable[[], float] = lambda: task.validate(model, prepared.valid, decoding, n_samples=0).loss  # noqa: E731
    batches = [prepared.valid.batch(indices, CPU) for indices in prepared.valid.fixed_order()]
    assert all(isinstance(batch, CaptionBatch) for batch in batches)
    assert sum(len(batch.target) for batch in batches) == 2 * len(prepared.valid)
    assert loss() == loss()
    shown = task.validate(model, prepared.valid, decoding, n_samples=-1)
    assert set(shown.scores) == {"perplexity", "bleu", "chrf"}
    assert len(shown.samples) == 3
