"""Captioning: images with all their captions, the loss, captions that are written, and their scores."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.conftest import DESCRIBING, draw_captions
from torch import nn

from regard import config as configuration
from regard.api import Captioner
from regard.data.captions.dataset import read_captions
from regard.data.images.decoding import BadImageError
from regard.errors import ConfigError, DataError, UsageError
from regard.models import captioner
from regard.models.presets import build_model, model_config
from regard.tasks.images.caption_examples import CaptionBatch, CaptionExamples
from regard.tasks.images.caption_generation import Caption, CaptionOptions
from regard.tasks.images.captioning import CaptioningTask
from regard.tasks.options import no_progress
from regard.tasks.task import Prepared

CPU = torch.device("cpu")


def prepare(folder: Path, settings: dict[str, Any] | None = None, *, vocabulary: Path | None = None) -> Prepared:
    drawn = folder / "images" / "captions.tsv"
    table = str(drawn) if drawn.exists() else draw_captions(folder / "images")
    config = configuration.from_tables({"task": "caption", "data": {"train": [table]}}, origin="test")
    config = configuration.override(config, {**DESCRIBING, **(settings or {})})
    return CaptioningTask.prepare(config, vocabulary=vocabulary, progress=lambda what, done: None)


def parts(prepared: Prepared) -> tuple[CaptioningTask, captioner.Captioner, CaptionExamples]:
    """The task, a network for it, and the training examples."""
    assert isinstance(prepared.task, CaptioningTask) and isinstance(prepared.train, CaptionExamples)
    config = model_config(prepared.task.config.model, origin="test", **prepared.task.model_fields())
    model = build_model(config, seed=1).eval()
    assert isinstance(model, captioner.Captioner)
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


def test_word_vectors_are_put_in_and_told(tmp_path: Path) -> None:
    captions = draw_captions(tmp_path / "images")
    word = Path(captions).read_text(encoding="utf-8").splitlines()[-1].split("\t")[-1].split()[0]
    path = tmp_path / "vectors.txt"
    path.write_text(f"1 32\n{word} {' '.join(map(str, range(32)))}\n", encoding="utf-8")
    prepared = prepare(tmp_path, {"tokenizer.vectors": str(path)})
    task, model, _ = parts(prepared)
    task.initialise(model)
    [number] = task.tokenizer.encode(word)
    assert model.get_parameter("text.target_embedding.tokens.weight")[number].tolist() == list(range(32))
    assert dict(prepared.facts)["vectors"] == f"1 of {task.tokenizer.vocab_size} words, from {path}"
    assert dict(prepared.facts)["tokenizer loss"] == task.tokenizer.loss
    path.write_text(f"1 2\n{word} 1 2\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"Set model\.decoder\.d_model = 2"):
        parts(prepare(tmp_path, {"tokenizer.vectors": str(path)}))[0].initialise(model)


def test_the_loss_is_that_of_each_caption_with_its_own_image(tmp_path: Path) -> None:
    task, model, train = parts(prepare(tmp_path))
    batch = train.batch(np.array([4, 0, 9]), CPU)
    with torch.inference_mode():
        loss, weight = task.loss(model, batch, smoothing=0.1)
        expected = torch.zeros(())
        for row, length in enumerate(batch.lengths.tolist()):
            image = task.table.normalise(batch.images[batch.image_of[row]][None])
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
    assert torch.equal(seen[0], task.table.normalise(batch.images))
    assert not torch.equal(seen[1], seen[0])
    assert torch.equal(seen[1], seen[2])
    assert not torch.equal(seen[1], seen[3])


# A run that has learned


def files(caption_run: Path, *names: str) -> list[str]:
    return [str(caption_run.parent / "images" / f"{name}.png") for name in names]


def test_captions_are_written_from_files(caption_run: Path) -> None:
    run = Captioner.load(caption_run)
    named = files(caption_run, "lying-000", "none-001", "standing-002")
    found = run.task.predict(run.model, named, CaptionOptions())
    assert [one.text.split()[-1] for one in found] == ["lie", "pattern", "stand"]
    assert [one.image for one in found] == named
    best = found[0].outputs[0]
    assert len(best.tokens) == len(best.ids) and len(best.log_probs) >= len(best.ids)
    assert run.predict([]) == []
    one = run.predict(named[0])
    assert isinstance(one, Caption) and one.text == found[0].text


def test_words_can_be_banned_and_several_captions_asked_for(caption_run: Path) -> None:
    run, [file] = Captioner.load(caption_run), files(caption_run, "lying-000")
    decoding = replace(run.config.decoding, beam=3, n_best=2)
    [found] = run.task.predict(run.model, [file], CaptionOptions(decoding=decoding, banned=("here",)))
    assert len(found.outputs) == 2
    assert all("here" not in one.text.split() for one in found.outputs)
    [plain] = run.task.predict(run.model, [file], CaptionOptions(decoding=decoding))
    assert any("here" in one.text.split() for one in plain.outputs)


def test_an_image_that_cannot_be_read_is_an_error_or_skipped(caption_run: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_bytes(b"no image")
    run, inputs = Captioner.load(caption_run), [str(tmp_path / "bad.png"), *files(caption_run, "lying-000")]
    with pytest.raises(BadImageError, match=r"bad\.png: no image of a known kind"):
        run.predict(inputs)
    bad, one = run.task.predict(run.model, inputs, CaptionOptions(skip_unreadable=True))
    assert one.text.endswith("lie") and not one.problem
    assert (bad.image, bad.text, bad.lines()) == (inputs[0], "", [])
    assert bad.cells() == bad.to_json() == {"image": inputs[0], "problem": bad.problem}


def test_the_scores_against_all_captions(caption_run: Path) -> None:
    run = Captioner.load(caption_run)
    table = str(caption_run.parent / "images" / "captions.tsv")
    with pytest.raises(DataError) as caught:
        run.evaluate(table, split="valid")
    assert caught.value.problem == f"{table}: it is not divided into splits, and the split valid was asked for."
    found = run.evaluate(table, split="all")
    assert [score.name for score in found.scores] == ["bleu", "chrf", "perplexity"]
    assert found["bleu"] > 80
    assert "nrefs:2" in found.scores[0].signature
    assert (found.count, found.unit) == (60, "images")
    assert [(one.metric, len(one)) for one in found.statistics] == [("bleu", 60), ("chrf", 60)]
    assert found.generated is not None and len(found.generated.references) == 2
    assert found.expected[0] == ("stripes that lie", "here are stripes that lie")
    assert found.expected[0] == tuple(stream[0] for stream in found.generated.references)
    first = found.predictions[0]
    assert isinstance(first, Caption) and first.image == found.generated.sources[0]
    assert found.output[0] == f"{first.image}\t{found.generated.outputs[0]}" == first.lines()[0]
    total, weight = 0.0, 0.0
    data = read_captions(
        [table], run.config.data, run.task.tokenizer, shape=run.task.table.shape, split="", progress=no_progress
    )
    examples = run.task.examples(data)
    with torch.inference_mode():
        for indices in examples.fixed_order():
            loss, n_tokens = run.task.loss(run.model, examples.batch(indices, CPU), smoothing=0.0)
            total, weight = total + float(loss), weight + n_tokens
    assert found["perplexity"] == pytest.approx(np.exp(total / weight))


def test_other_metrics_and_what_is_no_metric(caption_run: Path) -> None:
    run = Captioner.load(caption_run)
    table = str(caption_run.parent / "images" / "captions.tsv")
    found = run.evaluate(table, split="all", metrics=("exact_match",))
    assert [score.name for score in found.scores] == ["exact_match", "perplexity"]
    for settings, message in (
        ({"metrics": ("blue",)}, "no metric 'blue'"),
        ({"tokenize": "14a"}, "no tokenizer '14a'"),
    ):
        with pytest.raises(UsageError, match=message):
            run.evaluate("nowhere.tsv", **settings)  # type: ignore[arg-type]


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
