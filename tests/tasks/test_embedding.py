"""Vectors of texts and words: pooled over the text's own tokens, whatever the model, alone as in a batch."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import learn
from regard.errors import UsageError
from regard.models.gpt import GPT, GPTConfig
from regard.models.recurrent import Recurrent, RecurrentConfig
from regard.models.transformer import Transformer, TransformerConfig
from regard.tasks.embedding import Embedder, Embedding

TEXTS = ["the old dog barks", "a cat", "", "the big red house of the old man", "trees"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn([*TEXTS, "barking houses"], kind="bpe", vocab_size=280)


def transformer(tokenizer: Tokenizer, **choices: Any) -> Transformer:
    size = tokenizer.vocab_size
    sizes: dict[str, Any] = {"n_encoder_layers": 1, "n_decoder_layers": 1, "n_heads": 2, "d_model": 16, "d_ff": 32}
    return Transformer(TransformerConfig(source_vocab=size, target_vocab=size, **sizes, **choices), seed=3).eval()


def gpt(tokenizer: Tokenizer, context: int = 64) -> GPT:
    config = GPTConfig(vocab=tokenizer.vocab_size, n_layers=1, n_heads=2, d_model=16, context=context)
    return GPT(config, seed=3).eval()


def recurrent(tokenizer: Tokenizer) -> Recurrent:
    size = tokenizer.vocab_size
    config = RecurrentConfig(source_vocab=size, target_vocab=size, n_layers=1, d_model=12, d_state=10)
    return Recurrent(config, seed=3).eval()


class Echo(nn.Module):
    """An encoder alone whose state is its input: every token as (id, place, 1). Shows what was read, and what pooled."""

    def __init__(self, max_length: int | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.max_length = max_length

    def encode(self, inputs: Tensor, lengths: Tensor, segments: Tensor | None = None) -> Tensor:
        places = torch.arange(inputs.shape[1]).expand_as(inputs)
        return torch.stack([inputs, places, torch.ones_like(inputs)], dim=-1).float()

    def pooled(self, states: Tensor, lengths: Tensor) -> Tensor:
        return states[:, 0]


MODELS = {"transformer": transformer, "gpt": gpt, "recurrent": recurrent, "echo": lambda tokenizer: Echo()}


class WritesOnly(nn.Module):
    """A translator of somebody's own, whose states are those of what it writes."""

    def __init__(self) -> None:
        super().__init__()
        self.output = nn.Linear(2, 2)

    def states(self, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
        raise NotImplementedError


every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())


@every_model
@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_in_a_batch_as_alone_and_in_order(make: Any, pooling: str, tokenizer: Tokenizer) -> None:
    embedder = Embedder(tokenizer, make(tokenizer), pooling=pooling)
    together = embedder.embed(TEXTS)
    assert [one.text for one in together] == TEXTS
    for one in together:
        [alone] = embedder.embed([one.text])
        np.testing.assert_allclose(one.vector, alone.vector, atol=1e-5)
        assert one.vector.dtype == np.float32
        assert one.vector.shape == together[0].vector.shape
    assert len({tuple(one.vector.round(4)) for one in together}) == len(TEXTS)


