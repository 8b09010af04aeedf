"""AdamW and Muon: who trains what, what decays, what is saved, and that a restored one goes on as before."""

import pytest
import torch
from torch import nn

from regard.config import TrainingConfig
from regard.errors import CheckpointError
from regard.training.optimizer import Optimizer


def network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3))


def learn(model: nn.Module, optimizer: Optimizer, seeds: range) -> None:
    for seed in seeds:
        optimizer.zero_grad()
        x = torch.randn(5, 4, generator=torch.Generator().manual_seed(seed))
        model(x).pow(2).sum().backward()
        optimizer.update(0.5)


def test_weight_decay_touches_matrices_only() -> None:
    model = network()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer = Optimizer(model, TrainingConfig(learning_rate=0.5, weight_decay=0.1))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.update(1.0)
    after = dict(model.named_parameters())
    # Decoupled decay: w (1 - rate × decay); without a gradient nothing else moves.
    torch.testing.assert_close(after["0.weight"].detach(), before["0.weight"] * (1 - 0.5 * 0.1))
    for name in ("0.bias", "1.weight", "1.bias"):
        assert torch.equal(after[name], before[name])


def test_the_first_update_is_adams() -> None:
    model = nn.Linear(2, 1, bias=False)
    before = model.weight.detach().clone()
    model.weight.grad = torch.tensor([[0.3, -2.0]])
    config = TrainingConfig(learning_rate=0.02, beta1=0.8, beta2=0.9, epsilon=0.1)
    Optimizer(model, config).update(0.5)
    # With corrected moments g and g², the step is rate × g / (|g| + epsilon).
    expected = before - 0.01 * torch.tensor([[0.3 / 0.4, -2.0 / 2.1]])
    torch.testing.assert_close(model.weight.detach(), expected)


def test_a_restored_optimizer_goes_on_with_the_same_bytes() -> None:
    model, config = network(), TrainingConfig(weight_decay=0.01)
    optimizer = Optimizer(model, config)
    learn(model, optimizer, range(3))
    state = {name: tensor.clone() for name, tensor in optimizer.state().items()}
    again = network()
    again.load_state_dict(model.state_dict())
    restored = Optimizer(again, config)
    restored.restore(state)
    learn(model, optimizer, range(3, 6))
    learn(again, restored, range(3, 6))
    assert set(state) == {
        f"{name}.{key}" for name, _ in model.named_parameters() for key in ("exp_avg", "exp_avg_sq", "step")
    }
    for mine, theirs in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    for name, tensor in optimizer.state().items():
        assert torch.equal(tensor, restored.state()[name])


def test_a_fresh_optimizer_has_no_state_and_takes_none() -> None:
    model = network()
    optimizer = Optimizer(model, TrainingConfig())
    assert optimizer.state() == {}
    optimizer.restore({})
    learn(model, optimizer, range(1))
    assert optimizer.state()["0.weight.step"] == 1


def test_frozen_parameters_are_left_alone() -> None:
    model = network()
    model[0].weight.requires_grad_(False)
    before = model[0].weight.clone()
    optimizer = Optimizer(model, TrainingConfig(weight_decay=0.5))
    learn(model, optimizer, range(2))
    assert torch.equal(model[0].weight, before)
    assert not [name for name in optimizer.state() if name.startswith("0.weight")]
    assert len(optimizer.gradients()) == 3


def test_a_state_of_another_shape_is_refused() -> None:
    model = nn.Linear(4, 3)
    optimizer = Optimizer(model, TrainingConfig())
    state = {"weight.step": torch.tensor(1.0), "weight.exp_avg": torch.zeros(3, 5), "weight.exp_avg_sq": torch.zeros(3)}
    with pytest.raises(CheckpointError) as caught:
        optimizer.restore(state)
    assert caught.value.problem == (
        "The optimizer's weight.exp_avg has the shape (3, 5) (torch.float32), expected (3, 4)."
    )
    assert caught.value.remedy == "Resume with the model and the optimizer that wrote the checkpoint."


