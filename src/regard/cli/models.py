"""`regard models`: the presets and their sizes."""

from collections.abc import Mapping
from typing import Annotated, Any

from cyclopts import Parameter

from regard.cli.options import MOST_VOCABULARY, JsonFlag, check_number
from regard.cli.terminal import busy, print_json, print_table, tell
from regard.tasks.spec import find_spec


def models(
    task: Annotated[str, Parameter(help="only the models that support this task")] = "",
    /,
    *,
    vocab_size: Annotated[int, Parameter(help="size of the shared vocabulary to count with (8000)")] = 8000,
    json: JsonFlag = False,
) -> None:
    """List the models (presets) and their numbers of parameters."""
    check_number("--vocab-size", vocab_size, most=MOST_VOCABULARY)
    if task:
        find_spec(task)
    with busy("counting"):
        from regard.models.presets import PRESETS, count_parameters, presets_for

        shown = presets_for(task) if task else list(PRESETS.values())
        counts = {preset.name: count_parameters(preset, vocab_size) for preset in shown}
    if json:
        for preset in shown:
            facts = {"model": preset.name, "tasks": preset.tasks, "parameters": counts[preset.name]}
            fields = {"vocab_size": vocab_size, "fields": dict(preset.fields)}
            print_json({**facts, **fields, "about": preset.about})
        return
    tell(
        f"parameters with a shared vocabulary of {vocab_size:,} tokens and without task heads; of image models with 1,000 "
        "classes and 14 × 14 patches:"
    )
    headings = ["model", "task", "about", "layers", "d_model", "d_ff", "heads", "context", "parameters"]
    rows = [
        [preset.name, ", ".join(preset.tasks), preset.about, *sizes(preset.fields), f"{counts[preset.name]:,}"]
        for preset in shown
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
