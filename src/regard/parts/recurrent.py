"""Recurrent networks: Elman, LSTM and GRU cells, a layer of one or both directions, and the stacked encoder.

    a cell      state after x_t  =  f(x_t, state before)                                   one step, by the formula
    a layer     the cell over whole sequences; a second cell may read from the end          states (B, T, D·directions)
    an encoder  layers on top of each other, dropout between them                          the last layer's states

Whole sequences go through torch's own kernels, with our parameters. Who listens to the inside of a cell makes it go
step by step instead; the numbers are the same. Inputs are vectors: embedded tokens, a sensor's rows, a film's frames.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from regard.parts.dropout import Dropout
from regard.parts.taps import listened, tap

# What goes from one step to the next, (B, D) each: the state, and behind it, for an LSTM, its cell.
CellState = tuple[Tensor, ...]


class Cell(nn.Module):
    """What all cells share: one matrix for the input and one for the state, in which the gates lie side by side.

    gates: the names of the gates in the order of their rows, which is that of torch's kernels.
    """

    gates: tuple[str, ...] = ()
    n_tensors = 1  # of a CellState

    def __init__(self, d_input: int, d_state: int) -> None:
        super().__init__()
        n_rows = len(self.gates) * d_state
        self.d_state = d_state
        self.input_weight = nn.Parameter(torch.empty(n_rows, d_input))
        self.state_weight = nn.Parameter(torch.empty(n_rows, d_state))
        self.bias = nn.Parameter(torch.empty(n_rows))

    def first_weights(self, parameter: nn.Parameter, generator: torch.Generator) -> None:
        """Uniform up to 1/√D, as torch has them; biases of zeros."""
        if parameter.dim() == 1:
            parameter.zero_()
        else:
            bound = 1 / math.sqrt(self.d_state)
            nn.init.uniform_(parameter, -bound, bound, generator=generator)

    @property
    def taps(self) -> tuple[str, ...]:
        """What can be listened to at every step."""
        return (*self.gates, "state")

    def rows(self, gate: str) -> slice:
        """Where a gate lies in the matrices and in the bias."""
        start = self.gates.index(gate) * self.d_state
        return slice(start, start + self.d_state)

    def project(self, x: Tensor) -> Tensor:
        """The input's share in every gate, (…, d_input) to (…, gates·D): it needs no state, and so no order."""
        return F.linear(x, self.input_weight, self.bias)

    def step(self, projected: Tensor, state: CellState) -> CellState:
        """One step by the formula: the projected input (B, gates·D) and the state before it, to the state after it."""
        raise NotImplementedError

    def first_state(self, n_rows: int) -> CellState:
        """The state before the first step: zeros."""
        return tuple(self.bias.new_zeros(n_rows, self.d_state) for _ in range(self.n_tensors))

    def read(self, x: Tensor, state: CellState) -> Tensor:
        """Whole sequences from the first to the last vector: (B, T, d_input) to states (B, T, D)."""
        states, _ = read_sequences((self,), x, None, state)
        return tap(self, "states", states)

    def kernel(self, inputs: Sequence[Any], before: Sequence[Any], *options: Any) -> tuple[Tensor, ...]:
        """Torch's own loop over many steps: from vectors, as one tensor or packed as two, and the states before them.

        Returns all states in the shape of the vectors, then the final ones.
        """
        raise NotImplementedError

    def kernel_weights(self) -> tuple[Tensor, ...]:
        """The weights as the kernel wants them. It adds two biases, of which the second is of use to the GRU only."""
        return self.input_weight, self.state_weight, self.bias, torch.zeros_like(self.bias)


class Elman(Cell):
    """a = σ(W[a; x] + b) (Elman 1990), where σ is the hyperbolic tangent."""

    gates = ("sum",)

    def step(self, projected: Tensor, state: CellState) -> CellState:
        total = tap(self, "sum", projected + F.linear(state[0], self.state_weight))
        return (tap(self, "state", self.activation(total)),)

    def activation(self, total: Tensor) -> Tensor:
        """σ, (B, D) to the same."""
        return total.tanh()

    def kernel(self, inputs: Sequence[Any], before: Sequence[Any], *options: Any) -> tuple[Tensor, ...]:
        return torch.rnn_tanh(*inputs, *before, *options)


class ReluElman(Elman):
    """The same, where σ is max(0, ·): a state may grow without end."""

    def activation(self, total: Tensor) -> Tensor:
        return total.relu()

    def kernel(self, inputs: Sequence[Any], before: Sequence[Any], *options: Any) -> tuple[Tensor, ...]:
        return torch.rnn_relu(*inputs, *before, *options)


