"""Class weights: all classes count the same, and only where there are classes."""

import torch

from regard.config import RunConfig, TrainingConfig
from regard.tasks.labelling.class_weights import (
    balanced_weights,
    class_weights,
    weighed,
    weight_facts,
    weight_signature,
)

BALANCED = TrainingConfig(class_weights="balanced")


def test_balanced_weights_let_all_classes_count_the_same() -> None:
    weights = balanced_weights((30, 10))
    assert weights == [40 / 60, 40 / 20]
    assert 30 * weights[0] == 10 * weights[1] == 20
    assert balanced_weights((5, 0, 5)) == [1, 5, 1]


def test_losses_are_weighed_by_their_class_or_by_shares_of_classes() -> None:
    losses, weights = torch.tensor([1.0, 2.0]), torch.tensor([0.5, 3.0])
    assert weighed(losses, torch.tensor([0, 1]), None) == (3.0, 2)
    assert weighed(losses, torch.tensor([0, 1]), weights) == (6.5, 3.5)
    shares = torch.tensor([[0.5, 0.5], [0.0, 1.0]])
    assert weighed(losses, shares, weights) == (1.75 + 6, 4.75)


def test_what_is_told_of_weights() -> None:
    weights = class_weights(RunConfig(task="image", training=BALANCED), (30, 10))
    assert weight_facts(weights, ("cat", "dog")) == [("class weights", "balanced, from 0.67 (cat) to 2.00 (dog)")]
    assert weight_signature(weights) == "|class weights:balanced"
    none = class_weights(RunConfig(task="image"), (30, 10))
    assert (none, weight_facts(none, ("cat", "dog")), weight_signature(none)) == (None, [], "")
