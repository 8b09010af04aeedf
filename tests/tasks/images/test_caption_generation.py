"""Captions as results, and attention maps: where a captioner attends while it writes each word."""

from pathlib import Path

import pytest
import torch
from torch import nn

from regard.api import Captioner
from regard.errors import UsageError
from regard.tasks.generation import Output
from regard.tasks.images.caption_generation import Caption, attention_maps


def output(text: str, score: float) -> Output:
    return Output(text=text, score=score, ids=(1,), tokens=(text,), log_probs=(score,))


def test_how_a_caption_is_shown() -> None:
    one = Caption(image="a\tb.png", outputs=(output("a dog\nruns", -0.5),))
    assert one.lines() == ["a b.png\ta dog runs"]
    assert one.cells() == {"image": "a\tb.png", "caption": "a dog\nruns", "score": -0.5}
    candidate = {
        "text": "a dog\nruns",
        "score": -0.5,
        "finished": True,
        "tokens": ("a dog\nruns",),
        "log_probs": (-0.5,),
    }
    assert one.to_json() == {"image": "a\tb.png", "caption": "a dog\nruns", "candidates": [candidate]}


def test_each_of_several_captions_stands_behind_its_score() -> None:
    several = Caption(image="x.png", outputs=(output("a", -0.25), output("b", -1)))
    assert several.lines() == ["x.png\t-0.2500\ta", "x.png\t-1.0000\tb"]
    assert several.text == "a"


def test_where_a_model_attends(caption_run: Path) -> None:
    run = Captioner.load(caption_run)
    file = str(caption_run.parent / "images" / "lying-000.png")
    [found] = run.task.predict(run.model, [file], run.task.options())  # type: ignore[arg-type]
    maps = run.task.attention_maps(run.model, file, found.outputs[0].ids)
    assert list(maps.words) == found.text.split()
    assert maps.weights.shape == (len(maps.words), *run.model.grid)  # type: ignore[misc]
    assert maps.weights.sum((1, 2)).tolist() == pytest.approx([1] * len(maps.words), abs=1e-4)
    assert run.task.attention_maps(run.model, file, ()).weights.shape == (0, *run.model.grid)  # type: ignore[misc]


def test_a_model_without_attention_has_no_maps(caption_run: Path) -> None:
    tokenizer = Captioner.load(caption_run).task.tokenizer
    with pytest.raises(UsageError, match="no attention over the image"):
        attention_maps(nn.Linear(2, 2), tokenizer, torch.zeros(3, 8, 8), [1])
