"""What holds for every encoder alone, Transformer or recurrent, whatever its head."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.models.bert import Bert, BertConfig
from regard.models.encoder_only import EncoderOnly
from regard.models.recurrent_encoder import RecurrentEncoderConfig, RecurrentEncoderModel
from regard.parts.heads import POOLINGS
from regard.parts.taps import recording
from regard.runs.tensors import load, save

V = 30
LENGTHS = torch.tensor([12, 5, 1])
WIDTHS = {"bert": 16, "birnn": 20, "lstm": 10}
# What each head says of a batch of so many rows and positions, from states of width D.
HEADS: dict[str, tuple[str, ...]] = {"none": ("D",), "words": ("T", "V"), "sequence": ("N",), "tokens": ("T", "N")}


def make_model(kind: str, *, seed: int = 1, **changes: Any) -> EncoderOnly:
    n_outputs = 3 if changes.get("head") in ("sequence", "tokens") else 0
    changes = {"vocab": V, "dropout": 0.0, "n_outputs": n_outputs, **changes}
    if kind == "bert":
        config = BertConfig(n_layers=2, n_heads=2, d_model=16, d_ff=24, max_positions=40, **changes)
        return Bert(config, seed=seed).eval()
    sizes = {"n_layers": 2, "d_model": 16, "d_state": 10}
    choices = {"bidirectional": True} if kind == "birnn" else {"bidirectional": False, "cell": "lstm"}
    return RecurrentEncoderModel(RecurrentEncoderConfig(**{**sizes, **choices, **changes}), seed=seed).eval()


def some_inputs(n_features: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(5)
    if n_features:
        return torch.randn(3, 12, n_features, generator=generator)
    return torch.randint(4, V, (3, 12), generator=generator)


def some_segments() -> Tensor:
    return (torch.arange(12) >= torch.tensor([[7], [2], [12]])).long()


def said(model: EncoderOnly, inputs: Tensor, lengths: Tensor, segments: Tensor) -> list[Tensor]:
    """What the head says of each row, at its real positions where it says something of each."""
    with torch.inference_mode():
        rows = model(inputs, lengths, segments)
    whole = model.head.pools
    return [row if whole else row[:length] for row, length in zip(rows, lengths.tolist(), strict=True)]


def assert_rows_close(found: list[Tensor], expected: list[Tensor]) -> None:
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


every_model = pytest.mark.parametrize("kind", ["bert", "birnn", "lstm"])
every_head = pytest.mark.parametrize("head", list(HEADS))
tokens_or_vectors = pytest.mark.parametrize("n_features", [0, 4], ids=["tokens", "vectors"])


@every_head
@every_model
def test_what_a_head_says(kind: str, head: str) -> None:
    model = make_model(kind, head=head)
    sizes = {"D": WIDTHS[kind], "T": 12, "V": V, "N": 3}
    assert model(some_inputs(), LENGTHS).shape == (3, *(sizes[letter] for letter in HEADS[head]))
    assert model.encode(some_inputs(), LENGTHS).shape == (3, 12, WIDTHS[kind])


@tokens_or_vectors
@every_head
@every_model
def test_padding_changes_nothing(kind: str, head: str, n_features: int) -> None:
    if n_features and head == "words":
        return
    model, inputs, segments = (
        make_model(kind, head=head, n_features=n_features),
        some_inputs(n_features),
        some_segments(),
    )
    others, other_segments = inputs.clone(), segments.clone()
    for row, length in enumerate(LENGTHS.tolist()):
        others[row, length:] = 7
        other_segments[row, length:] = 1
    wider = torch.cat([others, others], dim=1), torch.cat([other_segments, other_segments], dim=1)
    expected = said(model, inputs, LENGTHS, segments)
    assert_rows_close(said(model, others, LENGTHS, other_segments), expected)
    assert_rows_close(said(model, wider[0], LENGTHS, wider[1]), expected)


@tokens_or_vectors
@pytest.mark.parametrize("pooling", POOLINGS)
@every_model
def test_batched_equals_alone(kind: str, pooling: str, n_features: int) -> None:
    if (kind, pooling) == ("lstm", "class"):
        return
    model = make_model(kind, pooling=pooling, n_features=n_features)
    inputs, segments = some_inputs(n_features), some_segments()
    alone = [
        said(model, inputs[[row], :length], LENGTHS[[row]], segments[[row], :length])[0]
        for row, length in enumerate(LENGTHS.tolist())
    ]
    assert_rows_close(said(model, inputs, LENGTHS, segments), alone)


@every_head
@every_model
def test_the_encoders_first_weights_do_not_depend_on_the_head(kind: str, head: str) -> None:
    plain, model = make_model(kind).state_dict(), make_model(kind, head=head).state_dict()
    encoder = {name for name in model if not name.startswith("head.")}
    assert encoder == {name for name in plain if name in encoder}
    assert {name.split(".")[0] for name in plain} <= {"embedding", "encoder", "pooler"}
    assert all(torch.equal(plain[name], model[name]) for name in encoder)
    assert set(plain) - encoder <= {"pooler.dense.weight", "pooler.dense.bias"}
    other = make_model(kind, head=head, seed=2).state_dict()
    assert not torch.equal(model["embedding.tokens.weight"], other["embedding.tokens.weight"])


@every_model
def test_words_are_predicted_with_the_tokens_own_matrix(kind: str) -> None:
    model: Any = make_model(kind, head="words")
    assert model.head.output.weight is model.embedding.tokens.weight
    assert sum(one.numel() for one in model.parameters()) == sum(
        one.numel() for name, one in model.state_dict().items() if name != "head.output.weight"
    )


@every_model
def test_logits_of_a_few_words_are_those_of_all(kind: str) -> None:
    model: Any = make_model(kind, head="words")
    hidden = torch.zeros(3, 12, dtype=torch.bool)
    hidden[0, [2, 5]] = hidden[1, 3] = True
    with torch.inference_mode():
        states = model.encode(some_inputs(), LENGTHS)
        few = model.head.output(model.head.transform(states[hidden]))
        torch.testing.assert_close(few, model(some_inputs(), LENGTHS)[hidden], atol=1e-6, rtol=0)


@every_head
@every_model
def test_every_weight_learns(kind: str, head: str) -> None:
    model = make_model(kind, head=head)
    model(some_inputs(), LENGTHS, some_segments()).square().sum().backward()
    assert [name for name, one in model.named_parameters() if one.grad is None] == []


@every_head
@every_model
def test_saved_and_loaded_it_says_the_same(kind: str, head: str, tmp_path: Path) -> None:
    model, other = make_model(kind, head=head), make_model(kind, head=head, seed=2)
    save(tmp_path / "model.safetensors", model.state_dict())
    other.load_state_dict(load(tmp_path / "model.safetensors"))
    for found, expected in zip(
        said(other, some_inputs(), LENGTHS, some_segments()),
        said(model, some_inputs(), LENGTHS, some_segments()),
        strict=True,
    ):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("patterns", ["encoder.*.weights", "*"])
@every_head
@every_model
def test_who_listens_hears_the_same_numbers(kind: str, head: str, patterns: str) -> None:
    """Attention by the formula and not by the kernel, recurrent cells step by step."""
    model = make_model(kind, head=head)
    quiet = said(model, some_inputs(), LENGTHS, some_segments())
    with recording(model, patterns) as record:
        assert_rows_close(said(model, some_inputs(), LENGTHS, some_segments()), quiet)
    if patterns == "*":
        assert ("pooled" if head == "none" else "logits") in record


@every_model
def test_one_batch_can_be_learned_by_heart(kind: str) -> None:
    model = make_model(kind, head="sequence").train()
    goals = torch.tensor([2, 0, 1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(some_inputs(), LENGTHS), goals)
        loss.backward()
        optimizer.step()
    assert float(loss.detach()) < 0.05


# -- what a config refuses ----------------------------------------------------------------------------------------------

every_config = pytest.mark.parametrize("config", [BertConfig, RecurrentEncoderConfig])


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"head": "sequence"}, "n_outputs"),
        ({"head": "tokens"}, "n_outputs"),
        ({"vocab": 0}, "vocab"),
    ],
)
@every_config
def test_what_a_config_refuses(config: Any, fields: dict[str, Any], name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^model\.{name} must be at least 1, not 0\.\nCorrect model\.{name} "):
        config(**{"vocab": V, **fields})


@every_config
def test_vectors_need_no_vocabulary(config: Any) -> None:
    assert config(vocab=0, n_features=3).n_features == 3


@every_model
def test_vectors_have_no_words(kind: str) -> None:
    with pytest.raises(ConfigError, match="A sequence of vectors has no words that could be predicted"):
        make_model(kind, head="words", vocab=0, n_features=3)