class SigmoidElman(Elman):
    """The same, where σ is the logistic function: every state lies between 0 and 1.

    Torch has no kernel for it. But σ(z) = (1 + tanh(z / 2)) / 2, and so h = 2a - 1 is the state of a hyperbolic tangent:
    h = tanh((W_a (1 + h) / 2 + W_x x + b) / 2), of which W_a / 4, W_x / 2 and b / 2 + W_a 1 / 4 are the weights.
    """

    def activation(self, total: Tensor) -> Tensor:
        return total.sigmoid()

    def kernel(self, inputs: Sequence[Any], before: Sequence[Any], *options: Any) -> tuple[Tensor, ...]:
        moved = [2 * first - 1 for first in before]
        return tuple((1 + tensor) / 2 for tensor in torch.rnn_tanh(*inputs, *moved, *options))

    def kernel_weights(self) -> tuple[Tensor, ...]:
        input_weight, state_weight, bias, none = super().kernel_weights()
        return input_weight / 2, state_weight / 4, bias / 2 + state_weight.sum(1) / 4, none


class LSTM(Cell):
    """A cell that is kept, added to and read through gates (Hochreiter & Schmidhuber 1997; Gers et al. 2000)."""

    gates = ("input_gate", "forget_gate", "candidate", "output_gate")
    n_tensors = 2

    def first_weights(self, parameter: nn.Parameter, generator: torch.Generator) -> None:
        """The same, with the forget gate open: at σ(0) it would halve what the cell holds at every step.

        So gradients reach far back from the beginning (Gers et al. 2000; Jozefowicz et al. 2015, section 2.2).
        """
        super().first_weights(parameter, generator)
        if parameter is self.bias:
            parameter[self.rows("forget_gate")] = 1.0

    @property
    def taps(self) -> tuple[str, ...]:
        return (*super().taps, "cell")

    def step(self, projected: Tensor, state: CellState) -> CellState:
        before, cell = state
        sums = projected + F.linear(before, self.state_weight)
        input_sum, forget_sum, candidate_sum, output_sum = sums.chunk(4, dim=-1)
        input_gate = tap(self, "input_gate", input_sum.sigmoid())
        forget_gate = tap(self, "forget_gate", forget_sum.sigmoid())
        candidate = tap(self, "candidate", candidate_sum.tanh())
        output_gate = tap(self, "output_gate", output_sum.sigmoid())
        cell = tap(self, "cell", forget_gate * cell + input_gate * candidate)
        return tap(self, "state", output_gate * cell.tanh()), cell

    def kernel(self, inputs: Sequence[Any], before: Sequence[Any], *options: Any) -> tuple[Tensor, ...]:
        both = [before]  # the state and the cell go in as one
        return torch.lstm(*inputs, *both, *options)


class GRU(Cell):
    """Two gates and no cell apart (Cho et al. 2014); the reset gate acts after the product, as in torch and cuDNN.

    state_bias: the candidate's second bias, which the reset gate scales too.
    """

    gates = ("reset_gate", "update_gate", "candidate")

    def __init__(self, d_input: int, d_state: int) -> None:
        super().__init__(d_input, d_state)
        self.state_bias = nn.Parameter(torch.empty(d_state))

    def step(self, projected: Tensor, state: CellState) -> CellState:
        (before,) = state
        n_gates = 2 * self.d_state
        from_state = F.linear(before, self.state_weight)
        gates = (projected[:, :n_gates] + from_state[:, :n_gates]).sigmoid()
        reset_gate = tap(self, "reset_gate", gates[:, : self.d_state])
        update_gate = tap(self, "update_gate", gates[:, self.d_state :])
        remembered = reset_gate * (from_state[:, n_gates:] + self.state_bias)
        candidate = tap(self, "candidate", (projected[:, n_gates:] + remembered).tanh())
        return (tap(self, "state", candidate + update_gate * (before - candidate)),)

    def kernel(self, inputs: Sequence[Any], before: Sequence[Any], *options: Any) -> tuple[Tensor, ...]:
        return torch.gru(*inputs, *before, *options)

    def kernel_weights(self) -> tuple[Tensor, ...]:
        input_weight, state_weight, bias, none = super().kernel_weights()
        return input_weight, state_weight, bias, torch.cat([none[: 2 * self.d_state], self.state_bias])


CELLS: dict[str, type[Cell]] = {
    "elman": Elman,
    "elman-relu": ReluElman,
    "elman-sigmoid": SigmoidElman,
    "lstm": LSTM,
    "gru": GRU,
}