def test_a_factor_is_on_the_rate_of_its_parameters_alone() -> None:
    config = TrainingConfig(learning_rate=0.02, weight_decay=0.1)
    models = [network() for _ in range(3)]
    given: tuple[dict[str, float], ...] = ({}, {"0.weight": 0.25}, {})
    optimizers = [Optimizer(model, config, lr_factors=factors) for model, factors in zip(models, given, strict=True)]
    for model, optimizer, share in zip(models, optimizers, (1.0, 1.0, 0.25), strict=True):
        model(torch.ones(2, 4)).pow(2).sum().backward()
        optimizer.update(share)
    plain, factored, slow = (dict(model.named_parameters()) for model in models)
    assert torch.equal(factored["0.weight"], slow["0.weight"]), "a quarter of the rate, and of the decay"
    for name in ("0.bias", "1.weight", "1.bias"):
        assert torch.equal(factored[name], plain[name])
    assert set(optimizers[0].state()) == set(optimizers[1].state())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"other.step": torch.tensor(1.0)},
            "The optimizer's other.step belongs to no parameter that the model trains.",
        ),
        ({"weight.exp_avg": None}, "The optimizer's weight.exp_avg is missing."),
        ({"weight.step": None}, "The optimizer's weight.step is missing."),
        (
            {"weight.step": torch.zeros(5)},
            "The optimizer's weight.step has the shape (5,) (torch.float32), expected ().",
        ),
        (
            {"bias.exp_avg_sq": torch.zeros(3, dtype=torch.int8)},
            "The optimizer's bias.exp_avg_sq has the shape (3,) (torch.int8), expected (3,).",
        ),
    ],
)
def test_a_state_of_another_model_is_refused(change: dict[str, torch.Tensor | None], problem: str) -> None:
    model = nn.Linear(4, 3)
    optimizer = Optimizer(model, TrainingConfig())
    model(torch.ones(2, 4)).sum().backward()
    optimizer.update(0.1)
    state = {name: tensor for name, tensor in {**optimizer.state(), **change}.items() if tensor is not None}
    with pytest.raises(CheckpointError) as caught:
        Optimizer(model, TrainingConfig()).restore(state)
    assert caught.value.problem == problem


class Layered(nn.Module):
    """An embedding, two layers and a head; the second layer has a tensor that no loss reaches."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.embedding = nn.Embedding(6, 4)
        self.layers = nn.ModuleList(
            [nn.Linear(4, 4), nn.ModuleDict({"used": nn.Linear(4, 4), "idle": nn.Linear(4, 2)})]
        )
        self.head = nn.Linear(4, 3)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers[1]["used"](self.layers[0](self.embedding(ids)).tanh()))


MUON = TrainingConfig(optimizer="muon", learning_rate=0.01, muon_learning_rate=0.1, weight_decay=0.01)


def learn_ids(model: nn.Module, optimizer: Optimizer, n_updates: int) -> None:
    for number in range(n_updates):
        optimizer.zero_grad()
        model(torch.arange(6) % (number + 2)).pow(2).sum().backward()
        optimizer.update(1.0)


def test_muon_trains_the_matrices_inside_of_layers_and_adamw_the_rest() -> None:
    optimizer = Optimizer(Layered(), MUON)
    assert optimizer.of_muon == {"layers.0.weight", "layers.1.used.weight", "layers.1.idle.weight"}
    assert Optimizer(Layered(), TrainingConfig()).of_muon == set()


def test_a_restored_muon_goes_on_with_the_same_bytes() -> None:
    model, again = Layered(), Layered()
    optimizer, restored = Optimizer(model, MUON), Optimizer(again, MUON)
    learn_ids(model, optimizer, 3)
    again.load_state_dict(model.state_dict())
    restored.restore({name: tensor.clone() for name, tensor in optimizer.state().items()})
    learn_ids(model, optimizer, 3)
    learn_ids(again, restored, 3)
    assert {name for name in optimizer.state() if name.startswith("layers.1")} == {
        "layers.1.used.weight.momentum_buffer",
        *(f"layers.1.used.bias.{key}" for key in ("exp_avg", "exp_avg_sq", "step")),
    }
    for mine, theirs in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_the_state_of_another_optimizer_is_refused() -> None:
    model = Layered()
    optimizer = Optimizer(model, MUON)
    learn_ids(model, optimizer, 1)
    with pytest.raises(CheckpointError) as caught:
        Optimizer(Layered(), TrainingConfig()).restore(optimizer.state())
    assert caught.value.problem == (
        "The optimizer's layers.0.weight.momentum_buffer belongs to no parameter that the model trains."
    )


def test_muon_keeps_to_the_factor_of_a_parameter() -> None:
    slow, quarter = Layered(), Layered()
    learn_ids(slow, Optimizer(slow, MUON, lr_factors={"layers.0.weight": 0.25}), 1)
    optimizer = Optimizer(quarter, MUON)
    quarter(torch.arange(6) % 2).pow(2).sum().backward()
    optimizer.update(0.25)
    assert torch.equal(slow.layers[0].weight, quarter.layers[0].weight), "a quarter of the rate, and of the decay"
    assert not torch.equal(slow.layers[1]["used"].weight, quarter.layers[1]["used"].weight)
