"""The trial of a converted engine: its log-probabilities or states beside the network's, and its fastest settings here."""

import math
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from regard.config import DecodingConfig
from regard.data.text.tokenizer import Tokenizer
from regard.decoding.engine.encoding_engine import EncodingEngine
from regard.decoding.engine.library import EngineSettings
from regard.decoding.engine.translation_engine import SourceSentence, TranslationEngine
from regard.exchange.ctranslate2 import position_limit
from regard.tasks.batches import padded

N_CHECKED, LONGEST_CHECKED = 8, 40
N_TIMED, N_WRITTEN = 16, 16  # sentences for each core, and tokens of each, by which settings are compared
GREEDY = DecodingConfig(beam=1)
CPU = torch.device("cpu")  # where an engine computes


def _sentences(tokenizer: Tokenizer, n: int, longest: int, seed: int) -> list[list[int]]:
    """Made-up sentences of different lengths, of any tokens but special ones."""
    generator = torch.Generator().manual_seed(seed)
    plain = torch.tensor(sorted({*range(tokenizer.n_tokens)} - {*tokenizer.specials.values()}) or [tokenizer.end_id])
    lengths = [1 + (longest - 1) * number // max(1, n - 1) for number in range(n)]
    return [plain[torch.randint(len(plain), (length,), generator=generator)].tolist() for length in lengths]


@torch.inference_mode()
def largest_error(engine: Any, model: Any, source: Tokenizer, target: Tokenizer) -> float:
    """The largest difference between log-probabilities of the engine and of the network, over made-up sentences; and what
    the engine's greedy search loses by a token that is not the network's likeliest, if that is more. Of an encoder, between
    states.
    """
    longest = min(LONGEST_CHECKED, (position_limit(model.config) or LONGEST_CHECKED) - 2)
    if isinstance(engine, EncodingEngine):
        return _largest_state_error(engine, model, source, longest)
    targets = _sentences(target, N_CHECKED, longest, seed=2)
    n_written = max(1, min(N_WRITTEN, longest // 2))
    written: list[Any] = []
    if isinstance(engine, TranslationEngine):
        sources = [[*source.prefix, *ids, source.end_id] for ids in _sentences(source, N_CHECKED, longest, seed=1)]
        rows = [[target.start_id, *ids, target.end_id] for ids in targets]
        found = engine.score(sources, targets)
        begun = [[target.start_id, *target.prefix]] * len(sources)
        if not engine.has_shortlist:  # which may leave the likeliest token out
            sentences = [SourceSentence(source=ids, prefix=(), limit=n_written) for ids in sources]
            found_outputs = dict(engine.translate(sentences, start=target.prefix, config=GREEDY, with_log_probs=False))
            written = [found_outputs[number] for number in range(len(sentences))]

        def log_probs(number: int, ids: list[int]) -> Tensor:
            own = sources[number]
            return _log_softmax(model(torch.tensor([own]), torch.tensor([len(own)]), torch.tensor([ids])))
    else:
        rows = [[target.opening[0], *ids] for ids in targets]
        found = engine.score(rows)
        begun = [row[: longest - n_written] for row in rows]
        written = engine.generate(begun, limit=n_written, config=GREEDY, with_log_probs=False)

        def log_probs(number: int, ids: list[int]) -> Tensor:
            return _log_softmax(model(torch.tensor([ids])))

    errors = []
    for number, (row, own) in enumerate(zip(rows, found, strict=True)):
        wanted = _chosen(log_probs(number, row[:-1]), row[1:])
        if len(own) != len(wanted):
            return math.inf
        errors.append((torch.tensor(own) - wanted).abs().max())
    for number, one in enumerate(written):
        if one is not None:  # else our own search is to write it
            best = one.hypotheses[0]
            ids = [*best.ids, *[target.end_id] * best.finished]
            all_tokens = log_probs(number, [*begun[number], *ids[:-1]])[len(begun[number]) - 1 :]
            errors.append((all_tokens.amax(1) - _chosen(all_tokens, ids)).max())
    return float(torch.stack(errors).max())


def _largest_state_error(engine: EncodingEngine, model: Any, tokenizer: Tokenizer, longest: int) -> float:
    sentences = _sentences(tokenizer, N_CHECKED, longest, seed=1)
    ids, lengths = padded([[tokenizer.start_id, *own, tokenizer.end_id] for own in sentences], tokenizer.pad_id, CPU)
    differences = (engine.encode(ids, lengths) - model.encode(ids, lengths)).abs().amax(-1)  # (B, T)
    return float(differences[torch.arange(ids.shape[1]) < lengths[:, None]].max())


def _chosen(log_probs: Tensor, ids: list[int]) -> Tensor:
    """Of log-probabilities (T, V) those of the tokens (T,)."""
    return log_probs.gather(1, torch.tensor(ids)[:, None])[:, 0]


def _log_softmax(logits: Tensor) -> Tensor:
    """(1, T, V) to (T, V)."""
    return torch.log_softmax(logits[0].float(), dim=-1)


def fastest(make: Callable[[EngineSettings], Any], source: Tokenizer) -> EngineSettings:
    """Which number of workers and threads is the fastest here, for many inputs and for one; `make` opens an engine."""
    n_cores = torch.get_num_threads()
    if n_cores == 1:
        return EngineSettings()
    inputs = _sentences(source, N_TIMED * n_cores, N_WRITTEN, seed=3)
    divisors = [number for number in range(1, n_cores + 1) if n_cores % number == 0]
    many = {
        threads: _seconds(make(EngineSettings(workers=n_cores // threads, threads=threads)), inputs)
        for threads in divisors
    }
    one = {
        threads: _seconds(make(EngineSettings(threads_for_one=threads, threads=threads)), inputs[-1:])
        for threads in divisors
    }
    threads = min(divisors, key=lambda each: many[each])
    return EngineSettings(
        workers=n_cores // threads, threads=threads, threads_for_one=min(divisors, key=lambda each: one[each])
    )


def _seconds(engine: Any, inputs: list[list[int]]) -> float:
    """The least of three times that the engine takes for inputs."""

    def run() -> None:
        if isinstance(engine, EncodingEngine):
            engine.encode(*padded([ids[: engine.max_length] for ids in inputs], inputs[0][0], CPU))
        elif isinstance(engine, TranslationEngine):
            sentences = [SourceSentence(source=ids, prefix=(), limit=N_WRITTEN) for ids in inputs]
            list(engine.translate(sentences, start=(), config=GREEDY, with_log_probs=False))
        else:
            engine.generate(inputs, limit=N_WRITTEN, config=GREEDY, with_log_probs=False)

    times = []
    for _ in range(3):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)
