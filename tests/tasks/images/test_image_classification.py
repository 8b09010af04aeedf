"""Image classification: what is kept of the data, the loss with and without augmentation, scores and predictions."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image as Pillow
from tests.conftest import SEEING, draw_stripes
from torch import Tensor, nn

import regard
from regard import config as configuration
from regard.api import ImageClassifier
from regard.data.images.decoding import BadImageError
from regard.errors import ConfigError, DataError, RegardError
from regard.models.presets import build_model, model_config
from regard.tasks.images.classified_image import ClassifiedImage, ImageOptions
from regard.tasks.images.image_classification import ImageClassificationTask
from regard.tasks.images.image_examples import ImageExamples
from regard.tasks.images.preprocessing import ImageInput
from regard.tasks.results import Results
from regard.tasks.task import Prepared
from regard.training.events import Event, Updated

CPU = torch.device("cpu")
STILL = {"training.steps": 1, "training.learning_rate": 0.0, "training.muon_learning_rate": 0.0}


def prepare(folder: Path, settings: dict[str, Any] | None = None, *, vocabulary: Path | None = None) -> Prepared:
    root = folder / "images"
    train = str(root) if root.exists() else draw_stripes(root)
    config = configuration.from_tables({"task": "image", "data": {"train": [train]}}, origin="test")
    config = configuration.override(config, {**SEEING, **(settings or {})})
    return ImageClassificationTask.prepare(config, vocabulary=vocabulary, progress=lambda what, done: None)


def parts(prepared: Prepared) -> tuple[ImageClassificationTask, nn.Module, ImageExamples]:
    """The task, a network for it, and the validation examples."""
    assert isinstance(prepared.task, ImageClassificationTask) and isinstance(prepared.valid, ImageExamples)
    config = model_config(prepared.task.config.model, origin="test", **prepared.task.model_fields())
    return prepared.task, build_model(config, seed=1).eval(), prepared.valid


def predict(run: ImageClassifier, images: Sequence[ImageInput], **options: Any) -> Results[ClassifiedImage]:
    return run.task.predict(run.model, images, ImageOptions(**options))


# Data


def test_what_is_told_before_the_first_step(tmp_path: Path) -> None:
    prepared = prepare(tmp_path, {"augmentation.crop": 2, "augmentation.mirror": True})
    facts = dict(prepared.facts)
    n_train, n_valid = len(prepared.train), len(prepared.valid)
    assert n_train + n_valid == 60
    assert facts["training"] == f"{n_train} images, 8 × 8 pixels, in colours"
    assert facts["validation"] == f"{n_valid} images, held out"
    assert facts["batches"] == "3 per epoch, of up to 16 images"
    assert facts["classes"].startswith("3: ")
    assert facts["augmentation"] == "moved by up to 2 pixels, every second one mirrored"
    assert list(prepared.hashes) == [str(tmp_path / "images")]


def test_a_size_and_colours_can_be_asked_for(tmp_path: Path) -> None:
    task, _, valid = parts(prepare(tmp_path, {"data.image_size": 6, "data.channels": 1}))
    assert task.table.shape.dimensions == (6, 6, 1)
    assert valid.batch(np.array([0]), CPU).images.shape == (1, 6, 6, 1)
    assert task.model_fields() == {"n_channels": 1, "n_outputs": 3}  # a convolution asks for no size


def test_a_vision_transformer_is_told_the_size(tmp_path: Path) -> None:
    sizes = {"model.preset": "vit-tiny", "model.patch_size": 4}
    settings = {
        key: value for key, value in {**SEEING, **sizes}.items() if key not in ("model.n_blocks", "model.width")
    }
    train = draw_stripes(tmp_path / "images")
    config = configuration.from_tables({"task": "image", "data": {"train": [train]}}, origin="test")
    prepared = ImageClassificationTask.prepare(
        configuration.override(config, settings), vocabulary=None, progress=lambda what, done: None
    )
    assert prepared.task.model_fields() == {"n_channels": 3, "image_size": 8, "n_outputs": 3}


def test_a_change_that_leaves_nothing_of_an_image_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Augmentation by cutout 8 leaves nothing of images of 8 × 8 pixels\."):
        prepare(tmp_path, {"augmentation.cutout": 8})


def test_a_run_that_goes_on_keeps_the_size_of_its_images(tmp_path: Path) -> None:
    task, _, _ = parts(prepare(tmp_path, {"data.image_size": 6, "data.channels": 1}))
    task.save(tmp_path / "vocabulary")
    again, _, _ = parts(prepare(tmp_path, vocabulary=tmp_path / "vocabulary"))
    assert again.table.shape.dimensions == (6, 6, 1)


def test_the_best_by_a_score_that_few_classes_do_not_have(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        prepare(tmp_path, {"training.best_by": "top_5"})
    assert caught.value.problem == "training.best_by is top_5, a score among more than 5 classes, and there are 3."
    assert caught.value.remedy == "Choose another: --set training.best_by=accuracy"


# Loss


def test_the_loss_is_the_cross_entropy_of_scaled_images(tmp_path: Path) -> None:
    prepared = prepare(tmp_path)
    task, model, valid = parts(prepared)
    batch = valid.batch(np.arange(4), CPU)
    scaled = (batch.images.double() / 255 - torch.tensor(task.table.mean)) / torch.tensor(task.table.deviation)
    with torch.inference_mode():
        loss, weight = task.loss(model, batch, smoothing=0.1)
        logits = model(scaled.permute(0, 3, 1, 2).float())
    expected = F.cross_entropy(logits, batch.labels, label_smoothing=0.1, reduction="sum")
    assert weight == 4
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)


def test_training_images_are_scaled_to_mean_0_and_deviation_1(tmp_path: Path) -> None:
    prepared = prepare(tmp_path)
    assert isinstance(prepared.task, ImageClassificationTask)
    images = prepared.task.table.normalise(prepared.train.batch(np.arange(len(prepared.train)), CPU).images)
    torch.testing.assert_close(images.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(images.std((0, 2, 3), correction=0), torch.ones(3), atol=1e-5, rtol=0)


class Seen(nn.Module):
    """A network that keeps the images it was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3))
        self.images = torch.empty(0)

    def forward(self, images: Tensor) -> Tensor:
        self.images = images
        return self.weight.expand(len(images), 3)


