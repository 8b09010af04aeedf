"""Nearest neighbours of embeddings: by cosine, without special tokens and rows that no token has."""

import pytest
import torch
from tests.inspection.families import subject_of, tokenizer_of
from torch import nn

from regard.errors import UsageError
from regard.inspection.neighbours import find_embedding, nearest_neighbours
from regard.parts.embedding import TokenEmbedding

TOKENIZER = tokenizer_of("translate")


def network(**embeddings: TokenEmbedding) -> nn.Module:
    return nn.ModuleDict({name: nn.ModuleDict({"tokens": own}) for name, own in embeddings.items()})


def embedding(rows: int = 20, *, seed: int = 0) -> TokenEmbedding:
    made = TokenEmbedding(rows, 6)
    nn.init.normal_(made.weight, generator=torch.Generator().manual_seed(seed))
    return made


def test_the_nearest_come_first_whatever_their_length() -> None:
    own = embedding()
    dog, cat, far = (TOKENIZER.vocabulary[word] for word in ("dog", "film", "good"))
    with torch.no_grad():
        own.weight[cat] = 7 * own.weight[dog]
        own.weight[far] = -own.weight[dog]
    model = network(embedding=own)
    found = nearest_neighbours(model, TOKENIZER, "dog", 100)
    assert (found[0].token.strip(), found[0].id) == ("film", cat)
    assert found[0].similarity == pytest.approx(1.0)
    assert found[-1].id == far
    assert found[-1].similarity == pytest.approx(-1.0)
    ids = {one.id for one in found}
    assert ids == set(range(TOKENIZER.n_tokens)) - set(TOKENIZER.specials.values()) - {dog}
    assert nearest_neighbours(model, TOKENIZER, dog, 3) == found[:3]
    assert found[0].to_json() == {"token": found[0].token, "id": cat, "similarity": found[0].similarity}


def test_source_and_target_have_neighbours_of_their_own() -> None:
    source, target = embedding(seed=1), embedding(seed=2)
    model = network(source_embedding=source, target_embedding=target)
    assert find_embedding(model) is source
    assert find_embedding(model, "target") is target
    tied = subject_of("transformer").model
    assert find_embedding(tied, "target").weight is find_embedding(tied, "source").weight
    assert find_embedding(subject_of("captioner-vit").model, "target").weight.shape[1] == 8
    assert len(nearest_neighbours(subject_of("gpt").model, TOKENIZER, "dog", 4)) == 4


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"token": "dogg"}, "'dogg' is not one token of the vocabulary.\nDid you mean dog?"),
        ({"token": 99}, f"There is no token 99: they are 0 to {TOKENIZER.n_tokens - 1}."),
        ({"token": "dog", "n": 0}, "There are 1 or more neighbours to show, not 0."),
        ({"token": "dog", "side": "sauce"}, "There is no side 'sauce'.\nDid you mean source?"),
    ],
)
def test_what_is_refused(asked: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        nearest_neighbours(network(embedding=embedding()), TOKENIZER, **asked)
    assert str(caught.value) == problem


def test_a_model_without_tokens() -> None:
    with pytest.raises(UsageError, match="This model has no token embedding"):
        nearest_neighbours(subject_of("vit").model, TOKENIZER, "dog")
