"""Networks of ours in CTranslate2: the same log-probabilities, states, greedy tokens, beams and alignments, in float32."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from regard.config import DecodingConfig, build
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import learn
from regard.decoding.prompt import Prompt
from regard.decoding.request import Request
from regard.decoding.rules import Banned, ForcedPrefix, Step
from regard.decoding.search import decode
from regard.exchange.ctranslate2 import convert, token_names
from regard.models.bert import BertConfig
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.models.model_config import ModelConfig
from regard.models.presets import build_model
from regard.models.t5 import T5Config
from regard.models.transformer import TransformerConfig
from regard.parts.taps import recording

Fields = dict[str, Any]
Ids = list[list[int]]
NEAR = 1e-4
SOURCE_WORDS, TARGET_WORDS = 40, 43
LAYERS: Fields = {"n_encoder_layers": 2, "n_decoder_layers": 3, "d_model": 32, "n_heads": 4, "d_ff": 48}
# What came after the paper, as our small presets have it.
SINCE: Fields = {
    "norm_order": "pre",
    "norm": "rms",
    "positions": "rotary",
    "feed_forward": "gated",
    "activation": "silu",
}
TRANSFORMERS: dict[str, Fields] = {
    "the paper's": {},
    "since": SINCE,
    "pre-norm": {"norm_order": "pre", "positions": "learned", "max_positions": 64, "output_bias": True},
    "rms, post-norm": {"norm": "rms", "activation": "gelu", "position_base": 100.0},
    "gated, layer norm": {"feed_forward": "gated", "activation": "gelu-tanh", "norm_order": "pre"},
    "rotary, base": {"positions": "rotary", "position_base": 300.0, "output_bias": True},
    "no positions": {"positions": "none"},
    "index": {"positions": "index", "norm_order": "pre"},
    "two vocabularies": {"tied": "target", "n_encoder_layers": 3, "n_decoder_layers": 1},
    "untied": {**SINCE, "tied": "none", "scale_embedding": False, "n_encoder_layers": 1, "n_decoder_layers": 2},
}
T5: Fields = {**LAYERS, "d_head": 6, "n_buckets": 8, "max_distance": 9}
T5S: dict[str, Fields] = {
    "t5": T5,
    "t5, 1.1": {**T5, "feed_forward": "gated", "activation": "gelu-tanh", "tied": "inputs", "n_encoder_layers": 1},
    "t5, usual buckets": {**T5, "n_buckets": 32, "max_distance": 128, "d_head": 8},
}
GPT: Fields = {"n_layers": 3, "n_heads": 4, "d_model": 32, "context": 64}
LLAMA: Fields = {"n_layers": 2, "n_heads": 4, "n_key_heads": 2, "d_model": 32, "d_ff": 48, "context": 16}
LLAMA3: Fields = {"kind": "llama3", "factor": 8.0, "low": 1.0, "high": 4.0, "first_context": 16}
LLAMAS: dict[str, Fields] = {
    "llama": LLAMA,
    "llama, every head its keys": {**LLAMA, "n_key_heads": 4, "biases": "all", "epsilon": 1e-2},
    "llama, one key head": {**LLAMA, "n_key_heads": 1, "tied": "none"},
    "llama, wide heads": {**LLAMA, "d_head": 12, "biases": "inputs"},
    "llama, linear": {**LLAMA, "position_base": 500.0, "rotary_scaling": {"kind": "linear", "factor": 3.0}},
    "llama, llama3": {**LLAMA, "rotary_scaling": LLAMA3},
}
BERT: Fields = {"n_layers": 2, "n_heads": 4, "d_model": 32, "d_ff": 48, "max_positions": 64, "n_segments": 3}
BERTS: dict[str, Fields] = {
    "bert": {**BERT, "pooling": "mean"},
    "bert, pooler": {**BERT, "head": "sequence", "n_outputs": 2},
    "bert, words": {**BERT, "head": "words"},
}


@cache
def words(n_words: int) -> Tokenizer:
    """A vocabulary of so many words beside the special tokens."""
    return learn([" ".join(f"w{number}" for number in range(n_words))], kind="words", vocab_size=n_words + 4)


def configured(name: str) -> tuple[ModelConfig, Tokenizer, Tokenizer]:
    """The config of a variant with its tokenizers."""
    source = target = words(SOURCE_WORDS)
    if name in TRANSFORMERS:
        fields = {**LAYERS, **TRANSFORMERS[name]}
        target = words(TARGET_WORDS) if fields.get("tied") in ("target", "none") else source
        sizes = {"source_vocab": source.vocab_size, "target_vocab": target.vocab_size}
        return build(TransformerConfig, {**fields, **sizes}, origin="test"), source, target
    if name in T5S:
        sizes = {"source_vocab": source.vocab_size, "target_vocab": source.vocab_size}
        return build(T5Config, {**T5S[name], **sizes}, origin="test"), source, source
    kinds: list[tuple[type[ModelConfig], dict[str, Fields]]] = [
        (GPTConfig, {"gpt": GPT}),
        (LlamaConfig, LLAMAS),
        (BertConfig, BERTS),
    ]
    [(kind, fields)] = [(kind, variants[name]) for kind, variants in kinds if name in variants]
    return build(kind, {**fields, "vocab": source.vocab_size}, origin="test"), source, source


def shaken(model: nn.Module, *, by: float = 0.3) -> Any:
    """Biases and norms begin as zeros and ones, which would hide a mistake."""
    generator = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(by * torch.randn(parameter.shape, generator=generator))
    return model.eval()


class Pair:
    """A network of ours, and its conversion."""

    def __init__(self, name: str, folder: Path) -> None:
        config, self.source, self.target = configured(name)
        self.ours = shaken(build_model(config, seed=1))
        convert(folder, config, self.ours.state_dict(), source=self.source, target=self.target)
        kind = {GPTConfig: ctranslate2.Generator, LlamaConfig: ctranslate2.Generator, BertConfig: ctranslate2.Encoder}
        self.theirs = kind.get(type(config), ctranslate2.Translator)(str(folder), inter_threads=1, intra_threads=1)
        self.read, self.written = token_names(self.source), token_names(self.target)
        self.banned = (self.target.pad_id, self.target.start_id)

    def suppressed(self, *ids: int) -> list[list[str]]:
        return [[self.written[id]] for id in (*self.banned, *ids)]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Pair]:
    """Each network converted once."""
    folder = tmp_path_factory.mktemp("ctranslate2")
    return cache(lambda name: Pair(name, folder / name))


def rows(lengths: list[int], tokenizer: Tokenizer, *, seed: int) -> Ids:
    """Random words, so many for each row."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(4, tokenizer.vocab_size, (length,), generator=generator).tolist() for length in lengths]


