"""Several runs of one task on one test set: scores, paired significance, size, throughput."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from regard.api.kinds import TextMetricSettings, UseSettings
from regard.api.run import Files, Run, load
from regard.errors import DataError, UsageError
from regard.evaluation.comparison import Comparison, System, check_names, compare_systems
from regard.evaluation.generated_comparison import GeneratingSystem, compare_generated
from regard.tasks.evaluation import Evaluation
from regard.tasks.options import no_progress

FEW = 10  # examples: a coin that is thrown so seldom often falls on one side only


def compare(
    runs: Sequence["str | Path | Run[Any]"], files: Files, **settings: Unpack[TextMetricSettings]
) -> Comparison:
    """Compare runs of one task, given by their paths or loaded, with the first of them on one test set.

    Each is tested against the first by paired bootstrap and approximate randomisation. Settings by name, as the runs'
    `evaluate` takes them; the test set is read as the first run was trained.
    """
    loaded = [run if isinstance(run, Run) else load(run) for run in runs]
    check_names([str(run.reference) for run in loaded])  # all that can be wrong before the test set is read
    first = loaded[0]
    for other in loaded:
        if other.spec is not first.spec:
            raise UsageError(
                f"{first.reference} was trained for the task '{first.spec.name}', {other.reference} for "
                f"'{other.spec.name}': no score compares them.",
                "Compare runs of one task.",
            )
    evaluations = {str(run.reference): _evaluated(run, first, files, settings) for run in loaded}
    sizes = {str(run.reference): run.n_parameters for run in loaded}
    if all(one.generated is not None for one in evaluations.values()):
        found = _compare_generated(evaluations, sizes, settings)
    else:
        found = _compare_statistics(evaluations, sizes)
    return replace(found, notes=(*found.notes, *_reading_notes(loaded, settings), *_engine_notes(loaded, evaluations)))


def _evaluated(run: Run[Any], first: Run[Any], files: Files, settings: Mapping[str, Any]) -> Evaluation:
    """Score one run, which reads the test set as the first does."""
    told = settings.get("progress", no_progress)

    def progress(what: str, done: int) -> None:
        told(f"{what} with {run.reference}", done)

    reading = {name: getattr(first.config.data, name) for name in _columns(first)}
    return run.evaluate_with(files, run.options({**reading, **settings, "paired": True, "progress": progress}))


def _columns(run: Run[Any]) -> list[str]:
    return [name for name in UseSettings.__annotations__ if hasattr(run.config.data, name) and _reads(run, name)]


def _reads(run: Run[Any], name: str) -> bool:
    return run.spec.reads_setting("data", name)


def _reading_notes(runs: Sequence[Run[Any]], given: Mapping[str, Any]) -> list[str]:
    """Say by which settings the test set is read where the runs were trained with different ones."""
    first, *others = runs
    return [
        f"The test set is read as {first.reference} was trained: data.{name} = {getattr(first.config.data, name)!r}."
        for name in _columns(first)
        if name != "on_bad"
        and name not in given
        and any(getattr(other.config.data, name) != getattr(first.config.data, name) for other in others)
    ]


def _engine_notes(runs: Sequence[Run[Any]], evaluations: Mapping[str, Evaluation]) -> list[str]:
    """Say whose outputs another engine has searched for, where one was asked for; else all are of our own search."""
    notes = []
    for run in runs:
        if run.engine_wish.name == "ctranslate2" and run.engine.engine is not None:
            named = f"engine:{run.engine.engine.name}"  # by the signature of a score that is its own
            found = any(named in score.signature for score in evaluations[str(run.reference)].scores)
            notes.append(
                f"The outputs of {run.reference} are those of {run.engine.engine.name}."
                if found
                else f"The outputs of {run.reference} are those of our own search: CTranslate2 cannot do what is asked for."
            )
    return notes


def _compare_generated(
    evaluations: Mapping[str, Evaluation], sizes: Mapping[str, int], settings: Mapping[str, Any]
) -> Comparison:
    """Compare what was generated: by the texts, with the sentences on which the runs differ the most."""
    first = next(iter(evaluations.values()))
    assert first.generated is not None
    systems = [
        GeneratingSystem(name=name, hypotheses=one.generated.outputs, parameters=sizes[name], seconds=one.seconds)
        for name, one in evaluations.items()
        if one.generated is not None
    ]
    chosen = {name: settings[name] for name in ("tokenize", "lowercase") if name in settings}
    return compare_generated(
        systems,
        sources=first.generated.sources,
        references=first.generated.references,
        metrics=[one.metric for one in first.statistics],
        unit=first.unit,
        by_length=first.unit == "sentences",
        notes=_notes(evaluations),
        **chosen,
    )


def _compare_statistics(evaluations: Mapping[str, Evaluation], sizes: Mapping[str, int]) -> Comparison:
    """Compare by what each example adds to each metric that means the same for all: its signature says so."""
    first = next(iter(evaluations.values()))
    alike = [
        one.metric
        for one in first.statistics
        if all((one.metric, one.signature) in _signatures(other) for other in evaluations.values())
    ]
    notes = _notes(evaluations)
    if not alike:
        raise DataError(
            "No metric means the same for all of the runs: they differ in their vocabularies or labels, and for some the "
            "text has no bits per byte.",
            "Compare runs of one vocabulary (regard train … --vocabulary RUN), or on text that none of them loses.",
        )
    if left := [one for one in first.statistics if one.metric not in alike]:
        labels = ", ".join(one.score.label for one in left)
        notes.append(f"Not compared, as the runs have different vocabularies or labels: {labels}.")
    unit = first.paired_unit or first.unit
    if len(first.statistics[0]) < FEW:
        notes.append(f"Fewer than {FEW} {unit}: the tests can hardly tell a difference from chance.")
    systems = [
        System(
            name=name,
            statistics=[next(own for own in one.statistics if own.metric == metric) for metric in alike],
            parameters=sizes[name],
            seconds=one.seconds,
            counts={one.unit: one.count} if one.unit != unit else {},
        )
        for name, one in evaluations.items()
    ]
    return compare_systems(systems, unit=unit, throughput=first.throughput, notes=notes)


def _signatures(evaluation: Evaluation) -> set[tuple[str, str]]:
    return {(one.metric, one.signature) for one in evaluation.statistics}


def _notes(evaluations: Mapping[str, Evaluation]) -> list[str]:
    return list(dict.fromkeys(note for one in evaluations.values() for note in one.notes))
