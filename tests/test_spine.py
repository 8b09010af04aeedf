"""What every family of models must hold, whatever its task. A new family joins with one line of FAMILIES."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.conftest import draw_captions, draw_stripes
from torch import Tensor, nn

import regard
from regard.config import from_tables, override
from regard.models.presets import PRESETS, build_model, model_config
from regard.tasks import find_task
from regard.tasks.denoising.examples import SegmentBatch
from regard.tasks.images.caption_examples import CaptionBatch
from regard.tasks.images.image_examples import ImageBatch
from regard.tasks.labelling.examples import SequenceBatch
from regard.tasks.language_model.examples import WindowBatch
from regard.tasks.spec import TASKS
from regard.tasks.task import Prepared
from regard.tasks.translation.examples import PairBatch
from regard.training.events import Event, Updated

CPU = torch.device("cpu")
NINE = {"training.steps": 9, "training.validate_every": 3}
COMMON = {
    "tokenizer.vocab_size": 360,
    "training.batch_tokens": 96,
    "training.warmup": 5,
    "training.learning_rate": 0.01,
    "training.validate_samples": 2,
    "training.batch_images": 8,
    "augmentation.crop": 1,
    "augmentation.mixup": 0.2,
    "data.separator": "<end>",
    "runtime.device": "cpu",
    "runtime.threads": 1,
}
TRANSFORMER = {
    "model.n_encoder_layers": 1,
    "model.n_decoder_layers": 2,
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.n_heads": 2,
}
RECURRENT = {"model.d_model": 16, "model.d_state": 12, "model.n_layers": 2}
T5 = {**TRANSFORMER, "model.d_head": 8}
BERT = {"model.n_layers": 2, "model.n_heads": 2, "model.d_model": 16, "model.d_ff": 32}
VIT = {**BERT, "model.patch_size": 4}
RESNET = {"model.n_blocks": [1, 1], "model.width": 8}
TEXT_TRANSFORMER = {
    "model.decoder.n_layers": 2,
    "model.decoder.n_heads": 2,
    "model.decoder.d_model": 16,
    "model.decoder.d_ff": 32,
}
IMAGE_VIT = {
    "model.encoder.n_layers": 1,
    "model.encoder.n_heads": 2,
    "model.encoder.d_model": 16,
    "model.encoder.d_ff": 32,
    "model.encoder.patch_size": 4,
}
IMAGE_RESNET = {"model.encoder.n_blocks": [1, 1], "model.encoder.width": 8}
TEXT_RECURRENT = {"model.decoder.d_model": 16, "model.decoder.d_state": 12}
GPT = {"model.n_layers": 2, "model.n_heads": 2, "model.d_model": 16, "model.context": 16}


@dataclass(frozen=True)
class Family:
    """One architecture for one task, made small by `settings`."""

    task: str
    preset: str
    settings: dict[str, Any]

    def __str__(self) -> str:
        told = (f"{key}={value}" for key, value in self.settings.items() if key in TELLING)
        return "-".join((self.task, self.preset, *told))


TELLING = ("model.cell", "model.pooling", "model.norm_order", "model.positions", "model.window")
FAMILIES = (
    Family("translate", "transformer-tiny", TRANSFORMER),
    Family("translate", "transformer-tiny", {**TRANSFORMER, "model.norm_order": "post", "model.positions": "rotary"}),
    Family("translate", "transformer-tiny", {**TRANSFORMER, "model.window": 3}),
    Family("translate", "rnn", RECURRENT),
    Family("translate", "rnn-attention", {**RECURRENT, "model.cell": "lstm"}),
    Family("translate", "birnn-attention", {**RECURRENT, "model.cell": "elman"}),
    Family("language", "gpt-nano", GPT),
    Family("language", "gpt-nano", {**GPT, "model.window": 4}),
    Family("language", "llama-nano", {**GPT, "model.d_ff": 24, "model.n_key_heads": 1}),
    Family("language", "llama-nano", {**GPT, "model.d_ff": 24, "model.n_key_heads": 2, "model.window": 4}),
    Family("translate", "t5-tiny", T5),
    Family("denoise", "t5-tiny", T5),
    Family("denoise", "transformer-tiny", TRANSFORMER),
    *(Family(task, "bert-tiny", BERT) for task in ("mask", "classify", "tag", "regress")),
    *(Family(task, "birnn", RECURRENT) for task in ("mask", "classify", "tag", "regress")),
    Family("classify", "bert-tiny", {**BERT, "model.pooling": "mean"}),
    Family("regress", "lstm", RECURRENT),
    Family("similarity", "bert-tiny", BERT),
    Family("similarity", "birnn", RECURRENT),
    Family("image", "vit-tiny", VIT),
    Family("image", "convnet", {"model.widths": [8, 8]}),
    Family("image", "resnet-20", RESNET),
    Family("image", "plain-20", {**RESNET, "model.norm": "none"}),
    Family("caption", "captioner-vit", {**IMAGE_VIT, **TEXT_TRANSFORMER}),
    Family("caption", "captioner-resnet", {**IMAGE_RESNET, **TEXT_TRANSFORMER}),
    Family("caption", "captioner-rnn", {**IMAGE_RESNET, **TEXT_RECURRENT}),
)
WRITING = tuple(family for family in FAMILIES if family.task in ("translate", "language", "caption"))


# Of the scope of a module: what one test of a family has read or trained serves its others.
@pytest.fixture(scope="module", params=FAMILIES, ids=str)
def family(request: pytest.FixtureRequest) -> Family:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def folder(family: Family, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp(family.task)


@pytest.fixture(scope="module")
def files(family: Family, corpus: tuple[str, str], folder: Path) -> tuple[str, ...]:
    """What the family's task reads: pairs, a few documents of running text, a table, columns of words."""
    if family.task == "translate":
        return corpus
    if family.task == "caption":
        return (draw_captions(folder / "images"),)
    if family.task == "image":
        return (draw_stripes(folder / "images"),)
    lines = Path(corpus[0]).read_text().splitlines()
    match family.task:
        case "classify":
            name, text = "table.csv", "text,label\n" + "".join(f"{line},{_class(line)}\n" for line in lines)
        case "regress":
            name, text = "table.csv", "text,score\n" + "".join(f"{line},{len(line) / 7}\n" for line in lines)
        case "similarity":
            rows = (f"{one},{other},{_overlap(one, other)}\n" for one, other in itertools.pairwise(lines))
            name, text = "table.csv", "sentence1,sentence2,score\n" + "".join(rows)
        case "tag":
            name, text = "words.conll", "".join(_columns(line) for line in lines)
        case _:
            ends = ("<end>\n" if number % 5 == 4 else "" for number in range(len(lines)))
            name, text = "text.txt", "".join(f"{line}.\n{end}" for line, end in zip(lines, ends, strict=True))
    file = folder / name
    file.write_text(text)
    return (str(file),)


