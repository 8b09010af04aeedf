"""BERT: equal to the reference implementation, and what is its own among encoders."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import BertConfig as ReferenceConfig
from transformers import BertForMaskedLM, BertForSequenceClassification, BertForTokenClassification, BertModel

from regard.errors import ConfigError, DataError
from regard.models.bert import Bert, BertConfig
from regard.parts.taps import recording

SIZES = {"vocab": 40, "n_layers": 3, "n_heads": 4, "d_model": 32, "d_ff": 48, "max_positions": 24}
LENGTHS = torch.tensor([24, 9, 1])


def make_model(**changes: Any) -> Bert:
    """Everything drawn anew: biases and norms begin as zeros and ones, which would hide a mistake."""
    model = Bert(BertConfig(**{**SIZES, "dropout": 0.0, **changes}), seed=1).eval()
    generator = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model


def some_ids() -> Tensor:
    return torch.randint(2, SIZES["vocab"], (3, 24), generator=torch.Generator().manual_seed(5))


def some_segments() -> Tensor:
    """The second text begins at another place of every row."""
    return (torch.arange(24) >= torch.tensor([[10], [4], [24]])).long()


def reference_config(config: BertConfig) -> ReferenceConfig:
    return ReferenceConfig(
        vocab_size=config.vocab,
        hidden_size=config.d_model,
        num_hidden_layers=config.n_layers,
        num_attention_heads=config.n_heads,
        intermediate_size=config.d_ff,
        max_position_embeddings=config.max_positions,
        type_vocab_size=config.n_segments,
        num_labels=max(1, config.n_outputs),
        pad_token_id=0,
    )


def copy_layer(ours: nn.Module, theirs: nn.Module) -> None:
    """Linear layers, embeddings and norms have the same names for what they learn."""
    assert set(dict(ours.named_parameters())) <= {"weight", "bias"}
    theirs.load_state_dict(ours.state_dict())


def copy_backbone(model: Bert, theirs: BertModel) -> BertModel:
    embedding = theirs.embeddings
    copy_layer(model.embedding.tokens, embedding.word_embeddings)
    copy_layer(model.embedding.positions, embedding.position_embeddings)
    copy_layer(model.embedding.segments, embedding.token_type_embeddings)
    copy_layer(model.embedding.norm, embedding.LayerNorm)
    for layer, other in zip(model.encoder, theirs.encoder.layer, strict=True):
        mine: Any = layer
        for name in ("query", "key", "value"):
            copy_layer(getattr(mine.self_attention, name), getattr(other.attention.self, name))
        copy_layer(mine.self_attention.output, other.attention.output.dense)
        copy_layer(mine.self_attention_residual.norm, other.attention.output.LayerNorm)
        copy_layer(mine.feed_forward.up, other.intermediate.dense)
        copy_layer(mine.feed_forward.down, other.output.dense)
        copy_layer(mine.feed_forward_residual.norm, other.output.LayerNorm)
    if theirs.pooler is not None:
        assert model.pooler is not None
        copy_layer(model.pooler.dense, theirs.pooler.dense)
    return theirs.eval()


def inputs_of(segments: Tensor | None) -> dict[str, Tensor]:
    """What the reference wants: a mask in the place of lengths."""
    given = {"input_ids": some_ids(), "attention_mask": (torch.arange(24) < LENGTHS[:, None]).long()}
    return given if segments is None else {**given, "token_type_ids": segments}


def real(states: Tensor) -> Tensor:
    """What stands at real positions: (B, T, …) to (N, …)."""
    return states[torch.arange(states.shape[1]) < LENGTHS[:, None]]


def assert_close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


# -- parity with the reference implementation ---------------------------------------------------------------------------

TEXTS = pytest.mark.parametrize("segments", [None, some_segments()], ids=["one text", "two texts"])


@TEXTS
def test_all_hidden_states_equal_the_references(segments: Tensor | None) -> None:
    model = make_model()
    theirs = copy_backbone(model, BertModel(reference_config(model.config)))
    with torch.inference_mode(), recording(model) as record:
        expected = theirs(**inputs_of(segments), output_hidden_states=True).hidden_states
        states = model.encode(some_ids(), LENGTHS, segments)
    names = ["embedding.output", *(f"encoder.{number}.feed_forward_residual.output" for number in range(3))]
    assert len(expected) == len(names)
    for name, theirs_there in zip(names, expected, strict=True):
        assert_close(real(record[name]), real(theirs_there))
    assert_close(real(states), real(expected[-1]))


@TEXTS
def test_the_pooled_output_equals_the_references(segments: Tensor | None) -> None:
    model = make_model()
    theirs = copy_backbone(model, BertModel(reference_config(model.config)))
    with torch.inference_mode():
        expected = theirs(**inputs_of(segments)).pooler_output
        assert_close(model(some_ids(), LENGTHS, segments), expected)


@TEXTS
def test_masked_word_logits_equal_the_references(segments: Tensor | None) -> None:
    model: Any = make_model(head="words")
    theirs = BertForMaskedLM(reference_config(model.config))
    copy_backbone(model, theirs.bert)
    copy_layer(model.head.dense, theirs.cls.predictions.transform.dense)
    copy_layer(model.head.norm, theirs.cls.predictions.transform.LayerNorm)
    copy_layer(model.head.output, theirs.cls.predictions.decoder)
    with torch.inference_mode():
        expected = theirs.eval()(**inputs_of(segments)).logits
        assert_close(real(model(some_ids(), LENGTHS, segments)), real(expected))


@pytest.mark.parametrize(
    ("head", "reference"), [("sequence", BertForSequenceClassification), ("tokens", BertForTokenClassification)]
)
def test_labels_equal_the_references(head: str, reference: Any) -> None:
    model: Any = make_model(head=head, n_outputs=3)
    theirs = reference(reference_config(model.config))
    copy_backbone(model, theirs.bert)
    copy_layer(model.head.output, theirs.classifier)
    with torch.inference_mode():
        expected = theirs.eval()(**inputs_of(some_segments())).logits
        found = model(some_ids(), LENGTHS, some_segments())
    assert_close(found, expected) if head == "sequence" else assert_close(real(found), real(expected))


# -- what is its own ----------------------------------------------------------------------------------------------------


def test_without_segments_all_belong_to_the_first_text() -> None:
    model = make_model()
    with torch.inference_mode():
        found = model(some_ids(), LENGTHS)
        assert torch.equal(found, model(some_ids(), LENGTHS, torch.zeros(3, 24, dtype=torch.long)))
        assert not torch.allclose(found, model(some_ids(), LENGTHS, some_segments()), atol=1e-3)


def test_segments_are_not_waited_for() -> None:
    # On `meta`, tensors have a shape and no content: whoever looks at them is told so.
    ids, lengths, segments = (tensor.to("meta") for tensor in (some_ids(), LENGTHS, some_segments()))
    assert make_model().to("meta")(ids, lengths, segments).shape == (3, SIZES["d_model"])


def test_only_the_class_token_goes_through_the_pooler() -> None:
    states = torch.randn(3, 24, SIZES["d_model"])
    model = make_model()
    assert model.pooler is not None
    assert torch.equal(model.pooled(states, LENGTHS), model.pooler(states[:, 0]))
    assert make_model(head="sequence", n_outputs=2).pooler is not None
    for head in ("words", "tokens"):
        model = make_model(head=head, n_outputs=2)
        assert model.pooler is None
        assert torch.equal(model.pooled(states, LENGTHS), states[:, 0])
    for pooling in ("mean", "last"):
        assert make_model(pooling=pooling).pooler is None


@pytest.mark.parametrize("changes", [{}, {"head": "words"}, {"head": "sequence", "n_outputs": 2}, {"n_features": 3}])
def test_first_weights_are_drawn_from_one_narrow_normal_distribution(changes: dict[str, Any]) -> None:
    model = Bert(BertConfig(**{**SIZES, "d_model": 64, "d_ff": 128, **changes}), seed=1)
    matrices = {name: weight for name, weight in model.state_dict().items() if weight.dim() == 2}
    # Devlin et al.'s code: 0.02 for every matrix; of the smallest ones the sample says little.
    assert all(abs(float(one.std()) - 0.02) < 0.002 for one in matrices.values() if one.numel() > 1000)
    assert all(0 < float(one.abs().max()) < 0.1 for one in matrices.values())
    for name, weight in model.state_dict().items():
        if weight.dim() == 1:
            assert torch.equal(weight, (torch.ones_like if "norm.weight" in name else torch.zeros_like)(weight))


def test_taps_are_named_by_their_place() -> None:
    model = make_model(head="words")
    with recording(model) as record, torch.inference_mode():
        model(some_ids(), LENGTHS, some_segments())
    attention = {"query", "key", "value", "scores", "weights", "heads", "output"}
    layer = {f"self_attention.{name}" for name in attention} | {"feed_forward.hidden", "feed_forward.output"}
    layer |= {"self_attention_residual.output", "feed_forward_residual.output"}
    expected = {f"encoder.{number}.{name}" for number in range(3) for name in layer}
    expected |= {f"embedding.{name}" for name in ("tokens", "positions", "segments", "sum", "output")}
    assert set(record) == expected | {"logits"}
    assert record["encoder.2.self_attention.weights"].shape == (3, 4, 24, 24)
    assert record["encoder.0.feed_forward.hidden"].shape == (3, 24, 48)
    assert record["embedding.segments"].shape == record["embedding.sum"].shape == (3, 24, 32)
    assert record["logits"].shape == (3, 24, 40)
    together = record["embedding.tokens"] + record["embedding.positions"] + record["embedding.segments"]
    torch.testing.assert_close(record["embedding.sum"], together)


def test_nobody_attends_to_padding() -> None:
    model = make_model()
    with recording(model, "encoder.*.weights") as record, torch.inference_mode():
        model(some_ids(), LENGTHS)
    for weights in record.values():
        assert not weights[1, :, :, 9:].any()
        torch.testing.assert_close(weights.sum(-1), torch.ones(3, 4, 24))


def test_the_sum_of_a_text_may_be_dropped() -> None:
    model = Bert(BertConfig(**{**SIZES, "dropout": 0.5}))
    with recording(model, "embedding.output") as record, torch.no_grad():
        embedded = model.embedding(some_ids(), None)
    zeros = embedded == 0
    assert 0.4 < float(zeros.float().mean()) < 0.6
    torch.testing.assert_close(embedded[~zeros], 2 * record["embedding.output"][~zeros])


def test_a_sequence_beyond_the_positions_is_refused() -> None:
    model = make_model()
    assert model.max_length == 24
    with pytest.raises(DataError, match="A sequence of 25 tokens is longer than the 24 learned positions"):
        model(torch.ones(1, 25, dtype=torch.long), torch.tensor([25]))


def test_a_third_text_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        make_model()(some_ids(), LENGTHS, torch.full((3, 24), 2))
    assert str(caught.value) == (
        "A sequence of 3 texts is more than the 2 segments of the model.\n"
        "Give fewer texts, or train a model with more of model.n_segments."
    )


def test_heads_share_the_width_among_them() -> None:
    with pytest.raises(ConfigError, match="A width of 32 cannot be divided among 5 heads"):
        make_model(n_heads=5)
