"""Next steps: what to do with a trained run, as commands that it takes; with a custom network, as lines of Python."""

import shlex

from regard.config import RunConfig
from regard.tasks.spec import find_spec


def next_steps(run: str, config: RunConfig, *, example: str = "") -> list[str]:
    """Return how to use a run, to score it and to draw its curves; `example`: what the command of its task may be given."""
    spec, word = find_spec(config.task), shlex.quote(run)
    plot = f"regard plot {word}"
    if not config.model.preset:
        use = f'run = regard.load("{run}", model=YourNetwork(…))'
        return [use, f"run.{spec.verb}(…)", 'run.evaluate("TEST-FILE")', plot]
    return [f"regard {spec.verb} {word} {example or spec.example}", f"regard evaluate {word} --data TEST-FILES", plot]


def how_to_resume(run: str, config: RunConfig, *, processes: int = 1) -> str:
    """Return how to go on with a run that was stopped, by as many processes of a machine."""
    if not config.model.preset:
        return f'regard.resume("{run}", model=YourNetwork(…))'
    return f"regard resume {shlex.quote(run)}{f' --processes {processes}' if processes > 1 else ''}"


def how_to_repeat(config: RunConfig) -> str:
    """Return, as a sentence, how to train a run once more from its config.toml."""
    if not config.model.preset:
        return (
            "All settings but the network are in `config.toml`; repeating the run needs that network: "
            '`regard.train("config.toml", model=YourNetwork(…), run="ANOTHER")`.'
        )
    return "All settings are in `config.toml`; `regard train config.toml --run ANOTHER` repeats the run."