def _class(line: str) -> str:
    return "long" if len(line.split()) > 4 else "dog" if "dog" in line else "other"


def _overlap(one: str, other: str) -> float:
    first, second = set(one.split()), set(other.split())
    return len(first & second) / len(first | second)


def _columns(line: str) -> str:
    return "".join(f"{word}\t{'B-BEING' if word in ('dog', 'cat', 'man') else 'O'}\n" for word in line.split()) + "\n"


@pytest.fixture(scope="module")
def settings(family: Family) -> dict[str, Any]:
    spec = TASKS[family.task]
    common = {key: value for key, value in COMMON.items() if spec.reads_setting(*key.split("."))}
    return {**common, **family.settings}


@pytest.fixture(scope="module")
def prepared(family: Family, files: tuple[str, ...], settings: dict[str, Any]) -> Prepared:
    config = from_tables({"task": family.task, "data": {"train": list(files)}}, origin="test")
    config = override(config, {"model.preset": family.preset, **settings})
    return find_task(family.task).prepare(config, vocabulary=None, progress=lambda what, done: None)


@pytest.fixture(scope="module")
def whole(family: Family, files: tuple[str, ...], settings: dict[str, Any], folder: Path) -> regard.Run:
    """A run of nine steps. To be read, not changed."""
    run = regard.train(family.task, train=files, run=folder / "whole", model=family.preset, settings=settings | NINE)
    assert isinstance(run, regard.Run)
    return run


@pytest.fixture
def model(family: Family, prepared: Prepared) -> nn.Module:
    config: Any = prepared.task.config  # type: ignore[attr-defined]
    return build_model(model_config(config.model, origin="test", **prepared.task.model_fields()), seed=3)


def read(model: Any, batch: Any) -> Tensor:
    """What a model says of a batch of any task: logits (B, T, V), or what its head says."""
    match batch:
        case ImageBatch():
            logits = model(batch.images.permute(0, 3, 1, 2).float() / 255)
        case CaptionBatch():
            images = batch.images.permute(0, 3, 1, 2).float() / 255
            logits = model(images, batch.target[:, :-1], batch.image_of)
        case SequenceBatch():
            logits = model(batch.inputs, batch.lengths, batch.segments)
        case SegmentBatch():
            ids, lengths = torch.from_numpy(batch.ids), torch.from_numpy(batch.lengths)
            logits = model(ids, lengths, ids) if hasattr(model, "step") else model(ids, lengths)
        case PairBatch():
            logits = model(batch.source, batch.source_lengths, batch.target[:, :-1])
        case WindowBatch():
            logits = model(batch.ids, batch.documents)
    return logits  # type: ignore[no-any-return]


