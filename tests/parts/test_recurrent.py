"""Recurrent cells: torch's own as witnesses, the formula and the kernel as one, and padding that changes nothing."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.parts.dropout import seeded
from regard.parts.initialisation import initialise
from regard.parts.recurrent import CELLS, GRU, LSTM, Cell, CellState, RecurrentEncoder, RecurrentLayer
from regard.parts.taps import listening, recording

F, D = 5, 4
LENGTHS = torch.tensor([3, 7, 1])
TORCH: dict[str, Any] = {
    "elman": nn.RNN,
    "elman-relu": partial(nn.RNN, nonlinearity="relu"),
    "lstm": nn.LSTM,
    "gru": nn.GRU,
}
every_cell = pytest.mark.parametrize("kind", list(CELLS))
both_ways = pytest.mark.parametrize("bidirectional", [False, True], ids=["forwards", "both"])


def random_weights(module: nn.Module) -> None:
    torch.manual_seed(2)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)  # biases too


def encoder(kind: str, *, n_layers: int = 1, bidirectional: bool = False, dropout: float = 0.0) -> RecurrentEncoder:
    module = RecurrentEncoder(kind, F, D, n_layers=n_layers, bidirectional=bidirectional, dropout=dropout)
    random_weights(module)
    return module


def vectors(*, n_rows: int = 3, length: int = 7) -> Tensor:
    return torch.randn(n_rows, length, F, generator=torch.Generator().manual_seed(1))


def assert_close(first: Tensor, second: Tensor, *, atol: float = 1e-6) -> None:
    torch.testing.assert_close(first, second, atol=atol, rtol=0)


def copy_cell(ours: Cell, theirs: nn.Module, suffix: str) -> None:
    """Give torch's layer our weights; it has a second bias everywhere, where one of ours is enough."""
    second = torch.zeros_like(ours.bias)
    if isinstance(ours, GRU):
        second[ours.rows("candidate")] = ours.state_bias.detach()
    weights = {"weight_ih": ours.input_weight, "weight_hh": ours.state_weight, "bias_ih": ours.bias, "bias_hh": second}
    for name, weight in weights.items():
        getattr(theirs, f"{name}_{suffix}").data = weight.detach().clone()


def reference(ours: RecurrentEncoder, kind: str) -> Any:
    layers: list[Any] = list(ours.layers)
    bidirectional = layers[0].backwards is not None
    theirs = TORCH[kind](F, D, num_layers=len(layers), bidirectional=bidirectional, batch_first=True)
    for number, layer in enumerate(layers):
        copy_cell(layer.forwards, theirs, f"l{number}")
        if bidirectional:
            copy_cell(layer.backwards, theirs, f"l{number}_reverse")
    return theirs


def final_states(ours: tuple[CellState, ...], tensor: int) -> Tensor:
    """Our final states in torch's shape: (layers · directions, B, D)."""
    return torch.cat([state[tensor].unflatten(1, (-1, D)).transpose(0, 1) for state in ours])


# -- parity with torch.nn -----------------------------------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize("n_layers", [1, 3])
@pytest.mark.parametrize("kind", list(TORCH))
def test_it_equals_torchs(kind: str, n_layers: int, bidirectional: bool) -> None:
    ours = encoder(kind, n_layers=n_layers, bidirectional=bidirectional)
    x = vectors()
    expected, expected_final = reference(ours, kind)(x)
    states, final = ours(x)
    assert states.shape == (3, 7, D * (2 if bidirectional else 1))
    assert float(states.detach().std()) > 0.1
    assert_close(states, expected)
    for tensor, theirs in enumerate(expected_final if kind == "lstm" else (expected_final,)):
        assert_close(final_states(final, tensor), theirs)


@every_cell
def test_a_step_is_the_formula(kind: str) -> None:
    cell = CELLS[kind](F, D)
    random_weights(cell)
    x = vectors()
    state = cell.first_state(3)
    states = []
    for position in range(7):
        state = cell.step(cell.project(x[:, position]), state)
        states.append(state[0])
    assert_close(torch.stack(states, dim=1), cell.read(x, cell.first_state(3)))
    assert len(state) == (2 if kind == "lstm" else 1)