def sources(tokenizer: Tokenizer, lengths: list[int], *, seed: int = 5) -> Ids:
    return [[*row, tokenizer.end_id] for row in rows(lengths, tokenizer, seed=seed)]


def named(ids: Ids, names: list[str]) -> list[list[str]]:
    return [[names[id] for id in row] for row in ids]


def padded(ids: Ids) -> tuple[Tensor, Tensor]:
    lengths = torch.tensor([len(row) for row in ids])
    table = torch.zeros(len(ids), int(lengths.max()), dtype=torch.long)
    for row, own in zip(table, ids, strict=True):
        row[: len(own)] = torch.tensor(own)
    return table, lengths


def assert_near(found: Any, expected: Any, *, atol: float = NEAR) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), atol=atol, rtol=0)


def log_probs(logits: Tensor, ids: list[int]) -> Tensor:
    """What each token (T,) has by the logits (T, V)."""
    return logits.log_softmax(-1)[range(len(ids)), ids]


# -- encoder-decoders ---------------------------------------------------------------------------------------------------

every_pair = pytest.mark.parametrize("name", [*TRANSFORMERS, *T5S])
LENGTHS = [30, 7, 1, 18]


def assert_scores_equal(one: Pair, lengths: list[int], *, atol: float = NEAR) -> None:
    read, written = sources(one.source, lengths), rows(lengths[::-1], one.target, seed=6)
    found = one.theirs.score_batch(named(read, one.read), named(written, one.written), max_input_length=0)
    targets, _ = padded([[one.target.start_id, *row] for row in written])
    with torch.inference_mode():
        logits = one.ours(*padded(read), targets)
    for scores, row, own in zip(found, written, logits, strict=True):
        assert_near(scores.log_probs, log_probs(own, [*row, one.target.end_id]), atol=atol)


