"""GPT: equal to GPT-2, and to itself with a cache."""

import subprocess
import sys

import pytest
import torch
from benchmarks.gpt2 import to_gpt2
from tests.models.generators import shaken
from torch import Tensor
from transformers import GPT2LMHeadModel

from regard.errors import DataError
from regard.models.gpt import GPT, GPTConfig
from regard.models.presets import PRESETS, count_parameters

SIZES = {"vocab": 40, "n_layers": 3, "n_heads": 4, "d_model": 32, "context": 24}


def make_model(seed: int = 1, **changes: float) -> GPT:
    return GPT(GPTConfig(**{**SIZES, "dropout": 0.0, **changes}), seed=seed).eval()  # type: ignore[arg-type]


def gpt2_like(model: GPT) -> GPT2LMHeadModel:
    return to_gpt2(model, pad_id=0, end_id=1).eval()


def some_ids(rows: int, length: int) -> Tensor:
    return torch.randint(2, SIZES["vocab"], (rows, length), generator=torch.Generator().manual_seed(5))


def test_gpt2_has_as_many_parameters_as_published() -> None:
    # Radford et al. 2019 count 117 M; the released weights have 124,439,808 with 50,257 tokens.
    assert count_parameters(PRESETS["gpt2"], 50_257) == 124_439_808


def test_logits_equal_those_of_gpt2() -> None:
    model = shaken(make_model())
    ids = some_ids(3, 24)
    with torch.inference_mode():
        assert torch.allclose(model(ids), gpt2_like(model)(ids).logits, atol=1e-5)


def test_greedy_tokens_equal_those_of_gpt2() -> None:
    from regard.config import DecodingConfig
    from regard.decoding.prompt import Prompt
    from regard.decoding.request import Request
    from regard.decoding.search import decode

    model = shaken(make_model())
    prompt = some_ids(4, 5)
    request = Request(prompt=Prompt(prompt), end_id=1, limits=torch.full((4,), 18))
    found = decode(model, model.start(4), request, DecodingConfig(beam=1))
    expected = gpt2_like(model).generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=18, do_sample=False
    )
    for one, row in zip(found, expected[:, 5:].tolist(), strict=True):
        ids = row[: row.index(1)] if 1 in row else row
        assert list(one.best.ids) == ids


def test_one_matrix_serves_embedding_and_output() -> None:
    model = make_model()
    assert model.output.weight is model.embedding.tokens.weight


def test_a_sequence_beyond_the_positions_is_refused() -> None:
    with pytest.raises(DataError, match="A sequence of 25 tokens is longer than the 24 learned positions"):
        make_model()(some_ids(1, 25))


def test_importing_it_loads_neither_convolutions_nor_recurrent_cells() -> None:
    code = (
        "import sys; import regard.models.gpt; print(*sorted(name for name in sys.modules if 'regard.parts' in name))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "regard.parts.attention" in loaded
    assert not {"regard.parts.convolution", "regard.parts.recurrent", "regard.parts.scores"} & set(loaded)