def test_images_are_changed_while_a_model_learns_and_only_then(tmp_path: Path) -> None:
    prepared = prepare(tmp_path, {"augmentation.crop": 3, "augmentation.mixup": 0.4, "augmentation.mirror": True})
    task, model = prepared.task, Seen()
    assert isinstance(task, ImageClassificationTask)
    batch = prepared.train.batch(np.arange(8), CPU)
    shown = []
    for training, seed in ((False, 1), (True, 1), (True, 1), (True, 2)):
        torch.manual_seed(seed)
        loss, weight = task.loss(model.train(training), batch, smoothing=0.0)
        assert loss.item() == pytest.approx(8 * np.log(3)) and weight == 8
        shown.append(model.images)
    assert torch.equal(shown[0], task.table.normalise(batch.images))
    assert not torch.equal(shown[1], shown[0])
    assert torch.equal(shown[1], shown[2])
    assert not torch.equal(shown[1], shown[3])


def test_rare_classes_count_as_much_as_frequent_ones(tmp_path: Path) -> None:
    prepared = prepare(tmp_path, {"training.class_weights": "balanced"})
    task, _, _ = parts(prepared)
    counts = np.array(task.table.counts)
    assert task.class_weights is not None
    assert (task.class_weights.numpy() * counts).tolist() == pytest.approx([counts.sum() / 3] * 3)
    assert any(label == "class weights" for label, _ in prepared.facts)
    _, weight = task.cross_entropy(torch.zeros(3, 3), torch.tensor([0, 1, 2]), smoothing=0.0)
    assert weight == pytest.approx(float(task.class_weights.sum()))