@every_pair
def test_pairs_have_the_same_log_probabilities(name: str, pair: Callable[[str], Pair]) -> None:
    assert_scores_equal(pair(name), LENGTHS)


@pytest.mark.parametrize("name", ["the paper's", "since", "t5", "t5, usual buckets"])
def test_far_positions(name: str, pair: Callable[[str], Pair]) -> None:
    assert_scores_equal(pair(name), [400, 3], atol=5e-4)


def renormalised(log_probs: Tensor, step: Step) -> Tensor:
    """What is banned has no share of the probability with them; with us, the others keep their own."""
    return log_probs.log_softmax(-1)


def searched(
    one: Pair, read: Ids, config: DecodingConfig, *, n_tokens: int, banned: tuple[int, ...] = (), **more: Any
) -> Any:
    request = Request(
        prompt=one.target.start_id,
        end_id=one.target.end_id,
        limits=torch.full((len(read),), n_tokens),
        rules=(Banned((*one.banned, *banned)), renormalised, *more.get("rules", ())),
    )
    with torch.inference_mode():
        return decode(one.ours, one.ours.start(padded(read)), request, config)


@every_pair
def test_greedy_translations_are_equal(name: str, pair: Callable[[str], Pair]) -> None:
    one = pair(name)
    read = sources(one.source, [12, 1, 5, 25, 9, 3])
    options = {
        "beam_size": 1,
        "max_decoding_length": 30,
        "min_decoding_length": 0,
        "suppress_sequences": one.suppressed(),
    }
    found = one.theirs.translate_batch(named(read, one.read), **options)
    expected = searched(one, read, DecodingConfig(beam=1), n_tokens=30)
    assert [result.hypotheses[0] for result in found] == named([list(own.best.ids) for own in expected], one.written)
    assert len({tuple(result.hypotheses[0]) for result in found}) > 1


@every_pair
def test_beams_of_one_length_are_equal(name: str, pair: Callable[[str], Pair]) -> None:
    """Without an end token no rule about where to end can differ."""
    one = pair(name)
    read, end = sources(one.source, [12, 1, 5]), one.target.end_id
    options = {"beam_size": 4, "num_hypotheses": 4, "max_decoding_length": 12, "return_scores": True}
    found = one.theirs.translate_batch(named(read, one.read), **options, suppress_sequences=one.suppressed(end))
    expected = searched(one, read, DecodingConfig(beam=4, n_best=4, length_penalty=1.0), n_tokens=12, banned=(end,))
    for result, own in zip(found, expected, strict=True):
        assert result.hypotheses == named([list(each.ids) for each in own.hypotheses], one.written)
        assert_near(result.scores, [each.score for each in own.hypotheses])


@every_pair
def test_a_translation_may_have_a_beginning(name: str, pair: Callable[[str], Pair]) -> None:
    one = pair(name)
    read, prefixes = sources(one.source, [12, 1, 5]), rows([3, 6, 2], one.target, seed=8)
    options = {
        "beam_size": 1,
        "max_decoding_length": 20,
        "min_decoding_length": 0,
        "suppress_sequences": one.suppressed(),
    }
    found = one.theirs.translate_batch(named(read, one.read), named(prefixes, one.written), **options)
    expected = searched(one, read, DecodingConfig(beam=1), n_tokens=20, rules=[ForcedPrefix(prefixes)])
    assert [result.hypotheses[0] for result in found] == named([list(own.best.ids) for own in expected], one.written)


@every_pair
def test_alignments_are_equal(name: str, pair: Callable[[str], Pair]) -> None:
    one = pair(name)
    read = sources(one.source, [12, 1, 5])
    options = {"beam_size": 1, "max_decoding_length": 8, "suppress_sequences": one.suppressed(one.target.end_id)}
    found = one.theirs.translate_batch(named(read, one.read), **options, return_attention=True)
    for result, source in zip(found, read, strict=True):
        written = [one.written.index(token) for token in result.hypotheses[0]]
        with torch.inference_mode(), recording(one.ours, one.ours.alignment_tap) as taps:
            one.ours(*padded([source]), torch.tensor([[one.target.start_id, *written[:-1]]]))
        [weights] = taps.values()
        assert_near(result.attention[0], weights[0].mean(0))


