"""Which weights of two models match: by name and shape, but for other tokens and another head."""

import torch
from torch import Tensor, nn

from regard.config import ModelTable
from regard.models.presets import build_model, model_config
from regard.training.weight_match import head_path, match_weights, token_weights
from regard.training.weight_report import grouped


def shapes(**sizes: int) -> dict[str, Tensor]:
    return {name.replace("_", "."): torch.zeros(size) for name, size in sizes.items()}


def test_what_matches_has_the_name_and_the_shape() -> None:
    found = match_weights(shapes(a=2, b=2, c=3, head_x=1), shapes(a=2, b=4, d=3, head_x=1))
    assert found.loaded == {"a": "a", "head.x": "head.x"}
    assert found.new == ("c",)
    assert found.reshaped == {"b": ((4,), (2,))}
    assert found.skipped == ("d",)


def test_a_head_for_something_else_is_not_looked_at() -> None:
    found = match_weights(shapes(a=2, head_x=1, head_y=3), shapes(a=2, head_x=1, head_y=5), without="head")
    assert (found.loaded, found.new, found.reshaped) == ({"a": "a"}, ("head.x", "head.y"), {})
    assert found.skipped == ("head.x", "head.y")


def test_a_head_is_found_by_its_attribute() -> None:
    fields = {"vocab": 20, "n_layers": 1, "d_model": 8, "n_heads": 2, "d_ff": 8}
    bert = build_model(model_config(ModelTable(preset="bert-tiny", fields=fields), origin="test"))
    assert head_path(bert) == "head"
    assert head_path(nn.Linear(2, 2)) is None


def test_rows_of_other_tokens_are_not_loaded_though_they_match() -> None:
    found = match_weights(shapes(a=2, tokens=5), shapes(a=2, tokens=5), of_tokens={"tokens"})
    assert (found.loaded, found.new, found.skipped) == ({"a": "a"}, ("tokens",), ("tokens",))
    resized = match_weights(shapes(tokens=5), shapes(tokens=6), of_tokens={"tokens"})
    assert resized.reshaped == {"tokens": ((6,), (5,))}, "both shapes are told where they differ"


def test_tied_weights_count_once() -> None:
    shared, other = torch.zeros(3), torch.ones(3)
    tied = {"embedding": shared, "output": shared}
    assert match_weights(tied, {"embedding": other, "output": torch.zeros(3)}).loaded == {"embedding": "embedding"}
    assert match_weights(tied, {"embedding": other, "output": torch.zeros(3)}).skipped == ("output",)
    theirs = match_weights({"output": torch.zeros(3)}, tied)
    assert (theirs.loaded, theirs.skipped) == ({"output": "output"}, ())
    assert match_weights(tied, {"output": other}).loaded == {"embedding": "output"}, "any of its names will do"


def test_an_encoder_keeps_all_but_its_head() -> None:
    fields = {"vocab": 20, "n_layers": 2, "d_model": 8, "n_heads": 2, "d_ff": 8}
    masked, classified = (
        build_model(model_config(ModelTable(preset="bert-tiny", fields={**fields, **head}), origin="test"))
        for head in ({"head": "words"}, {"head": "sequence", "n_outputs": 3})
    )
    found = match_weights(classified.state_dict(), masked.state_dict(), without="head")
    assert grouped(found.loaded) == "embedding.… (5 tensors), encoder.0…encoder.1 (32 tensors)"
    assert sorted(found.new) == ["head.output.bias", "head.output.weight", "pooler.dense.bias", "pooler.dense.weight"]
    assert (grouped(found.skipped), found.reshaped) == ("head.… (5 tensors)", {})
    assert token_weights(masked) == {"embedding.tokens.weight", "head.output.weight", "head.output.bias"}
