"""Several runs on one test set."""

import time
from collections.abc import Callable, Sequence
from functools import partial

from regard.api.running import Run, read_test_set
from regard.config import DecodingConfig
from regard.evaluation.report import Comparison, System, compare_systems
from regard.evaluation.statistics import check_tokenizer


def compare(
    runs: Sequence[Run],
    files: Sequence[str],
    *,
    source: str = "",
    target: str = "",
    decoding: DecodingConfig | None = None,
    tokenize: str = "13a",
    progress: Callable[[str, int], None] = lambda name, done: None,
) -> Comparison:
    """Translate one test set with several runs and compare them with the first: scores, significance, size and speed."""
    check_tokenizer(tokenize)
    for one in runs:
        one.check_translates()  # before the test set is read
    data = runs[0].config.data
    pairs = read_test_set(files, source=source or data.source, target=target or data.target)
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    systems = []
    for one in runs:
        name = str(one.reference)
        began = time.perf_counter()
        outputs = one.translate(sources, decoding=decoding, progress=partial(progress, name))
        seconds = time.perf_counter() - began
        hypotheses = [output.text for output in outputs]
        systems.append(System(name=name, hypotheses=hypotheses, parameters=one.n_parameters, seconds=seconds))
    return compare_systems(systems, sources=sources, references=references, tokenize=tokenize)
