"""GPT: equal to GPT-2, and to itself with a cache."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from benchmarks.gpt2 import to_gpt2
from tests.models.generators import shaken
from torch import Tensor
from transformers import GPT2LMHeadModel

from regard.errors import DataError
from regard.models.gpt import GPT, GPTConfig, QuickBlocks
from regard.models.presets import PRESETS, count_parameters
from regard.parts.taps import recording

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


@pytest.mark.parametrize("window", [0, 4])
@pytest.mark.parametrize("counts", [None, [6, 2, 4]])
def test_the_quick_way_of_a_step_is_the_blocks_own(
    monkeypatch: pytest.MonkeyPatch, window: int, counts: list[int] | None
) -> None:
    model = shaken(make_model(window=window))
    ids, calls = some_ids(3, 12), []
    quick = QuickBlocks.__call__
    monkeypatch.setattr(QuickBlocks, "__call__", lambda *arguments: calls.append(1) or quick(*arguments))
    with torch.inference_mode():
        prompt = (ids[:, :6], None if counts is None else torch.tensor(counts))
        logits, state = model.step(model.start(3), *prompt)
        _, slow = model.step(replace(model.start(3), prepared=None), *prompt)
        assert not calls  # a prompt is no single position
        for column in range(6, 12):
            logits, state = model.step(state, ids[:, column : column + 1])
            expected, slow = model.step(slow, ids[:, column : column + 1])
            assert torch.allclose(logits, expected, atol=1e-5)
        assert len(calls) == 6
        again = state.join(state).keep(torch.tensor([4, 0]))
        assert torch.allclose(model.step(again, ids[[1, 0], :1])[0], model.step(slow, ids[:, :1])[0][[1, 0]], atol=1e-5)


def test_who_listens_or_learns_gets_the_blocks_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model()
    monkeypatch.setattr(QuickBlocks, "__call__", None)
    state, ids = model.start(2), some_ids(2, 1)
    with torch.inference_mode(), recording(model, "decoder.0.self_attention.weights") as record:
        model.step(state, ids)
    assert list(record) == ["decoder.0.self_attention.weights"]
    model.step(state, ids)[0].sum().backward()
    assert model.decoder[0].self_attention.query.weight.grad is not None
    assert model.train().start(2).prepared is None


def test_importing_it_loads_neither_convolutions_nor_recurrent_cells() -> None:
    code = (
        "import sys; import regard.models.gpt; print(*sorted(name for name in sys.modules if 'regard.parts' in name))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "regard.parts.attention" in loaded
    assert not {"regard.parts.convolution", "regard.parts.recurrent", "regard.parts.scores"} & set(loaded)