def test_a_network_that_answers_in_another_shape_is_refused(tmp_path: Path) -> None:
    task, _, valid = parts(prepare(tmp_path))
    with pytest.raises(ConfigError, match=r"^The network returned \(2, 8\) for a batch, and \(2, 3\) was expected"):
        task.loss(nn.Sequential(nn.Flatten(), nn.Linear(192, 8)), valid.batch(np.arange(2), CPU), smoothing=0.0)


def test_a_network_of_the_callers_own(tmp_path: Path) -> None:
    own = nn.Sequential(nn.Flatten(), nn.Linear(192, 3))
    settings = {key: value for key, value in SEEING.items() if not key.startswith("model.")}
    regard.train("image", train=draw_stripes(tmp_path / "x"), run=tmp_path / "run", model=own, settings=settings)
    run = regard.load(tmp_path / "run", model=own)
    assert run.evaluate([str(tmp_path / "x")], split="all").scores[1].value > 50


# Learning


def test_reading_ahead_changes_no_bit(tmp_path: Path) -> None:
    train = draw_stripes(tmp_path / "x")
    changes = {"augmentation.crop": 2, "augmentation.mixup": 0.2, "training.steps": 8, "training.ema": 0.9}
    weights = []
    for workers in (0, 3):
        run = tmp_path / f"run-{workers}"
        regard.train("image", train=train, run=run, settings={**SEEING, **changes, "runtime.workers": workers})
        [checkpoint] = (run / "checkpoints").iterdir()
        weights.append([(checkpoint / name).read_bytes() for name in ("model.safetensors", "ema.safetensors")])
    assert weights[0] == weights[1]


def test_a_run_that_was_broken_off_goes_on_with_the_same_images(tmp_path: Path) -> None:
    train = draw_stripes(tmp_path / "x")
    settings = {**SEEING, "augmentation.crop": 2, "augmentation.cutout": 3, "training.steps": 7}

    class BrokenOffError(Exception):
        pass

    def break_off(event: Event) -> None:
        if isinstance(event, Updated) and event.update.step == 5:
            raise BrokenOffError

    regard.train("image", train=train, run=tmp_path / "whole", settings=settings)
    with pytest.raises(BrokenOffError):
        regard.train(
            "image",
            train=train,
            run=tmp_path / "broken",
            settings={**settings, "training.save_every_steps": 2},
            watch=break_off,
        )
    Pillow.new("RGB", (8, 8)).save(tmp_path / "x" / "none" / "new.png")
    with pytest.raises(DataError, match=r"has changed since .* was started"):
        regard.resume(tmp_path / "broken")
    (tmp_path / "x" / "none" / "new.png").unlink()
    regard.resume(tmp_path / "broken")
    whole, broken = (
        (tmp_path / name / "checkpoints" / "step-00000007" / "model.safetensors").read_bytes()
        for name in ("whole", "broken")
    )
    assert whole == broken


# Scores and predictions


def test_the_scores_of_a_run_that_has_learned(image_run: Path) -> None:
    run = ImageClassifier.load(image_run)
    data = str(image_run.parent / "train")
    found = run.evaluate(data, split="all")
    assert [score.name for score in found.scores] == ["loss", "accuracy", "macro_f1"]
    assert found.scores[0].signature == "unit:image"
    assert found.scores[1].signature == "images:60"
    assert found["accuracy"] > 95
    assert (found.count, found.unit) == (60, "images")
    assert [(one.metric, len(one)) for one in found.statistics] == [("accuracy", 60), ("macro_f1", 60)]
    assert [section.name for section in found.sections] == ["classes", "labels", "confusion"]
    assert found.confusion is not None and found.confusion.labels == ("lying", "none", "standing")
    assert np.array(found.confusion.counts).sum(1).tolist() == [20, 20, 20]
    facts = json.loads(json.dumps(found.to_json()))
    assert (facts["labels"], facts["confusion"][0]) == (["lying", "none", "standing"], [*found.confusion.counts[0]])
    correct = sum(one.label == label for one, label in zip(found.predictions, found.expected, strict=True))  # type: ignore[attr-defined]
    assert 100 * correct / 60 == found["accuracy"]
    first = found.predictions[0]
    assert isinstance(first, ClassifiedImage) and first.image == f"{data}/lying/000.png"
    assert found.output[0] == f"{first.image}\tlying\t{first.label}\t{first.probability:.4f}"


