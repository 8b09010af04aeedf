"""The trial of a converted engine: its log-probabilities beside those of the network, and its fastest settings here."""

import math
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from regard.config import DecodingConfig
from regard.data.text.tokenizer import Tokenizer
from regard.decoding.engine import EngineSettings, SourceSentence, TranslationEngine
from regard.exchange.ctranslate2 import position_limit

N_CHECKED, LONGEST_CHECKED = 8, 40
N_TIMED, N_WRITTEN = 32, 16  # sentences, and tokens of each, by which settings are compared


def _sentences(tokenizer: Tokenizer, n: int, longest: int, seed: int) -> list[list[int]]:
    """Made-up sentences of different lengths, of any tokens but special ones."""
    generator = torch.Generator().manual_seed(seed)
    plain = torch.tensor(sorted({*range(tokenizer.n_tokens)} - {*tokenizer.specials.values()}) or [tokenizer.end_id])
    lengths = [1 + (longest - 1) * number // max(1, n - 1) for number in range(n)]
    return [plain[torch.randint(len(plain), (length,), generator=generator)].tolist() for length in lengths]


@torch.inference_mode()
def largest_error(engine: Any, model: Any, source: Tokenizer, target: Tokenizer) -> float:
    """The largest difference between log-probabilities of the engine and of the network, over made-up sentences."""
    longest = min(LONGEST_CHECKED, (position_limit(model.config) or LONGEST_CHECKED) - 2)
    targets = _sentences(target, N_CHECKED, longest, seed=2)
    if isinstance(engine, TranslationEngine):
        sources = [[*source.prefix, *ids, source.end_id] for ids in _sentences(source, N_CHECKED, longest, seed=1)]
        found = engine.score(sources, targets)
        wanted = [
            _log_probs(
                model(torch.tensor([own]), torch.tensor([len(own)]), torch.tensor([[target.start_id, *ids]])),
                [*ids, target.end_id],
            )
            for own, ids in zip(sources, targets, strict=True)
        ]
    else:
        rows = [[target.opening[0], *ids] for ids in targets]
        found = engine.score(rows)
        wanted = [_log_probs(model(torch.tensor([ids[:-1]])), ids[1:]) for ids in rows]
    pairs = [(torch.tensor(own), ours) for own, ours in zip(found, wanted, strict=True)]
    if any(own.shape != ours.shape for own, ours in pairs):
        return math.inf
    return max(float((own - ours).abs().max()) for own, ours in pairs)


def _log_probs(logits: Tensor, ids: list[int]) -> Tensor:
    return torch.log_softmax(logits[0].float(), dim=-1).gather(1, torch.tensor(ids)[:, None])[:, 0]


def fastest(make: Callable[[EngineSettings], Any], source: Tokenizer) -> EngineSettings:
    """Which number of workers and threads is the fastest here, for many inputs and for one; `make` opens an engine."""
    n_cores = torch.get_num_threads()
    if n_cores == 1:
        return EngineSettings()
    inputs = _sentences(source, N_TIMED, N_WRITTEN, seed=3)
    many = {
        (workers, threads): _seconds(make(EngineSettings(workers=workers, threads=threads)), inputs)
        for workers, threads in {(n_cores, 1), (1, n_cores)}
    }
    one = {
        threads: _seconds(make(EngineSettings(threads_for_one=threads, threads=threads)), inputs[-1:])
        for threads in {1, n_cores}
    }
    workers, threads = min(many, key=lambda each: many[each])
    return EngineSettings(workers=workers, threads=threads, threads_for_one=min(one, key=lambda each: one[each]))


def _seconds(engine: Any, inputs: list[list[int]]) -> float:
    """The least of three times that the engine takes for inputs."""
    config = DecodingConfig(beam=1)

    def run() -> None:
        if isinstance(engine, TranslationEngine):
            sentences = [SourceSentence(source=ids, prefix=(), limit=N_WRITTEN) for ids in inputs]
            engine.translate(sentences, start=(), config=config, with_log_probs=False)
        else:
            engine.generate(inputs, limit=N_WRITTEN, config=config, with_log_probs=False)

    times = []
    for _ in range(3):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)