@pytest.mark.parametrize(
    ("kind", "activation"),
    [
        ("elman", lambda z: (z.exp() - (-z).exp()) / (z.exp() + (-z).exp())),
        ("elman-relu", lambda z: torch.where(z > 0, z, 0.0)),
        ("elman-sigmoid", lambda z: 1 / (1 + (-z).exp())),
    ],
)
def test_elman_by_hand(kind: str, activation: Callable[[Tensor], Tensor]) -> None:
    """a = σ(W[a; x] + b), with the two halves of W side by side."""
    cell = CELLS[kind](F, D)
    random_weights(cell)
    whole = torch.cat([cell.state_weight, cell.input_weight], dim=1)
    a, states = torch.zeros(D), []
    for x in vectors()[0]:
        a = activation(whole @ torch.cat([a, x]) + cell.bias)
        states.append(a)
    assert_close(cell.read(vectors(), cell.first_state(3))[0], torch.stack(states), atol=1e-5)


@pytest.mark.parametrize("kind", ["elman", "elman-relu", "elman-sigmoid"])
def test_gradients_of_a_kernel_are_those_of_the_formula(kind: str) -> None:
    """Of the weights too: those of the logistic function are made of the kernel's."""
    cell = CELLS[kind](F, D)
    random_weights(cell)
    first = torch.rand(3, D, requires_grad=True)
    wanted = [first, *cell.parameters()]
    by_kernel = torch.autograd.grad(cell.read(vectors(), (first,)).square().sum(), wanted)
    with recording(cell, "sum"):
        by_formula = torch.autograd.grad(cell.read(vectors(), (first,)).square().sum(), wanted)
    for one, other in zip(by_kernel, by_formula, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_reading_may_begin_in_any_state() -> None:
    cell = LSTM(F, D)
    random_weights(cell)
    x = vectors()
    state = cell.first_state(3)
    for position in range(4):
        state = cell.step(cell.project(x[:, position]), state)
    assert_close(cell.read(x[:, 4:], state), cell.read(x, cell.first_state(3))[:, 4:])


# -- padding ------------------------------------------------------------------------------------------------------------


@both_ways
@every_cell
def test_padding_changes_nothing(kind: str, bidirectional: bool) -> None:
    ours = encoder(kind, n_layers=2, bidirectional=bidirectional)
    x = vectors()
    states, final = ours(x, LENGTHS)
    noisy = x.clone()
    noisy[torch.arange(7) >= LENGTHS[:, None]] = 9.0
    longer = torch.cat([noisy, torch.full((3, 2, F), -9.0)], dim=1)
    other, other_final = ours(longer, LENGTHS)
    assert_close(other[:, :7], states)
    assert not other[:, 7:].any()
    for row, length in enumerate(LENGTHS.tolist()):
        alone, alone_final = ours(x[row : row + 1, :length])
        assert_close(states[row, :length], alone[0])
        assert not states[row, length:].any()
        for layer, lonely, with_noise in zip(final, alone_final, other_final, strict=True):
            for tensor, one, another in zip(layer, lonely, with_noise, strict=True):
                assert_close(tensor[row], one[0])
                assert_close(another[row], one[0])


def test_the_final_state_has_read_the_whole_row_in_each_direction() -> None:
    states, final = encoder("gru", bidirectional=True)(vectors(), LENGTHS)
    forwards, backwards = final[0][0].chunk(2, dim=1)
    assert torch.equal(forwards, states[torch.arange(3), LENGTHS - 1, :D])
    assert torch.equal(backwards, states[:, 0, D:])


def test_forwards_nothing_sees_the_future_and_backwards_everything_does() -> None:
    ours = encoder("gru", bidirectional=True)
    changed = vectors()
    changed[:, 4] += 1
    difference = (ours(changed)[0] - ours(vectors())[0]).abs().amax(0)
    forwards, backwards = difference[:, :D].amax(1), difference[:, D:].amax(1)
    assert not forwards[:4].any()
    assert bool((forwards[4:] > 0).all())
    assert not backwards[5:].any()
    assert bool((backwards[:5] > 0).all())


# -- taps: who listens makes a cell go step by step ---------------------------------------------------------------------


@both_ways
@every_cell
def test_the_formula_equals_the_kernel(kind: str, bidirectional: bool) -> None:
    ours = encoder(kind, n_layers=2, bidirectional=bidirectional)
    x = vectors().requires_grad_()
    for lengths in (LENGTHS, None):
        states, final = ours(x, lengths)
        with recording(ours, "*.state") as record:
            open_states, open_final = ours(x, lengths)
        assert len(record) == (4 if bidirectional else 2)
        assert_close(open_states, states)
        for layer, other in itertools.chain(*(zip(*pair, strict=True) for pair in zip(final, open_final, strict=True))):
            assert_close(layer, other)
        gradients = [torch.autograd.grad(out.square().sum(), x)[0] for out in (states, open_states)]
        assert_close(*gradients, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("elman", ["sum", "state"]),
        ("elman-sigmoid", ["sum", "state"]),
        ("lstm", ["input_gate", "forget_gate", "candidate", "output_gate", "cell", "state"]),
        ("gru", ["reset_gate", "update_gate", "candidate", "state"]),
    ],
)
def test_taps_of_a_cell(kind: str, expected: list[str]) -> None:
    layer = RecurrentLayer(kind, F, D, bidirectional=False)
    random_weights(layer)
    with recording(layer) as record:
        states, _ = layer(vectors())
    assert list(record) == [*(f"forwards.{name}" for name in expected), "states"]
    assert all(record[f"forwards.{name}"].shape == (3, D) for name in expected)
    assert_close(torch.stack(record.calls("forwards.state"), dim=1), states)


