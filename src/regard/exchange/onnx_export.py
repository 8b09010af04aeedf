"""Export to ONNX: a folder with the graphs of a network, its tokenizers, and a Python file that runs them without torch.

model.onnx                             encoders, and networks over images
encoder.onnx, first.onnx, next.onnx    encoder-decoder: the source, the first step, each further step
first.onnx, next.onnx                  decoder-only
weights.data                           what several graphs share
config.json, tokenizer.json, run.py    how texts become ids, and the loop (onnx_runtime.py)
"""

from pathlib import Path

from torch import nn

from regard.errors import ConfigError
from regard.exchange.exportable import Exportable
from regard.exchange.onnx_config import describe
from regard.exchange.onnx_decoders import encoder_graph, first_graph, next_graph
from regard.exchange.onnx_encoders import encoder_only_graph
from regard.exchange.onnx_graph import Graph, WeightFile, import_onnx
from regard.exchange.onnx_images import image_graph
from regard.models.bert import Bert
from regard.models.convnet import ConvNet
from regard.models.decoder_only import DecoderOnly
from regard.models.presets import build_model
from regard.models.recurrent_encoder import RecurrentEncoderModel
from regard.models.resnet import ResNet
from regard.models.t5 import T5
from regard.models.transformer import Transformer
from regard.models.vit import ViT
from regard.runs.disk import as_json, write_synced

WEIGHTS, CONFIG, CARD, PROGRAM = "weights.data", "config.json", "README.md", "run.py"
# The method of run.py for each task; all others predict.
_METHODS = {"translate": "translate", "language": "generate", "denoise": "embed"}
_NOTES = {
    "translate": "run.py reads each text as one sentence, and does not split long ones.",
    "denoise": "run.py embeds texts with this network, and does not fill their blanks.",
}
_INPUTS = {
    "translate": '"A dog runs."',
    "language": '"Once upon a time"',
    "mask": '"The [MASK] barks."',
    "image": "image",
}


def write_onnx(folder: Path, given: Exportable) -> list[str]:
    """Write the network of a run as ONNX graphs into `folder`, which exists and is empty; return what there is to note.

    ConfigError for a network that has no graph; MissingExtraError where the onnx package is not installed.
    """
    import_onnx()
    model = build_model(given.config)
    model.load_state_dict(dict(given.weights))
    graphs = _graphs(model.eval(), given)
    weights = WeightFile(folder / WEIGHTS) if len(graphs) > 1 else None
    for name, graph in graphs.items():
        graph.save(folder / f"{name}.onnx", weights)
    config, files = describe(model, given)
    files[CONFIG] = as_json({"graphs": list(graphs), **config}, indent=1).decode() + "\n"
    files[CARD] = f"{given.card}\n{_instructions(given)}"
    files[PROGRAM] = Path(__file__).with_name("onnx_runtime.py").read_text(encoding="utf-8")
    for name, text in files.items():
        write_synced(folder / name, text.encode())
    return [_NOTES[given.task]] if given.task in _NOTES else []


def _graphs(model: nn.Module, given: Exportable) -> dict[str, Graph]:
    """The graphs of a network by their names, in the order in which they run."""
    if isinstance(model, Transformer | T5):
        return {"encoder": encoder_graph(model), "first": first_graph(model), "next": next_graph(model)}
    if isinstance(model, DecoderOnly):
        return {"first": first_graph(model), "next": next_graph(model)}
    if isinstance(model, Bert | RecurrentEncoderModel):
        return {"model": encoder_only_graph(model, end_id=None if given.source is None else given.source.end_id)}
    if isinstance(model, ViT | ResNet | ConvNet):
        return {"model": image_graph(model)}
    kind = "captioner" if given.task == "caption" else "recurrent translator"
    raise ConfigError(
        f"A {kind} cannot be exported to ONNX: there is no graph for its decoder.",
        "Export its weights alone (--to safetensors), or train another model.",
    )


def _instructions(given: Exportable) -> str:
    """What the card says of the folder's use."""
    image = given.image
    lines = [
        "## Use it with ONNX Runtime",
        "",
        "    pip install numpy tokenizers onnxruntime",
        "",
        "```python",
        "from run import load",
        "",
        'model = load(".")',
        f"print(model.{_METHODS.get(given.task, 'predict')}([{_INPUTS.get(given.task, _anything(given))}]))",
        "```",
    ]
    if image is not None:
        shape = image.size, image.size, len(image.mean)
        lines += ["", f"An image is an array of bytes of the shape {shape}: the square in its middle, scaled."]
    return "\n".join([*lines, ""])


def _anything(given: Exportable) -> str:
    """An input of a network over texts, or over sequences of vectors (T, F)."""
    return '"A dog runs."' if given.source is not None else "vectors"
