"""How the weights of a warm start are listed."""

from regard.training.weight_report import grouped


def test_names_are_listed_by_where_they_belong() -> None:
    layers = [f"encoder.{layer}.{name}" for layer in (0, 1, 2, 5) for name in ("a.weight", "a.bias")]
    names = ["embedding.tokens.weight", *layers, "decoder.layers.0.bias", "head.a", "head.b"]
    assert grouped(names) == (
        "embedding.tokens.weight, encoder.0…encoder.2 (6 tensors), encoder.5.… (2 tensors), decoder.layers.0.bias, "
        "head.… (2 tensors)"
    )
    assert grouped(["a.0.x", "b.1.x"]) == "a.0.x, b.1.x", "layers of two stacks are no range"