def test_the_split_that_is_scored(image_run: Path, tmp_path: Path) -> None:
    stripes = draw_stripes(tmp_path / "stripes", per_class=1)
    for split in ("test", "train", "valid"):
        shutil.copytree(stripes, tmp_path / "split" / split)
    (tmp_path / "split" / "test" / "none" / "000.png").unlink()
    run = ImageClassifier.load(image_run)
    counts = [run.evaluate(tmp_path / "split", split=split).count for split in ("", "test", "train", "all")]
    assert counts == [2, 2, 3, 8]
    assert run.evaluate(stripes).count == run.evaluate(stripes, split="all").count == 3
    for split in ("valid", "test"):
        with pytest.raises(DataError) as caught:
            run.evaluate([tmp_path / "split", stripes], split=split)
        assert caught.value.problem == f"{stripes}: it is not divided into splits, and the split {split} was asked for."
        assert caught.value.remedy == "Leave --split out to score all of it, unless the run was trained on it."


def test_a_class_among_the_five_likeliest(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    np.savez(
        tmp_path / "x.npz",
        images=random.integers(0, 255, (70, 4, 4), dtype=np.uint8),
        labels=np.array([f"class-{number % 7}" for number in range(70)]),
    )
    settings = {**SEEING, "training.steps": 2}
    regard.train("image", train=str(tmp_path / "x.npz"), run=tmp_path / "run", settings=settings)
    found = ImageClassifier.load(tmp_path / "run").evaluate(tmp_path / "x.npz")
    assert [score.name for score in found.scores] == ["loss", "accuracy", "top_5", "macro_f1"]
    assert [one.metric for one in found.statistics] == ["accuracy", "top_5", "macro_f1"]
    ranks = [
        list(one.probabilities).index(label)  # type: ignore[attr-defined]
        for one, label in zip(found.predictions, found.expected, strict=True)
    ]
    assert found["top_5"] == pytest.approx(100 * np.mean(np.array(ranks) < 5))
    assert found["accuracy"] == pytest.approx(100 * np.mean(np.array(ranks) == 0))


def test_images_of_another_size_are_told_with_the_scores(image_run: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", images=np.zeros((3, 9, 9, 3), np.uint8), labels=["none"] * 3)
    found = regard.load(image_run).evaluate([str(tmp_path / "x.npz")])
    assert found.notes == (
        "3 of 3 images have another size: the shorter side is scaled to 8 pixels, and the centre kept.",
    )


def test_images_are_classified_from_files_and_arrays(image_run: Path) -> None:
    run = ImageClassifier.load(image_run)
    files: list[Any] = [image_run.parent / "train" / name / "000.png" for name in ("standing", "lying")]
    found = predict(run, files)
    assert [one.label for one in found] == ["standing", "lying"]
    assert [one.image for one in found] == list(map(str, files))
    arrays = predict(run, [np.asarray(Pillow.open(file)) for file in files])
    assert [one.probabilities for one in arrays] == [one.probabilities for one in found]
    assert [one.image for one in arrays] == ["array 0", "array 1"]
    assert predict(run, []) == []
    assert sum(found[0].probabilities.values()) == pytest.approx(1)
    alone = run.predict(files[0])
    assert (alone.label, alone.image) == (found[0].label, found[0].image)
    assert alone.probabilities == pytest.approx(found[0].probabilities, abs=1e-6), "a batch of one adds up otherwise"


def test_an_image_that_cannot_be_read_is_an_error_or_skipped(image_run: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_bytes(b"no image")
    run, good = ImageClassifier.load(image_run), image_run.parent / "train" / "lying" / "000.png"
    with pytest.raises(BadImageError, match=r"bad\.png: no image of a known kind"):
        run.predict([tmp_path / "bad.png", good])
    done: list[int] = []
    bad, one = predict(run, [tmp_path / "bad.png", good], skip_unreadable=True, progress=lambda what, n: done.append(n))
    assert (one.label, one.problem) == ("lying", "")
    assert (bad.label, bad.image, bad.lines()) == ("", str(tmp_path / "bad.png"), [])
    assert bad.problem.startswith(f"{tmp_path / 'bad.png'}: no image of a known kind")
    assert bad.cells() == bad.to_json() == {"image": bad.image, "problem": bad.problem}
    assert done == [1]  # images that were classified


def test_images_of_any_kind_are_fitted(image_run: Path, tmp_path: Path) -> None:
    grey = Pillow.open(image_run.parent / "train" / "lying" / "001.png").convert("L").resize((40, 24))
    grey.save(tmp_path / "photo.jpg")
    [found] = predict(ImageClassifier.load(image_run), [tmp_path / "photo.jpg"])
    assert found.label in ("lying", "none", "standing")


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((2, 2, 4), np.uint8), r"^An array of the shape \(2, 2, 4\) is no image\.\nGive one of \(H, W\)"),
        (np.zeros((0, 4), np.uint8), r"^An array of the shape \(0, 4\) is no image\."),
        (np.full((4, 4), -1.0), r"^an array: its pixels go from -1 to -1"),
        ("nowhere.png", r"^nowhere\.png: the image cannot be opened"),
        (".", r"^\. is a folder\.\nName its images"),
        (Pillow.new("L", (4, 4)), r"^An image is the name of a file or an array, not Image\.\n.*numpy\.asarray"),
    ],
)
def test_what_is_no_image(image_run: Path, image: Any, message: str) -> None:
    with pytest.raises(RegardError, match=message):
        regard.load(image_run).predict([image])


