"""The model card: the README.md of a run folder, for whoever finds it a year later."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.config import RunConfig
from regard.evaluation.baselines.verdict import ScoredBaseline
from regard.evaluation.intervals import from_record, is_interval_end
from regard.runs.ranking import prefers_average
from regard.tasks.baselines import advice
from regard.training.baseline import judge_run
from regard.training.next_steps import how_to_repeat, next_steps


def model_card(
    name: str,
    config: RunConfig,
    *,
    facts: Sequence[tuple[str, str]],
    best: Mapping[str, Any],
    average: Mapping[str, Any],
    n_parameters: int,
    init_facts: Sequence[tuple[str, str]] = (),
    example: str = "",
    baselines: Sequence[ScoredBaseline] = (),
) -> str:
    """Return the card's Markdown; `best` and `average` are step, loss and scores, empty where there are none.

    init_facts: what was loaded from another run, if anything
    example: what the command that uses the run may be given
    baselines: what a model should beat
    """
    verdict = judge_run(best, average, baselines, config)
    meant = f", which `{name}` means" if prefers_average(average, best, config.training.best_by) else ""
    lines = [
        f"# {name}",
        "",
        f"A model for the task `{config.task}`, trained with regard: {config.model.preset or 'a custom network'}, "
        f"{n_parameters:,} parameters.",
        "",
        "## Data",
        "",
        *(f"- {label}: {text}" for label, text in facts),
        *(f"- file: `{file}`" for file in (*config.data.train, *config.data.valid)),
        "",
        *(["## Initialisation", "", *(f"- {label}: {text}" for label, text in init_facts), ""] if init_facts else []),
        "## Scores on the validation data",
        "",
        *([f"- the average of the last checkpoints{meant}: {_listed(average)}"] if average else []),
        f"- the best single checkpoint, step {best['step']:,}: {_listed(best)}" if best else "- none yet",
        *(f"- baseline, {one.name}: {_listed(one.scores)}" for one in baselines if one.scores),
        *(["", *advice(verdict, config)] if verdict is not None and not verdict.beaten else []),
        "",
        "## Use",
        "",
        *(f"    {line}" for line in next_steps(name, config, example=example)),
        "",
        how_to_repeat(config),
        "",
    ]
    return "\n".join(lines)


def _listed(scores: Mapping[str, Any]) -> str:
    """Write scores in a line, those with a 95 % interval with it."""
    shown = []
    for name, value in scores.items():
        if name != "step" and value is not None and not is_interval_end(name):
            interval = from_record(scores, name)
            within = f" (95 % interval {interval[0]:.4g} to {interval[1]:.4g})" if interval else ""
            shown.append(f"{name} {value:.4g}{within}")
    return ", ".join(shown)
