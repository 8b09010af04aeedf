"""`regard models`: the presets and their sizes."""

from collections.abc import Mapping
from typing import Annotated, Any

from cyclopts import Parameter

from regard.cli.options import JsonFlag
from regard.cli.terminal import busy, print_json, print_table, tell
from regard.errors import UsageError


def models(
    *,
    vocab_size: Annotated[int, Parameter(help="count with a shared vocabulary of so many tokens (8000)")] = 8000,
    json: JsonFlag = False,
) -> None:
    """List the models and their numbers of parameters."""
    if vocab_size < 1:
        raise UsageError(f"A vocabulary has at least 1 token, not {vocab_size}.", "Give --vocab-size a larger number.")
    with busy("counting"):
        from regard.models.presets import PRESETS, count_parameters

        counts = {name: count_parameters(preset, vocab_size) for name, preset in PRESETS.items()}
    if json:
        for name, preset in PRESETS.items():
            facts = {"model": name, "tasks": preset.tasks, "parameters": counts[name], "vocab_size": vocab_size}
            print_json({**facts, "fields": dict(preset.fields), "about": preset.about})
        return
    tell(
        f"with a shared vocabulary of {vocab_size:,} tokens, and without the head of a task; of "
        "images with 1,000 classes, and 14 patches to an edge:"
    )
    headings = ["model", "task", "about", "layers", "width", "inner width", "heads", "context", "parameters"]
    rows = [
        [name, ", ".join(preset.tasks), preset.about, *sizes(preset.fields), f"{counts[name]:,}"]
        for name, preset in PRESETS.items()
    ]
    print_table(headings, rows, left=(0, 1, 2))


def sizes(fields: Mapping[str, Any]) -> list[str]:
    """Return a preset's layers, widths, heads and the most tokens it reads at once, empty where it has none."""
    if "decoder" in fields:  # of a captioner
        encoder, decoder = fields["encoder"], fields["decoder"]
        n_layers = encoder.get("n_layers") or 2 * sum(encoder["n_blocks"]) + 1
        return [f"{n_layers}+{decoder['n_layers']}", *sizes(decoder)[1:]]
    if "d_model" not in fields:
        return convolutions(fields)
    layers = f"{fields['n_encoder_layers']}+{fields['n_decoder_layers']}" if "n_encoder_layers" in fields else ""
    inner = fields.get("d_state", fields.get("d_ff", 4 * fields["d_model"]))  # a GPT's is four times its width
    context = fields.get("context", fields.get("max_positions", ""))
    others = (fields["d_model"], inner, fields.get("n_heads", ""), context)
    return [layers or str(fields["n_layers"]), *(f"{one:,}" if one else "" for one in others)]


def convolutions(fields: Mapping[str, Any]) -> list[str]:
    """Return the same of a convolutional network: its layers with weights, and the widths of the first and the last."""
    if "widths" in fields:
        layers, widths = len(fields["widths"]) + 1, fields["widths"]
    else:
        bottleneck = fields.get("block") == "bottleneck"
        layers = (3 if bottleneck else 2) * sum(fields["n_blocks"]) + 2
        widths = [fields.get("width", 16) * 2**stage for stage in range(len(fields["n_blocks"]))]
    return [str(layers), f"{widths[0]} to {widths[-1]}", "", "", ""]
