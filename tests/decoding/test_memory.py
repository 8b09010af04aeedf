"""A search that would not fit into memory is refused before it grows."""

from typing import Any

import pytest
import torch

from regard.config import DecodingConfig
from regard.decoding import memory
from regard.decoding.request import Request
from regard.decoding.search import decode
from regard.errors import UsageError
from regard.models.transformer import Transformer, TransformerConfig


def request(limit: int, **fields: Any) -> Request:
    return Request(prompt=1, end_id=2, limits=torch.tensor([limit, 3]), **fields)


@pytest.fixture(scope="module")
def model() -> Transformer:
    sizes = {"d_model": 16, "d_ff": 16, "n_heads": 2, "n_encoder_layers": 1, "n_decoder_layers": 3}
    return Transformer(TransformerConfig(source_vocab=50, target_vocab=50, **sizes)).eval()


def search(model: Transformer, asked: Request, **settings: Any) -> int:
    state = model.start((torch.full((2, 4), 7), torch.tensor([4, 4])))
    return len(decode(model, state, asked, DecodingConfig(**settings)))


@pytest.mark.parametrize("settings", [{"beam": 900}, {"sample": True, "n_best": 900}], ids=["beam search", "sampling"])
def test_too_many_hypotheses(model: Transformer, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda device: 2_000_000)
    with pytest.raises(UsageError) as caught:
        search(model, request(4), **settings)
    # 20 bytes × 50 tokens + 40 × 50 candidates + 4 × (300 + 3 caches × 3 layers × 2 × 16 × 4 bytes) = 8,808 per row
    assert caught.value.problem == (
        "2 × 900 hypotheses of up to 4 tokens need about 0.0 GB of memory, and 0.0 GB are free."
    )
    assert caught.value.remedy.startswith("At most 227 hypotheses fit: lower beam, ")
    assert search(model, request(4), beam=5) == 2


def test_a_long_output_counts(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda device: 2_000_000)
    with pytest.raises(UsageError, match="of up to 30,000 tokens need about"):
        search(model, request(30_000), beam=2)
    monkeypatch.setattr(memory, "available_memory", lambda device: None)  # nobody knows how much there is
    assert search(model, request(3), beam=2) == 2


def test_limits_that_nobody_asked_for_count_as_outputs_usually_go(
    model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda device: 30_000)
    with pytest.raises(UsageError):
        search(model, request(12), beam=1)
    assert search(model, request(12, usual_share=0.5), beam=1) == 2