def test_a_new_run_begins_with_the_weights_of_another(image_run: Path, tmp_path: Path) -> None:
    train = draw_stripes(tmp_path / "x")
    settings = {**SEEING, **STILL, "training.init": str(image_run)}
    run = regard.train("image", train=train, run=tmp_path / "run", settings=settings)
    assert isinstance(run, regard.Run)
    before = regard.load(image_run)
    for name, parameter in run.model.named_parameters():
        assert torch.equal(parameter, before.model.get_parameter(name))


def test_the_head_of_other_classes_is_not_taken(image_run: Path, tmp_path: Path) -> None:
    train = Path(draw_stripes(tmp_path / "x"))
    for name in ("lying", "none", "standing"):
        (train / name).rename(train / f"other-{name}")
    settings = {**SEEING, **STILL, "training.init": str(image_run)}
    run = regard.train("image", train=str(train), run=tmp_path / "run", settings=settings)
    assert isinstance(run, regard.Run)
    before = regard.load(image_run)
    same = {
        name: torch.equal(parameter, before.model.get_parameter(name))
        for name, parameter in run.model.named_parameters()
    }
    assert not same["head.output.weight"]
    assert all(equal for name, equal in same.items() if not name.startswith("head."))


@pytest.mark.parametrize(
    ("own", "settings", "size"),
    [
        (200, {}, 32),
        (90, {}, 90),
        (200, {"data.image_size": 120}, 120),
        (200, {"model.stem": "large"}, 200),
    ],
)
def test_photographs_become_what_suits_the_model(tmp_path: Path, own: int, settings: dict[str, Any], size: int) -> None:
    random = np.random.default_rng(2)
    images = random.integers(0, 255, (12, own, own), dtype=np.uint8)
    np.savez(tmp_path / "x.npz", images=images, labels=np.arange(12) % 2)
    tables = {"task": "image", "data": {"train": [str(tmp_path / "x.npz")]}}
    config = configuration.override(
        configuration.from_tables(tables, origin="test"), {**SEEING, "data.valid_size": 2, **settings}
    )
    prepared = ImageClassificationTask.prepare(config, vocabulary=None, progress=lambda what, done: None)
    assert isinstance(prepared.task, ImageClassificationTask)
    assert prepared.task.table.shape.size == size
