"""AdamW: what decays, what is saved, and that a restored one goes on as if nothing had happened."""

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
        optimizer.update(0.01)


def test_weight_decay_touches_matrices_only() -> None:
    model = network()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer = Optimizer(model, TrainingConfig(weight_decay=0.1))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.update(0.5)
    after = dict(model.named_parameters())
    # Decoupled decay: w (1 - rate × decay); without a gradient nothing else moves.
    torch.testing.assert_close(after["0.weight"].detach(), before["0.weight"] * (1 - 0.5 * 0.1))
    for name in ("0.bias", "1.weight", "1.bias"):
        assert torch.equal(after[name], before[name])


def test_the_first_update_is_adams() -> None:
    model = nn.Linear(2, 1, bias=False)
    before = model.weight.detach().clone()
    model.weight.grad = torch.tensor([[0.3, -2.0]])
    config = TrainingConfig(beta1=0.8, beta2=0.9, epsilon=0.1)
    Optimizer(model, config).update(0.01)
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
    assert caught.value.remedy == "Resume with the model that wrote the checkpoint."


def test_a_factor_is_on_the_rate_of_its_parameters_alone() -> None:
    config = TrainingConfig(weight_decay=0.1)
    models = [network() for _ in range(3)]
    given: tuple[dict[str, float], ...] = ({}, {"0.weight": 0.25}, {})
    optimizers = [Optimizer(model, config, lr_factors=factors) for model, factors in zip(models, given, strict=True)]
    for model, optimizer, rate in zip(models, optimizers, (0.02, 0.02, 0.005), strict=True):
        model(torch.ones(2, 4)).pow(2).sum().backward()
        optimizer.update(rate)
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
