"""How the weights of a warm start are listed."""

import dataclasses
import tomllib

from regard.config import ModelTable, default_config, from_tables, to_toml
from regard.models.presets import model_config, resolved
from regard.training.weight_report import differing_settings, grouped


def test_names_are_listed_by_where_they_belong() -> None:
    layers = [f"encoder.{layer}.{name}" for layer in (0, 1, 2, 5) for name in ("a.weight", "a.bias")]
    names = ["embedding.tokens.weight", *layers, "decoder.layers.0.bias", "head.a", "head.b"]
    assert grouped(names) == (
        "embedding.tokens.weight, encoder.0…encoder.2 (6 tensors), encoder.5.… (2 tensors), decoder.layers.0.bias, "
        "head.… (2 tensors)"
    )
    assert grouped(["a.0.x", "b.1.x"]) == "a.0.x, b.1.x", "layers of two stacks are no range"


def test_a_list_in_a_file_does_not_differ_from_the_presets_own() -> None:
    preset = ModelTable(preset="resnet-20", fields={"n_blocks": [2, 1], "width": 8})
    sizes = model_config(preset, origin="test", n_channels=3, n_outputs=2)
    own = resolved(preset, sizes)
    kept = from_tables(
        tomllib.loads(to_toml(dataclasses.replace(default_config("image"), model=own))), origin="test"
    ).model
    assert differing_settings(kept, own) == ()
    other = ModelTable(preset="resnet-20", fields={**kept.fields, "n_blocks": [2, 2]})
    assert differing_settings(other, own) == (("settings differ", "n_blocks [2, 2] there, [2, 1] here"),)
