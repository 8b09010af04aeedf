"""A generator of CTranslate2: a decoder goes on from a prompt, all at once or token by token."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from regard.config import DecodingConfig
from regard.decoding.engine.search_engine import LONGEST_INPUT, Ids, SearchEngine
from regard.decoding.result import Decoded
from regard.decoding.sampling import COLD


class GenerationEngine(SearchEngine):
    """A language model: a decoder goes on from a prompt."""

    library_class = "Generator"
    samples = True
    counts_prompts = False
    _has_drawn = False

    def generate(
        self, prompts: Sequence[Ids], *, limit: int, config: DecodingConfig, seed: int = 1, with_log_probs: bool
    ) -> list[Decoded | None]:
        """Go on from prompts by at most so many tokens; None where our own search must."""
        if config.sample:
            [prompt] = prompts
            drawn = list(self.stream(prompt, limit=limit, config=config, seed=seed))
            own = self.score([[*prompt, *drawn]])[0][len(prompt) - 1 :]
            return [self._decoded([drawn], [sum(own)], config, log_probs=[own])]
        with_log_probs |= config.min_length > 0  # else the library's scores are with the end taken out of the sum
        library = self.open(len(prompts))
        waiting: list[Any] = [None] * len(prompts)
        # Prompts of one length go together: behind the shortest of several, the library would write the others' rest.
        for length in sorted({*map(len, prompts)}):
            numbers = [number for number, prompt in enumerate(prompts) if len(prompt) == length]
            together = library.generate_batch(
                [self._named(prompts[number]) for number in numbers],
                max_batch_size=self._batch_tokens([length] * len(numbers)),
                batch_type="tokens",
                beam_size=config.beam,
                num_hypotheses=config.n_best,
                length_penalty=config.length_penalty,
                max_length=limit,
                min_length=config.min_length,
                include_prompt_in_result=False,
                return_end_token=True,
                return_scores=True,
                asynchronous=True,
            )
            for number, one in zip(numbers, together, strict=True):
                waiting[number] = one
        decoded: list[Decoded | None] = []
        for prompt, one in zip(prompts, (each.result() for each in waiting), strict=True):
            outputs = one.sequences_ids
            if not self._may_write(outputs, limit):
                decoded.append(None)
                continue
            read = self.score([[*prompt, *ids] for ids in outputs]) if with_log_probs else None
            log_probs = read and [own[len(prompt) - 1 :] for own in read]
            decoded.append(self._decoded(outputs, one.scores, config, log_probs=log_probs))
        return decoded

    def stream(self, prompt: Ids, *, limit: int, config: DecodingConfig, seed: int = 1) -> Iterator[int]:
        """Go on from one prompt, by the likeliest token each time or by one that is drawn, and yield each when written."""
        drawing: dict[str, Any] = {}
        library = self.open(1)
        if config.sample and config.temperature >= COLD:
            library = self._seeded(seed)
            drawing = {
                "sampling_temperature": config.temperature,
                "sampling_topk": config.top_k,
                "sampling_topp": config.top_p,
            }
        never = [[self.names[id]] for id in sorted(self.never)]
        steps = library.generate_tokens(
            self._named(prompt), max_length=limit, min_length=config.min_length, suppress_sequences=never, **drawing
        )
        for step in steps:
            yield step.token_id

    def _seeded(self, seed: int) -> Any:
        """The library's object whose threads have drawn nothing: one draws from the seed that is set when it first does."""
        import ctranslate2

        ctranslate2.set_random_seed(int(numpy.random.SeedSequence((seed, 0, 0)).generate_state(1)[0]) >> 1)
        library = self._new(*self.settings.of(1)) if self._has_drawn else self.open(1)
        self._has_drawn = True
        return library

    def score(self, rows: Sequence[Ids]) -> list[list[float]]:
        """The log-probability of each token of rows but the first."""
        found = self.open(len(rows)).score_batch([self._named(ids) for ids in rows], max_input_length=LONGEST_INPUT)
        return [list(one.log_probs) for one in found]
