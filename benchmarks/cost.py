"""What a layer costs by the length of the sequence: the lectures' table, measured.

Self-attention (fused, and by the formula), within a window of r, recurrent (a GRU), convolution of k neighbours;
d = 128 features, one sequence of n from 64 to 4,096. For each:

time       forward and backward, by the clock
memory     what the forward pass keeps for the backward pass
steps      the longest chain of operations of which each needs the one before: what no machine can do at once
path       through how many layers the first position reaches the last, by the gradient; of a recurrence its n steps

The last column of the table is the exponent of n between the two longest sequences: 1 for a cost that grows in
proportion, 2 for one that grows with the square. (The lectures' log n path of convolutions takes dilated ones, which skip.)
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from benchmarks.rounds import BUILD, options, report, table, tell, threads_of
from torch import Tensor, nn

from regard import runtime
from regard.inspection.render import RUN_COLOURS, save
from regard.parts.attention import MultiHeadAttention
from regard.parts.convolution import Convolution
from regard.parts.initialisation import initialise
from regard.parts.masks import Mask
from regard.parts.recurrent import RecurrentEncoder
from regard.parts.taps import recording

WIDTH, HEADS, WINDOW, NEIGHBOURS = 128, 4, 32, 7
LENGTHS = tuple(2**power for power in range(6, 13))
COUNTED = 256  # the longest sequence whose operations are counted one by one


@dataclass(frozen=True)
class Layer:
    """One kind of layer: (1, n, D) to (1, n, D); `run_openly` does it so that each of its operations can be counted."""

    name: str
    module: nn.Module
    run: Callable[[Tensor], Tensor]
    run_openly: Callable[[Tensor], Tensor]


def main() -> None:
    arguments = options("What layers cost by the length of the sequence.", rounds=7).parse_args()
    runtime.keep_freed_memory()
    torch.set_num_threads(threads_of(arguments))
    torch.manual_seed(1)
    lengths = LENGTHS[:3] if arguments.quick else LENGTHS
    n_rounds = 1 if arguments.quick else arguments.rounds
    found: dict[str, dict[str, list[float]]] = {}
    for length in lengths:
        tell(f"{length:,} positions")
        layers = make_layers()
        seconds = measure(layers, length, n_rounds)
        for layer in layers:
            own = found.setdefault(layer.name, {"time": [], "memory": [], "steps": [], "path": []})
            own["time"].append(1000 * seconds[layer.name])
            own["memory"].append(kept_bytes(layer, length) / 2**20)
            own["steps"].append(
                sequential_steps(layer, min(length, COUNTED)) * max(1, length / COUNTED) ** grows(layer)
            )
            own["path"].append(path_length(layer, length))
    rows = [row for name, own in found.items() for row in rows_of(name, own, lengths)]
    header = ["", "", *(f"{length:,}" for length in lengths), "grows as"]
    title = (
        f"A layer of width {WIDTH}, {HEADS} heads, window {WINDOW}, {NEIGHBOURS} neighbours; one sequence, "
        f"{torch.get_num_threads()} threads, medians of {n_rounds} rounds."
    )
    picture = save(draw(found, lengths), BUILD / ("cost-quick.png" if arguments.quick else "cost.png"))
    text = f"{title}\n\n{table(header, rows)}\n\npicture: {picture}"
    report("cost", text, {"lengths": lengths, "layers": found}, quick=arguments.quick)


def make_layers() -> list[Layer]:
    """The kinds of layers, all of one width."""
    attention, recurrent = MultiHeadAttention(WIDTH, HEADS), RecurrentEncoder("gru", WIDTH, WIDTH)
    convolution = Convolution(WIDTH, NEIGHBOURS, causal=False)
    for module in (attention, recurrent, convolution):
        initialise(module, 1)

    def attend(mask: Mask) -> Callable[[Tensor], Tensor]:
        return lambda x: attention(x, x, mask)

    def openly(module: nn.Module, run: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        def listened(x: Tensor) -> Tensor:
            with recording(module, ["weights", "*.state"]):
                return run(x)

        return listened

    everywhere, near = attend(Mask()), attend(Mask(window=WINDOW))

    def recur(x: Tensor) -> Tensor:
        states: Tensor = recurrent(x)[0]
        return states

    return [
        Layer("self-attention", attention, everywhere, everywhere),
        Layer("by the formula", attention, openly(attention, everywhere), openly(attention, everywhere)),
        Layer("within a window", attention, near, near),
        Layer("recurrent", recurrent, recur, openly(recurrent, recur)),
        Layer("convolution", convolution, convolution, convolution),
    ]


def grows(layer: Layer) -> int:
    """How the steps grow beyond what is counted: only those of a recurrence do, in proportion."""
    few, many = (sequential_steps(layer, length) for length in (COUNTED // 4, COUNTED // 2))
    return round(math.log2(many / few))


def measure(layers: list[Layer], length: int, n_rounds: int) -> dict[str, float]:
    """Time all layers in turns, forward and backward; medians, in seconds."""
    seconds: dict[str, list[float]] = {layer.name: [] for layer in layers}
    x, gradient = torch.randn(1, length, WIDTH, requires_grad=True), torch.randn(1, length, WIDTH)
    for number in range(n_rounds + 1):
        for layer in layers:
            began = time.perf_counter()
            layer.run(x).backward(gradient)
            if number:
                seconds[layer.name].append(time.perf_counter() - began)
    return {name: median(times) for name, times in seconds.items()}


def kept_bytes(layer: Layer, length: int) -> int:
    """What the forward pass keeps for the backward pass, each piece of memory once; weights are not counted."""
    kept: dict[int, int] = {}
    own = {parameter.untyped_storage().data_ptr() for parameter in layer.module.parameters()}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = layer.run(torch.randn(1, length, WIDTH, requires_grad=True))
    assert output.requires_grad  # its graph, and with it what is kept, must live until here
    return sum(kept.values())


def sequential_steps(layer: Layer, length: int) -> int:
    """The longest chain in the graph that the backward pass would walk."""
    output = layer.run_openly(torch.randn(1, length, WIDTH, requires_grad=True))
    depths: dict[Any, int] = {}
    waiting = [output.grad_fn]
    while waiting:
        node = waiting[-1]
        before = [one for one, _ in node.next_functions if one is not None] if node is not None else []
        missing = [one for one in before if one not in depths]
        if missing:
            waiting += missing
        else:
            depths[waiting.pop()] = 1 + max((depths[one] for one in before), default=0)
    return depths[output.grad_fn]


def path_length(layer: Layer, length: int) -> int:
    """How many layers the first position needs to reach the last; of a recurrence, how many steps inside its one layer."""
    if isinstance(layer.module, RecurrentEncoder):
        return length
    x = torch.randn(1, length, WIDTH, requires_grad=True)
    [gradient] = torch.autograd.grad(layer.run(x)[0, -1].sum(), x)
    first = int(gradient[0].abs().sum(-1).nonzero().min())  # the first position that the last one sees
    return math.ceil((length - 1) / (length - 1 - first))


def rows_of(name: str, own: dict[str, list[float]], lengths: tuple[int, ...]) -> list[list[str]]:
    shown = {"time": "ms", "memory": "MB kept", "steps": "steps", "path": "path"}
    rows = []
    for key, label in shown.items():
        values = own[key]
        exponent = math.log2(values[-1] / values[-2]) / math.log2(lengths[-1] / lengths[-2])
        digits = 0 if key in ("steps", "path") else 2
        cells = [f"{value:,.{digits}f}" for value in values]
        rows.append([name if key == "time" else "", label, *cells, f"n^{exponent:.1f}"])
    return rows


def draw(found: dict[str, dict[str, list[float]]], lengths: tuple[int, ...]) -> Any:
    """Time and memory by length, both on logarithmic scales."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    for axes, key, label in zip(
        figure.subplots(1, 2),
        ("time", "memory"),
        ("forward and backward, ms", "kept for the backward pass, MB"),
        strict=True,
    ):
        for colour, (name, own) in zip(RUN_COLOURS, found.items(), strict=False):
            axes.plot(lengths, own[key], marker="o", markersize=4, color=colour, label=name)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("positions")
        axes.set_ylabel(label)
        axes.grid(visible=True, alpha=0.3)
    axes.legend(frameon=False)
    return figure


if __name__ == "__main__":
    main()