def test_an_encoder_reads_start_text_end_and_pools_all_of_it(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("the old dog barks")
    n = len(ids)
    vectors = {
        how: Embedder(tokenizer, Echo(), pooling=how).embed(TEXTS)[0].vector for how in ("mean", "class", "last")
    }
    read = [tokenizer.start_id, *ids, tokenizer.end_id]
    np.testing.assert_allclose(vectors["mean"], [np.mean(read), (1 + n) / 2, 1], rtol=1e-6)
    assert vectors["class"].tolist() == [tokenizer.start_id, 0, 1]
    assert vectors["last"].tolist() == [tokenizer.end_id, n + 1, 1]


def test_encoder_and_decoder_read_text_and_end(tokenizer: Tokenizer) -> None:
    model = transformer(tokenizer)
    ids = [*tokenizer.encode(TEXTS[0]), tokenizer.end_id]
    with torch.inference_mode():
        states = model.encode(torch.tensor([ids]), torch.tensor([len(ids)]))[0].numpy()
    found = Embedder(tokenizer, model).embed(TEXTS)[0]
    np.testing.assert_allclose(found.vector, states[:-1].mean(0), atol=1e-5)
    last = Embedder(tokenizer, model, pooling="last").embed(TEXTS)[0]
    np.testing.assert_allclose(last.vector, states[-1], atol=1e-5)


def test_a_decoder_alone_reads_a_document_from_its_beginning(tokenizer: Tokenizer) -> None:
    model = gpt(tokenizer)
    ids = [tokenizer.end_id, *tokenizer.encode(TEXTS[0])]
    with torch.inference_mode():
        states = model.states(torch.tensor([ids]))[0].numpy()
    np.testing.assert_allclose(Embedder(tokenizer, model).embed(TEXTS)[0].vector, states[1:].mean(0), atol=1e-5)
    last = Embedder(tokenizer, model, pooling="last").embed(TEXTS)[0]
    np.testing.assert_allclose(last.vector, states[-1], atol=1e-5)


def test_the_last_state_of_two_directions_is_the_end_of_each(tokenizer: Tokenizer) -> None:
    model = recurrent(tokenizer)
    ids = [*tokenizer.encode(TEXTS[0]), tokenizer.end_id]
    with torch.inference_mode():
        states = model.encode(torch.tensor([ids]), torch.tensor([len(ids)]))[0].numpy()
    half = states.shape[1] // 2
    [found] = Embedder(tokenizer, model, pooling="last").embed(TEXTS[:1])
    np.testing.assert_allclose(found.vector, [*states[-1, :half], *states[0, half:]], atol=1e-5)


@every_model
def test_a_word_is_the_mean_of_its_pieces(make: Any, tokenizer: Tokenizer) -> None:
    embedder = Embedder(tokenizer, make(tokenizer))
    text = "  the barking  houses bark"
    [found] = embedder.embed([text], words=True)
    assert found.words == ("the", "barking", "houses", "bark")
    assert found.word_vectors is not None
    assert found.word_vectors.shape == (4, len(found.vector))
    # The words' vectors, each as often as it has pieces, have the text's mean; an encoder's has what stands around it, too.
    counts = np.bincount(tokenizer.words(text))
    assert counts.max() > 1
    if not embedder.reading.around:
        np.testing.assert_allclose(found.vector, counts @ found.word_vectors / counts.sum(), atol=1e-5)


def test_an_empty_text_has_the_vector_zero_and_no_words(tokenizer: Tokenizer) -> None:
    for text in ("", "  "):
        [found] = Embedder(tokenizer, Echo()).embed([text], words=True)
        assert found.words == ()
        assert found.word_vectors is not None
        assert found.word_vectors.shape == (0, 3)
    [found] = Embedder(tokenizer, Echo()).embed([""])
    assert found.vector.tolist() == [0, 0, 0]
    assert found.word_vectors is None
    assert Embedder(tokenizer, Echo()).embed([]) == []


def test_a_text_too_long_is_cut_and_says_so(tokenizer: Tokenizer) -> None:
    text = "the old dog barks"
    ids = tokenizer.encode(text)
    by_positions = Embedder(tokenizer, Echo(max_length=5))
    by_setting = Embedder(tokenizer, Echo(max_length=50), max_length=3)
    for embedder in (by_positions, by_setting):
        [found] = embedder.embed([text], words=True)
        assert found.n_cut == len(ids) - 3
        assert found.vector[0] == pytest.approx(np.mean([tokenizer.start_id, *ids[:3], tokenizer.end_id]))
        assert found.words == tuple(text.split()[: tokenizer.words(text)[2] + 1])
    [found] = Embedder(tokenizer, gpt(tokenizer, context=4)).embed([text])
    assert found.n_cut == len(ids) - 3
    [short] = by_positions.embed(["a"])
    assert short.n_cut == 0


def test_what_cannot_be_pooled_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(UsageError) as unknown:
        Embedder(tokenizer, Echo(), pooling="means")
    assert (unknown.value.problem, unknown.value.remedy) == ("There is no pooling 'means'.", "Did you mean mean?")
    with pytest.raises(UsageError) as without:
        Embedder(tokenizer, gpt(tokenizer), pooling="class")
    assert without.value.problem.startswith("This model has no class token")
    assert without.value.remedy == "Take the mean or the last state: --pooling mean, --pooling last."
    with pytest.raises(UsageError) as strange:
        Embedder(tokenizer, nn.Linear(2, 2))
    assert strange.value.problem.startswith("A Linear offers neither encode(ids, lengths) nor states(ids)")
    with pytest.raises(UsageError, match=r"^A WritesOnly offers neither encode\(ids, lengths\) nor states\(ids\)"):
        Embedder(tokenizer, WritesOnly())


def test_an_embedding_is_a_line() -> None:
    vector = np.zeros(3, np.float32)
    assert repr(Embedding(text="a dog", vector=vector)) == "Embedding('a dog', 3 numbers)"
    spelled = Embedding(text="a dog", vector=vector, words=("a", "dog"), word_vectors=np.zeros((2, 3), np.float32))
    assert repr(spelled) == "Embedding('a dog', 3 numbers, 2 words)"