class RecurrentLayer(nn.Module):
    """A cell that reads from the first vector to the last and, if asked for, another that reads from the last back."""

    def __init__(self, kind: str, d_input: int, d_state: int, *, bidirectional: bool) -> None:
        super().__init__()
        self.forwards = CELLS[kind](d_input, d_state)
        self.backwards = CELLS[kind](d_input, d_state) if bidirectional else None

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, CellState]:
        """(B, T, d_input), of (B,) lengths, to states (B, T, D·directions) and the final ones, (B, D·directions) each.

        What stands behind a row's length changes nothing, and its states are zeros. In the final state each direction
        has read the whole row: forwards it is the state at the row's last vector, backwards that at its first.
        """
        cells = (self.forwards,) if self.backwards is None else (self.forwards, self.backwards)
        first = tuple(zero.repeat(1, len(cells)) for zero in self.forwards.first_state(len(x)))
        states, final = read_sequences(cells, x, lengths, first)
        return tap(self, "states", states), final


class RecurrentEncoder(nn.Module):
    """Layers on top of each other, with dropout between them; the whole of a recurrent network but its ends."""

    def __init__(
        self,
        kind: str,
        d_input: int,
        d_state: int,
        *,
        n_layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.d_output = d_state * (2 if bidirectional else 1)
        self.layers = nn.ModuleList(
            RecurrentLayer(kind, d_input if number == 0 else self.d_output, d_state, bidirectional=bidirectional)
            for number in range(n_layers)
        )
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, tuple[CellState, ...]]:
        """(B, T, d_input), of (B,) lengths, to the last layer's states (B, T, D·directions) and each one's final."""
        final: list[CellState] = []
        for layer in cast(Iterable[RecurrentLayer], self.layers):
            x, ended = layer(x if not final else self.dropout(x), lengths)
            final.append(ended)
        return x, tuple(final)


def read_sequences(
    cells: Sequence[Cell], x: Tensor, lengths: Tensor | None, first: CellState
) -> tuple[Tensor, CellState]:
    """Run one cell, or two of which the second goes backwards; see `RecurrentLayer.forward` for the shapes.

    lengths: (B,), each at least 1; None where nothing is padded.
    first: the states before the first step, (B, D·directions) each.
    """
    if any(listened(cell, *cell.taps) for cell in cells):
        return _by_formula(cells, x, lengths, first)
    if x.device.type != "cpu":
        return _by_kernel(cells, x, lengths, first)
    with torch.autocast("cpu", enabled=False):  # in half precision a CPU has no kernel for every cell
        full = cells[0].bias.dtype
        return _by_kernel(cells, x.to(full), lengths, tuple(tensor.to(full) for tensor in first))


def _by_kernel(cells: Sequence[Cell], x: Tensor, lengths: Tensor | None, first: CellState) -> tuple[Tensor, CellState]:
    weights = [weight for cell in cells for weight in cell.kernel_weights()]
    # One layer without dropout; what backward needs is kept only where there will be one.
    options = (weights, True, 1, 0.0, torch.is_grad_enabled(), len(cells) == 2)
    # (B, D·directions) to (directions, B, D)
    before = tuple(tensor.unflatten(1, (len(cells), -1)).transpose(0, 1).contiguous() for tensor in first)
    if lengths is None:
        states, *after = cells[0].kernel((x,), before, *options, True)
    else:
        # Packed, no step is spent on padding, and each row ends, or begins when read backwards, at its own last vector.
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        before = tuple(tensor[:, packed.sorted_indices] for tensor in before)
        data, *after = cells[0].kernel((packed.data, packed.batch_sizes), before, *options)
        after = [tensor[:, packed.unsorted_indices] for tensor in after]
        states, _ = pad_packed_sequence(
            PackedSequence(data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices),
            batch_first=True,
            total_length=x.shape[1],
        )
    return states, tuple(tensor.transpose(0, 1).flatten(1) for tensor in after)


def _by_formula(cells: Sequence[Cell], x: Tensor, lengths: Tensor | None, first: CellState) -> tuple[Tensor, CellState]:
    """The same step by step, for those who listen to the inside of the cells."""
    positions = torch.arange(x.shape[1], device=x.device)
    real = None if lengths is None else (positions < lengths[:, None])[..., None]  # (B, T, 1)
    halves: list[Tensor] = []
    finals: list[CellState] = []
    for number, cell in enumerate(cells):
        projected = cell.project(x)
        state = tuple(tensor.chunk(len(cells), dim=1)[number] for tensor in first)
        states: dict[int, Tensor] = {}
        for position in reversed(range(x.shape[1])) if number else range(x.shape[1]):
            after = cell.step(projected[:, position], state)
            if real is not None:
                after = tuple(torch.where(real[:, position], new, old) for new, old in zip(after, state, strict=True))
            state = after
            states[position] = state[0]
        halves.append(torch.stack([states[position] for position in range(x.shape[1])], dim=1))
        finals.append(state)
    joined = torch.cat(halves, dim=-1)
    final = tuple(torch.cat(parts, dim=1) for parts in zip(*finals, strict=True))
    return joined if real is None else joined.masked_fill(~real, 0.0), final