def with_another_future(batch: Any, place: int) -> Any:
    """The batch with other tokens from `place` on."""
    match batch:
        case PairBatch() | CaptionBatch():
            target = batch.target.clone()
            target[:, place:] = (target[:, place:] + 7) % 50
            return replace(batch, target=target)
        case WindowBatch():
            ids = batch.ids.clone()
            ids[:, place:] = (ids[:, place:] + 7) % 50
            return replace(batch, ids=ids)


def first_batch(prepared: Prepared) -> Any:
    return prepared.train.batch(prepared.train.order(0)[0], CPU)


def test_every_architecture_has_a_family_for_each_of_its_tasks() -> None:
    joined = {(PRESETS[family.preset].config, family.task) for family in FAMILIES}
    assert joined == {(preset.config, task) for preset in PRESETS.values() for task in preset.tasks}


@pytest.mark.parametrize("family", WRITING, ids=str, indirect=True)
def test_no_position_sees_the_future(model: nn.Module, prepared: Prepared) -> None:
    batch = first_batch(prepared)
    place = 3
    with torch.inference_mode():
        before, after = read(model.eval(), batch), read(model, with_another_future(batch, place))
    assert torch.allclose(before[:, :place], after[:, :place], atol=1e-5)
    assert not torch.allclose(before[:, place], after[:, place], atol=1e-3)  # else nothing was changed


def test_padding_changes_nothing(model: nn.Module, prepared: Prepared) -> None:
    """A batch costs what its examples cost one by one."""
    examples, task = prepared.valid, prepared.task
    indices = np.concatenate(examples.fixed_order())
    chosen = indices[np.linspace(0, len(indices) - 1, 5).astype(int)]
    model.eval()
    with torch.inference_mode():
        together, weight = task.loss(model, examples.batch(chosen, CPU), smoothing=0.1)
        alone = [task.loss(model, examples.batch(one, CPU), smoothing=0.1) for one in chosen.reshape(-1, 1)]
    assert weight == sum(count for _, count in alone)
    assert float(together) == pytest.approx(sum(float(loss) for loss, _ in alone), rel=1e-5)


def test_one_batch_is_learnt_by_heart(model: nn.Module, prepared: Prepared) -> None:
    batch = first_batch(prepared)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
    model.eval()  # no dropout, and what is hidden stays the same
    losses: list[float] = []
    for _ in range(150):
        loss, weight = prepared.task.loss(model, batch, smoothing=0.0)
        losses.append(float(loss.detach()) / weight)
        if losses[-1] < 0.1 * losses[0]:
            return
        optimizer.zero_grad()
        (loss / weight).backward()
        optimizer.step()
    pytest.fail(f"The loss fell from {losses[0]:.3f} to {losses[-1]:.3f} in 150 updates.")


def test_a_run_that_was_broken_off_ends_with_the_same_bytes(
    family: Family, files: tuple[str, ...], settings: dict[str, Any], whole: regard.Run, folder: Path
) -> None:
    class BrokenOffError(Exception):
        pass

    def break_off(event: Event) -> None:
        if isinstance(event, Updated) and event.update.step == 5:
            raise BrokenOffError

    broken = folder / "broken"
    with pytest.raises(BrokenOffError):
        regard.train(
            family.task, train=files, run=broken, model=family.preset, settings=settings | NINE, watch=break_off
        )
    regard.resume(broken)
    last = Path("checkpoints", "step-00000009", "model.safetensors")
    assert (broken / last).read_bytes() == (folder / "whole" / last).read_bytes()


def test_what_is_saved_is_loaded(
    family: Family, files: tuple[str, ...], whole: regard.Run, prepared: Prepared, folder: Path
) -> None:
    run, again = whole, regard.load(folder / "whole")
    batch = first_batch(prepared)
    with torch.inference_mode():
        assert torch.equal(read(run.model, batch), read(again.model, batch))
    if family.task in ("image", "caption"):
        photo = next(Path(files[0] if family.task == "image" else Path(files[0]).parent).rglob("*.png"))
        assert run.predict([photo]) == again.predict([photo])
        return
    text = "a [MASK] runs" if family.task in ("mask", "denoise") else "a dog runs"
    second = {"texts_b": ["a cat runs"]} if family.task == "similarity" else {}
    verbs: dict[str, Callable[[regard.Run], object]] = {
        "translate": lambda one: one.translate(["a dog"]),
        "generate": lambda one: one.generate(["a dog"]),
        "predict": lambda one: one.predict([text], **second),
    }
    verb = verbs[TASKS[family.task].verb]
    assert verb(run) == verb(again)
