"""The one entry to decoding: a config says how, and this picks the method (greedy, sampling, beam search) and the rules."""

from collections.abc import Generator
from dataclasses import dataclass, replace

import torch

from regard.config import DecodingConfig
from regard.decoding.autoregressive import Choose, Written, autoregress
from regard.decoding.beam import Beam, beam_search, watch_beam_search
from regard.decoding.beam_events import BeamEvent
from regard.decoding.greedy import likeliest
from regard.decoding.penalties import LengthPower
from regard.decoding.protocol import Decoder, StateType
from regard.decoding.request import Request
from regard.decoding.result import Decoded, run_to_end
from regard.decoding.rules import MinLength, NoRepeatedNgram, RepetitionPenalty, Rule
from regard.decoding.sampling import Sampling, drawing
from regard.errors import UsageError


def decode(decoder: Decoder[StateType], state: StateType, request: Request, config: DecodingConfig) -> list[Decoded]:
    """Decode the N sentences of `state` by `config`: `config.n_best` hypotheses each, best first.

    The request's rules hold beside those that the config asks for, and after them. Its `limits` have the last word on
    length; `config.max_length` is the caller's.
    """
    if can_stream(config):
        return run_to_end(stream(decoder, state, request, config))
    return beam_search(decoder, state, _with_rules(request, config), _beam(config))


@dataclass(frozen=True, kw_only=True)
class WatchedSearch:
    """A beam search that was watched: what it found, the events of each step, and the settings it was made by."""

    found: tuple[Decoded, ...]
    steps: tuple[tuple[BeamEvent, ...], ...]
    config: DecodingConfig
    end_id: int


def watch(decoder: Decoder[StateType], state: StateType, request: Request, config: DecodingConfig) -> WatchedSearch:
    """Do the same as `decode`, and keep what happened at each step; not for sampling, which has no tree."""
    if config.sample:
        raise UsageError(
            "Sampling draws one token after another, and has no tree of hypotheses.", "Search with a beam: --beam 4"
        )
    search = watch_beam_search(decoder, state, _with_rules(request, config), _beam(config))
    steps: list[tuple[BeamEvent, ...]] = []
    while True:
        try:
            steps.append(tuple(next(search)))
        except StopIteration as end:
            return WatchedSearch(found=tuple(end.value), steps=tuple(steps), config=config, end_id=request.end_id)


@torch.inference_mode()
def stream(
    decoder: Decoder[StateType], state: StateType, request: Request, config: DecodingConfig
) -> Generator[list[Written], None, list[Decoded]]:
    """Do the same as `decode`, but yield the tokens of each step; the results are the generator's return value.

    Only for what is never taken back: greedy search and sampling.
    """
    choose: Choose = likeliest
    width = 1
    if config.sample:
        width = config.n_best
        sampling = Sampling(temperature=config.temperature, top_k=config.top_k, top_p=config.top_p, samples=width)
        choose = drawing(sampling, request)
    request, penalty = _with_rules(request, config), LengthPower(config.length_penalty)
    return (yield from autoregress(decoder, state, request, choose, width=width, penalty=penalty))


def can_stream(config: DecodingConfig) -> bool:
    """Whether a token stays once it is written; a beam's best hypothesis may change at every step."""
    return config.sample or config.beam == 1


def config_rules(config: DecodingConfig, *, end_id: int) -> list[Rule]:
    """Return the rules that a config asks for."""
    rules: list[Rule] = []
    if config.min_length:
        rules.append(MinLength(config.min_length, end_id))
    if config.no_repeat_ngram:
        rules.append(NoRepeatedNgram(config.no_repeat_ngram))
    if config.repetition_penalty != 1:
        rules.append(RepetitionPenalty(config.repetition_penalty))
    return rules


def _beam(config: DecodingConfig) -> Beam:
    return Beam(width=config.beam, n_best=config.n_best, penalty=LengthPower(config.length_penalty))


def _with_rules(request: Request, config: DecodingConfig) -> Request:
    return replace(request, rules=(*config_rules(config, end_id=request.end_id), *request.rules))