def test_a_gate_that_is_shut_forgets() -> None:
    layer = RecurrentLayer("lstm", F, D, bidirectional=False)
    random_weights(layer)
    with (
        listening(layer, "forwards.forget_gate", lambda name, gate: torch.zeros_like(gate)),
        recording(layer, "forwards.*") as record,
    ):
        _, (_, cell) = layer(vectors())
    assert_close(cell, record["forwards.input_gate"] * record["forwards.candidate"])
    assert float((cell - layer(vectors())[1][1]).detach().abs().max()) > 0.01


@every_cell
def test_without_a_listener_there_is_no_loop(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    ours = encoder(kind, bidirectional=True)
    monkeypatch.setattr(CELLS[kind], "step", None)
    with recording(ours, "layers.0.states") as record:
        states, _ = ours(vectors(), LENGTHS)
    assert torch.equal(record["layers.0.states"], states)


# -- dropout, first weights, names, complaints --------------------------------------------------------------------------


def test_dropout_stands_between_layers_and_follows_the_seed() -> None:
    ours = encoder("gru", n_layers=2, dropout=0.5)

    def states(seed: int) -> Tensor:
        with seeded(seed):
            out: Tensor = ours(vectors(), LENGTHS)[0]
        return out

    assert torch.equal(states(1), states(1))
    assert not torch.allclose(states(1), states(2), atol=1e-3)
    ours.eval()
    assert torch.equal(states(1), states(2))
    single = encoder("gru", n_layers=1, dropout=0.5)
    assert torch.equal(single(vectors())[0], single.eval()(vectors())[0])


@every_cell
def test_gradients_reach_every_parameter(kind: str) -> None:
    ours = encoder(kind, n_layers=2, bidirectional=True)
    ours(vectors(), LENGTHS)[0].square().sum().backward()
    for name, parameter in ours.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.isfinite().all() and parameter.grad.any()), name


def test_parameters_are_named_by_their_role() -> None:
    names = set(encoder("gru", bidirectional=True).state_dict())
    roles = ("input_weight", "state_weight", "bias", "state_bias")
    assert names == {f"layers.0.{way}.{role}" for way in ("forwards", "backwards") for role in roles}


@torch.no_grad()
def test_the_first_weights_of_cells() -> None:
    cell = LSTM(300, 64)
    initialise(cell, 7)
    assert 0.95 / 8 < float(cell.state_weight.abs().max()) <= 1 / 8
    assert 0.95 / 8 < float(cell.input_weight.abs().max()) <= 1 / 8
    assert bool((cell.bias[cell.rows("forget_gate")] == 1).all())
    assert float(cell.bias.sum()) == 64
    plain = GRU(3, 4)
    initialise(plain, 7)
    assert not plain.bias.any()
    assert not plain.state_bias.any()


def test_where_the_gates_lie() -> None:
    assert LSTM(F, D).rows("candidate") == slice(8, 12)
    assert GRU(F, D).rows("reset_gate") == slice(0, 4)


@every_cell
@both_ways
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["whole", "padded"])
def test_under_autocast_a_cpu_reads_in_full_precision(kind: str, bidirectional: bool, lengths: Tensor | None) -> None:
    module = encoder(kind, n_layers=2, bidirectional=bidirectional)
    x = torch.randn(3, 7, F, requires_grad=True)
    plain, _ = module(x, lengths)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        states, _ = module(x.bfloat16().float(), lengths)
    assert states.dtype == torch.float32
    assert torch.allclose(states, plain, atol=0.05)
    states.sum().backward()
