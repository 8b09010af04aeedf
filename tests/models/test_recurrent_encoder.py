"""The recurrent encoder with a head: what is its own among encoders (`test_encoder_alone.py` has what all share)."""

from typing import Any

import pytest
import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.models.recurrent_encoder import RecurrentEncoderConfig, RecurrentEncoderModel
from regard.parts.recurrent import CELLS
from regard.parts.taps import recording

SIZES = {"vocab": 30, "n_layers": 2, "d_model": 6, "d_state": 5}
LENGTHS = torch.tensor([9, 4])


def make_model(**changes: Any) -> RecurrentEncoderModel:
    return RecurrentEncoderModel(RecurrentEncoderConfig(**{**SIZES, "dropout": 0.0, **changes}), seed=1).eval()


def some_ids() -> Tensor:
    return torch.randint(4, 30, (2, 9), generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize("cell", list(CELLS))
@pytest.mark.parametrize("bidirectional", [False, True])
def test_without_a_head_it_says_its_final_state(cell: str, bidirectional: bool) -> None:
    model = make_model(cell=cell, bidirectional=bidirectional)
    with torch.inference_mode():
        embedded = model.embedding(some_ids(), torch.arange(9))
        _, final = model.encoder(embedded, LENGTHS)
        torch.testing.assert_close(model(some_ids(), LENGTHS), final[-1][0])


def test_segments_are_not_needed() -> None:
    model = make_model()
    with torch.inference_mode():
        found = model(some_ids(), LENGTHS, torch.ones(2, 9, dtype=torch.long))
        assert torch.equal(found, model(some_ids(), LENGTHS))


def test_any_length_can_be_read() -> None:
    model = make_model()
    assert model.max_length is None
    assert model(torch.ones(1, 3000, dtype=torch.long), torch.tensor([3000])).shape == (1, 10)


def test_taps_are_named_by_their_place() -> None:
    model = make_model(head="tokens", n_outputs=3)
    with recording(model) as record, torch.inference_mode():
        model(some_ids(), LENGTHS)
    gates = ("reset_gate", "update_gate", "candidate", "state")
    cells = {f"{cell}.{gate}" for cell in ("forwards", "backwards") for gate in gates}
    layers = {f"encoder.layers.{number}.{name}" for number in range(2) for name in (*cells, "states")}
    assert set(record) == layers | {"embedding.tokens", "embedding.sum", "logits"}
    assert record["encoder.layers.1.states"].shape == (2, 9, 10)


def test_dropout_lies_on_the_embedding_between_layers_and_before_the_head() -> None:
    model = make_model(dropout=0.25, head="sequence", n_outputs=2)
    assert {name: module.rate for name, module in model.named_modules() if hasattr(module, "rate")} == {
        "embedding.dropout": 0.25,
        "encoder.dropout": 0.25,
        "head.dropout": 0.25,
    }


def test_the_first_state_of_one_direction_says_nothing() -> None:
    with pytest.raises(ConfigError) as caught:
        RecurrentEncoderConfig(**SIZES, pooling="class", bidirectional=False)
    assert str(caught.value) == (
        "model.pooling = class takes the first state, and a network that reads forwards has seen nothing there.\n"
        "Set model.pooling = last or mean, or model.bidirectional = true."
    )