# -- language models ----------------------------------------------------------------------------------------------------

every_language_model = pytest.mark.parametrize("name", ["gpt", *LLAMAS])


@every_language_model
def test_language_models_have_the_same_logits(name: str, pair: Callable[[str], Pair]) -> None:
    one = pair(name)
    read = rows(LENGTHS, one.source, seed=5)
    found = np.asarray(one.theirs.forward_batch(named(read, one.read)))
    with torch.inference_mode():
        expected = one.ours(padded(read)[0])
    for logits, own, row in zip(found, expected, read, strict=True):
        assert_near(logits[: len(row)], own[: len(row)])
    scored = one.theirs.score_batch(named(read, one.read), max_input_length=0)
    for scores, own, row in zip(scored, expected, read, strict=True):
        assert_near(scores.log_probs, log_probs(own, row[1:]))


@pytest.mark.parametrize("name", LLAMAS)
def test_far_positions_of_language_models(name: str, pair: Callable[[str], Pair]) -> None:
    one = pair(name)
    read = rows([400], one.source, seed=5)
    with torch.inference_mode():
        expected = one.ours(padded(read)[0])
    assert_near(one.theirs.forward_batch(named(read, one.read)), expected, atol=5e-4)


@every_language_model
@pytest.mark.parametrize("lengths", [[12, 2, 5, 25], [1, 1, 1]])
def test_greedy_continuations_are_equal(name: str, lengths: list[int], pair: Callable[[str], Pair]) -> None:
    one = pair(name)
    read = rows(lengths, one.source, seed=5)
    request = Request(
        prompt=Prompt.of(read),
        end_id=one.target.end_id,
        limits=torch.full((len(read),), 20),
        rules=(Banned(one.banned), renormalised),
    )
    with torch.inference_mode():
        expected = decode(one.ours, one.ours.start(len(read)), request, DecodingConfig(beam=1))
    options = {"max_length": 20, "include_prompt_in_result": False, "suppress_sequences": one.suppressed()}
    found = one.theirs.generate_batch(named(read, one.read), **options)
    assert [result.sequences_ids[0] for result in found] == [list(own.best.ids) for own in expected]


@every_language_model
def test_beams_of_language_models_are_equal(name: str, pair: Callable[[str], Pair]) -> None:
    one = pair(name)
    read, end = rows([7, 7, 7], one.source, seed=5), one.target.end_id
    request = Request(
        prompt=Prompt.of(read),
        end_id=end,
        limits=torch.full((3,), 12),
        rules=(Banned((*one.banned, end)), renormalised),
    )
    with torch.inference_mode():
        decoding = DecodingConfig(beam=4, n_best=4, length_penalty=1.0)
        expected = decode(one.ours, one.ours.start(3), request, decoding)
    options = {"beam_size": 4, "num_hypotheses": 4, "max_length": 12, "include_prompt_in_result": False}
    found = one.theirs.generate_batch(named(read, one.read), **options, suppress_sequences=one.suppressed(end))
    for result, own in zip(found, expected, strict=True):
        assert result.sequences_ids == [list(each.ids) for each in own.hypotheses]


# -- encoders -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BERTS)
@pytest.mark.parametrize("segmented", [False, True])
def test_encoders_have_the_same_states(name: str, segmented: bool, pair: Callable[[str], Pair]) -> None:
    one = pair(name)
    read = rows(LENGTHS, one.source, seed=5)
    ids, lengths = padded(read)
    segments = (torch.arange(ids.shape[1]) // 5 % 3).expand_as(ids) if segmented else None
    given = None if segments is None else segments.tolist()
    found = one.theirs.forward_batch(named(read, one.read), token_type_ids=given)
    with torch.inference_mode():
        states = one.ours.encode(ids, lengths, segments)
        pooled = one.ours.pooled(states, lengths)
    for own, expected, length in zip(np.asarray(found.last_hidden_state), states, lengths, strict=True):
        assert_near(own[:length], expected[:length])
    if name == "bert, pooler":
        assert_near(found.pooler_output, pooled)
    else:
        assert found.pooler_output is None
