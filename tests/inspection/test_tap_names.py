"""Names of taps: every one of our models has a phrase, and modules of the same tap are told apart."""

import pytest

from regard.inspection.tap_names import PHRASES, tap_phrase


@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("logits", "a number for each output, before the softmax"),
        ("decoder.2.cross_attention.weights", "attention weights, after mask and softmax"),
        ("decoder.attention.query", "what the state gives to the scores"),
        ("decoder.2.self_attention.query", "queries by head"),
        ("decoder.2.self_attention_residual.output", "the residual stream after it"),
        ("text.decoder.output", "tanh(W[state; context])"),
        ("encoder.layers.1.states", "the layer's states"),
        ("image.states", "what was found at each place"),
        ("stage.0.block.1.shortcut.features", "feature maps of the skip's projection"),
        ("source_embedding.sum", "all of them together"),
        ("encoder.layers.0.forwards.sum", "W[a; x] + b, before the activation"),
    ],
)
def test_a_phrase_by_kind_of_module_and_tap(name: str, phrase: str) -> None:
    assert tap_phrase(name) == phrase


def test_a_tap_of_the_users_own_has_none() -> None:
    assert tap_phrase("mine.whatever") == ""


def test_no_phrase_is_out_of_reach() -> None:
    """A pattern that an earlier one hides would never be shown."""
    hidden = [pattern for pattern, about in PHRASES.items() if tap_phrase(pattern.replace("*", "x")) != about]
    assert not hidden
