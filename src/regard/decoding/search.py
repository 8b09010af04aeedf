"""The one entry to decoding: a config says how, and this picks the method and the rules."""

from collections.abc import Generator, Sequence

import torch
from torch import Tensor

from regard.config import DecodingConfig
from regard.decoding.autoregressive import Choose, Written, run_to_end, walk
from regard.decoding.beam import Beam, search
from regard.decoding.greedy import likeliest
from regard.decoding.penalties import LengthPower
from regard.decoding.prompt import Prompt
from regard.decoding.protocol import Decoder, StateType
from regard.decoding.result import Decoded
from regard.decoding.rules import MinLength, NoRepeatedNgram, RepetitionPenalty, Rule
from regard.decoding.sampling import Sampling, drawing


def decode(
    decoder: Decoder[StateType],
    state: StateType,
    config: DecodingConfig,
    *,
    prompt: int | Prompt,
    end_id: int,
    limits: Tensor,
    rules: Sequence[Rule] = (),
    seed: int = 1,
    keys: Sequence[int] | None = None,
) -> list[Decoded]:
    """Decode the N sentences of `state` by `config`: `config.n_best` hypotheses each, best first.

    rules:       beside those that the config asks for, and after them
    seed, keys:  for sampling only, see there
    The other arguments are those of `greedy`; `limits` has the last word on length, `config.max_length` is the caller's.
    """
    if can_stream(config):
        steps = stream(
            decoder, state, config, prompt=prompt, end_id=end_id, limits=limits, rules=rules, seed=seed, keys=keys
        )
        return run_to_end(steps)
    rules = (*config_rules(config, end_id=end_id), *rules)
    beam = Beam(width=config.beam, n_best=config.n_best, penalty=LengthPower(config.length_penalty))
    return search(decoder, state, beam, prompt=prompt, end_id=end_id, limits=limits, rules=rules)


@torch.inference_mode()
def stream(
    decoder: Decoder[StateType],
    state: StateType,
    config: DecodingConfig,
    *,
    prompt: int | Prompt,
    end_id: int,
    limits: Tensor,
    rules: Sequence[Rule] = (),
    seed: int = 1,
    keys: Sequence[int] | None = None,
) -> Generator[list[Written], None, list[Decoded]]:
    """Do the same as `decode`, but yield the tokens of each step; the results are the generator's return value.

    Only for what is never taken back: greedy search and sampling.
    """
    choose: Choose = likeliest
    width = 1
    if config.sample:
        sampling = Sampling(
            temperature=config.temperature, top_k=config.top_k, top_p=config.top_p, samples=config.n_best, seed=seed
        )
        choose, width = drawing(sampling, limits, keys), config.n_best
    return (
        yield from walk(
            decoder,
            state,
            choose,
            prompt=prompt,
            end_id=end_id,
            limits=limits,
            rules=(*config_rules(config, end_id=end_id), *rules),
            penalty=LengthPower(config.length_penalty),
            width=width,
        )
    )


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
