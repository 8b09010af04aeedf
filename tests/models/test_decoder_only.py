"""What decoder-only language models keep beside what every generator does: documents, windows and long caches."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from tests.models.generators import V, make_gpt, make_llama
from torch import Tensor

from regard.parts.taps import recording

Make = Callable[..., Any]
either = pytest.mark.parametrize("make", [make_gpt, make_llama], ids=["gpt", "llama"])


def some_ids(rows: int, length: int) -> Tensor:
    return torch.randint(2, V, (rows, length), generator=torch.Generator().manual_seed(5))


@either
@pytest.mark.parametrize("window", [0, 1, 5])
@torch.inference_mode()
def test_cached_equals_uncached_and_the_cache_is_no_longer_than_the_window(make: Make, window: int) -> None:
    model, ids = make(window=window).eval(), some_ids(2, 60)
    whole = model(ids)
    logits, state = model.step(model.start(2), ids[:, :7])
    assert torch.allclose(logits, whole[:, 6], atol=1e-5)
    for place in range(7, 60):
        logits, state = model.step(state, ids[:, place : place + 1])
        assert torch.allclose(logits, whole[:, place], atol=1e-5)
    assert state.n_slots == (window or 60)


@either
@pytest.mark.parametrize("window", [0, 1, 4])
@torch.inference_mode()
def test_documents_of_a_row_do_not_see_each_other(make: Make, window: int) -> None:
    model, ids, ends = make(window=window, context=120).eval(), some_ids(2, 120), [0, 7, 50, 51, 90, 120]
    documents = torch.bucketize(torch.arange(120), torch.tensor(ends[1:-1]), right=True).expand(2, -1)
    together = model(ids, documents)
    for begin, end in pairwise(ends):
        assert torch.allclose(together[:, begin:end], model(ids[:, begin:end]), atol=1e-5)
    assert not torch.allclose(together, model(ids), atol=1e-3)


@either
@torch.inference_mode()
def test_taps_are_named_by_their_place(make: Make) -> None:
    model = make()
    with recording(model) as record:
        logits = model(some_ids(2, 6))
    sublayers = {"self_attention": ("query", "key", "value", "scores", "weights", "heads", "output")}
    sublayers |= {"feed_forward": ("hidden", "output")}
    own = {f"{name}.{tap}" for name, taps in sublayers.items() for tap in taps}
    own |= {f"{name}_residual.output" for name in sublayers}
    embedding = {"tokens", "positions", "sum"} if make is make_gpt else {"tokens", "sum"}
    expected = {f"decoder.{layer}.{name}" for layer in range(2) for name in own}
    assert set(record) == expected | {f"embedding.{name}" for name in embedding} | {"logits"}
    assert record["decoder.1.self_attention.weights"].shape == (2, model.config.n_heads, 6, 6)
    assert torch.equal(record["logits"], logits)
