"""Batches of captions: an image once with all its captions, and references for scores."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.conftest import DESCRIBING, draw_captions

from regard import config as configuration
from regard.evaluation.generated_text import score_translations
from regard.tasks.images.caption_examples import CaptionExamples
from regard.tasks.images.captioning import CaptioningTask
from regard.tasks.options import no_progress


def test_a_batch_has_an_image_once_and_all_its_captions(tmp_path: Path) -> None:
    tables = {"task": "caption", "data": {"train": [draw_captions(tmp_path / "images")]}}
    config = configuration.override(configuration.from_tables(tables, origin="test"), DESCRIBING)
    train = CaptioningTask.prepare(config, vocabulary=None, progress=no_progress).train
    assert isinstance(train, CaptionExamples)
    indices = np.array([4, 0, 9])
    batch = train.batch(indices, torch.device("cpu"))
    assert batch.images.shape == (3, 8, 8, 3)
    assert batch.image_of.tolist() == [0, 0, 1, 1, 2, 2]
    assert (batch.target[:, 0] == train.tokenizer.start_id).all()
    texts = []
    for row, length in zip(batch.target.tolist(), batch.lengths.tolist(), strict=True):
        assert row[length] == train.tokenizer.end_id
        assert all(id == train.tokenizer.pad_id for id in row[length + 1 :])
        texts.append(train.tokenizer.decode(row[1:length]))
    assert texts == [text for index in indices.tolist() for text in train.captions.captions_of(index)]


def test_an_image_with_fewer_captions_is_scored_by_those_it_has() -> None:
    class Captions:
        image_set = None

        def captions_of(self, image: int) -> list[str]:
            return [["a b c d", "e f g h", "a b c h"], ["i j k l"]][image]

    examples = CaptionExamples(Captions(), None, batch_images=1, seed=1)  # type: ignore[arg-type]
    references = examples.references(2)
    assert references == [["a b c d", "i j k l"], ["e f g h", "i j k l"], ["a b c h", "i j k l"]]
    [bleu] = score_translations(["e f g h", "i j k l"], references, metrics=("bleu",))
    assert bleu.value == pytest.approx(100)
