"""Word vectors that others have learned, in the embedding of a model of any task."""

from pathlib import Path

import pytest
import torch
from torch import nn

from regard.config import RunConfig, TokenizerConfig, TrainingConfig
from regard.data.text.tokenizer_training import learn
from regard.errors import ConfigError
from regard.tasks.word_vectors import WordVectors


@pytest.fixture
def vectors(tmp_path: Path) -> WordVectors:
    """Vectors of four features for one of three words."""
    path = tmp_path / "vectors.txt"
    path.write_text("1 4\ndog 1 2 3 4\n")
    return WordVectors.read(str(path), learn(["the dog runs"], kind="words", vocab_size=20))


class Network(nn.Module):
    """Something that has words, under a name of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(7, 4)


def config(*, freeze: bool, weight_decay: float) -> RunConfig:
    return RunConfig(
        task="any",
        tokenizer=TokenizerConfig(freeze_vectors=freeze),
        training=TrainingConfig(weight_decay=weight_decay),
    )


def test_they_are_put_in_by_the_name_of_the_weight(vectors: WordVectors) -> None:
    network = Network()
    vectors.put_into(network, "words.weight", config(freeze=False, weight_decay=0.1))
    assert network.words.weight[vectors.ids[0]].tolist() == [1, 2, 3, 4]
    assert vectors.about("words") == f"1 of 7 words, from {vectors.path}"


def test_frozen_ones_get_no_gradient(vectors: WordVectors) -> None:
    network = Network()
    vectors.put_into(network, "words.weight", config(freeze=True, weight_decay=0.0))
    network.words(torch.arange(7)).sum().backward()
    gradient = network.words.weight.grad
    assert gradient is not None
    assert [bool(row.any()) for row in gradient] == [id != vectors.ids[0] for id in range(7)]


def test_frozen_vectors_and_weight_decay_exclude_each_other(vectors: WordVectors) -> None:
    with pytest.raises(ConfigError) as caught:
        vectors.put_into(Network(), "words.weight", config(freeze=True, weight_decay=0.1))
    assert str(caught.value) == (
        "Weight decay would shrink the vectors that tokenizer.freeze_vectors keeps as they are.\n"
        "Set training.weight_decay = 0, or let the vectors be tuned."
    )


def test_a_network_without_such_an_embedding_is_told(vectors: WordVectors) -> None:
    with pytest.raises(ConfigError) as caught:
        vectors.put_into(Network(), "embedding.tokens.weight", config(freeze=False, weight_decay=0.0))
    assert str(caught.value) == (
        "tokenizer.vectors go into embedding.tokens.weight, which this network does not have.\n"
        "Give its embedding that name, or leave tokenizer.vectors out."
    )
