"""Several runs on one test set."""

import dataclasses
import time
from collections.abc import Sequence
from functools import partial

from regard.api.evaluate import read_test_set
from regard.api.run import Run
from regard.config import DataConfig, DecodingConfig
from regard.errors import DataError, UsageError
from regard.evaluation.comparison import Comparison, System, check_names, compare_systems
from regard.evaluation.generated_comparison import GeneratingSystem, compare_generated
from regard.evaluation.generated_text import check_tokenizer
from regard.evaluation.perplexity import cross_entropy_statistics
from regard.tasks.language_model.corpus_loss import text_costs
from regard.tasks.language_model.task import LanguageModelTask
from regard.tasks.task import Progress
from regard.tasks.translation.task import TranslationTask

FEW = 10  # stretches of text: a coin that is thrown so seldom often falls on one side only


def compare(
    runs: Sequence[Run],
    files: Sequence[str],
    *,
    source: str = "",
    target: str = "",
    decoding: DecodingConfig | None = None,
    tokenize: str = "13a",
    on_bad: str = "",
    progress: Progress = lambda what, done: None,
) -> Comparison:
    """Compare runs of one task with the first of them on one test set: scores, significance, size and speed.

    Translators translate it; language models read it, and those of different vocabularies are compared by bits per byte.
    source, target: languages or columns of the files; by default those that the first run was trained with
    on_bad: what becomes of bad lines of text, by default as in the first run's training; of pairs every one counts
    progress: called with what is done now, and how many of it
    """
    check_names([str(run.reference) for run in runs])  # all that can be wrong before the test set is read
    first = runs[0]
    for other in runs:
        if other.config.task != first.config.task:
            raise UsageError(
                f"{first.reference} was trained for the task '{first.config.task}', {other.reference} for "
                f"'{other.config.task}': no score compares them.",
                "Compare runs of one task.",
            )
    data = first.config.data
    if first.config.task == LanguageModelTask.spec.name:
        read_as = dataclasses.replace(data, source=source or data.source, on_bad=on_bad or data.on_bad)
        return _compare_texts(runs, files, read_as, progress=progress)
    first.expect(TranslationTask.spec.name)
    check_tokenizer(tokenize)
    pairs = read_test_set(files, source=source or data.source, target=target or data.target)
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    systems = []
    for one in runs:
        name = str(one.reference)
        began = time.perf_counter()
        outputs = one.translate(sources, decoding=decoding, progress=partial(progress, f"translating with {name}"))
        seconds = time.perf_counter() - began
        hypotheses = [output.text for output in outputs]
        systems.append(GeneratingSystem(name=name, hypotheses=hypotheses, parameters=one.n_parameters, seconds=seconds))
    return compare_generated(systems, sources=sources, references=references, tokenize=tokenize)


def _compare_texts(runs: Sequence[Run], files: Sequence[str], data: DataConfig, *, progress: Progress) -> Comparison:
    tasks = [run.language_task for run in runs]
    alike = len({task.tokenizer.to_json() for task in tasks}) == 1
    texts = [task.read(files, data, progress=progress) for task in tasks]
    keeping = [task.keeps(text) for task, text in zip(tasks, texts, strict=True)]
    if not alike and not all(keeping):
        raise DataError(
            f"{runs[keeping.index(False)].reference} loses some of the text, so that it has no bits per byte, and the runs "
            "have different vocabularies: no score compares them.",
            "Compare runs of one vocabulary (regard train … --vocabulary RUN), or on text that none of them loses.",
        )
    metrics = (*(("loss", "perplexity") if alike else ()), *(("bits_per_byte",) if all(keeping) else ()))
    systems = []
    for run, task, text in zip(runs, tasks, texts, strict=True):
        name = str(run.reference)
        costs = text_costs(task, run.model, text, data, progress=partial(progress, f"reading with {name}"))
        systems.append(
            System(
                name=name,
                statistics=[
                    found
                    for found in cross_entropy_statistics(costs.nats, costs.n_tokens, costs.n_bytes)
                    if found.metric in metrics
                ],
                parameters=run.n_parameters,
                seconds=costs.seconds,
                counts={"tokens": int(costs.n_tokens.sum())},
            )
        )
    notes = list(dict.fromkeys(note for task, text in zip(tasks, texts, strict=True) for note in task.notes(text)))
    if not alike:
        notes.append(
            "The runs have different vocabularies: bits per byte compare them, a loss or perplexity a token would not."
        )
    if len({run.config.data.separator for run in runs}) > 1:
        how = f"by the separator '{data.separator}'" if data.separator else "without a separator"
        notes.append(f"Documents are told apart as {runs[0].reference} was trained: {how}.")
    if len(costs.n_bytes) < FEW:
        notes.append(f"Fewer than {FEW} {costs.unit}: the tests can hardly tell a difference from chance.")
    return compare_systems(systems, unit=costs.unit, throughput=("bytes", int(costs.n_bytes.sum())), notes=notes)
