"""The one entry to decoding: a config says how, and this picks the method and the rules."""

from collections.abc import Sequence

from torch import Tensor

from regard.config import DecodingConfig
from regard.decoding.beam import Beam, search
from regard.decoding.greedy import greedy
from regard.decoding.penalties import LengthPower
from regard.decoding.protocol import Decoder, StateType
from regard.decoding.result import Decoded
from regard.decoding.rules import MinLength, NoRepeatedNgram, RepetitionPenalty, Rule
from regard.decoding.sampling import Sampling, sample


def decode(
    decoder: Decoder[StateType],
    state: StateType,
    config: DecodingConfig,
    *,
    start_id: int | Tensor,
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
    rules = (*config_rules(config, end_id=end_id), *rules)
    penalty = LengthPower(config.length_penalty)
    if config.sample:
        sampling = Sampling(
            temperature=config.temperature,
            top_k=config.top_k,
            top_p=config.top_p,
            samples=config.n_best,
            seed=seed,
        )
        return sample(
            decoder,
            state,
            sampling,
            start_id=start_id,
            end_id=end_id,
            limits=limits,
            rules=rules,
            penalty=penalty,
            keys=keys,
        )
    beam = Beam(width=config.beam, n_best=config.n_best, penalty=penalty)
    if beam.width == 1:
        return greedy(decoder, state, start_id=start_id, end_id=end_id, limits=limits, rules=rules, penalty=penalty)
    return search(decoder, state, beam, start_id=start_id, end_id=end_id, limits=limits, rules=rules)


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
