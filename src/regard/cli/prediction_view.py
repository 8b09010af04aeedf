"""What a run said of a text: as lines for people, as cells of a table, as JSON."""

from itertools import islice
from typing import TYPE_CHECKING, Any

from regard.cli.translate import one_line

if TYPE_CHECKING:
    from regard.api import Prediction


def as_lines(found: "Prediction", *, top: int) -> list[str]:
    """Write a prediction as plain lines; `top` is how many classes, or guesses for a blank, 0 where nobody asked."""
    from regard.tasks.denoising.fill_mask import Filled
    from regard.tasks.images.caption_generation import Described
    from regard.tasks.labelling.classification import Classified
    from regard.tasks.labelling.tagging import TaggedText

    if isinstance(found, Described):
        if len(found.candidates) > 1:
            return [f"{one.score:.4f}\t{one_line(one.text)}" for one in found.candidates]
        return [one_line(found.text)]
    if isinstance(found, TaggedText):
        return [*(f"{word}\t{tag}" for word, tag in zip(found.words, found.tags, strict=True)), ""]
    if isinstance(found, Filled):
        guesses = [
            f"{number}\t{one_line(guess.text).strip()}\t{guess.probability:.4f}"
            for number, own in enumerate(found.guesses if top else (), start=1)
            for guess in own
        ]
        return [one_line(found.text), *guesses]
    if isinstance(found, Classified):
        likeliest = islice(found.probabilities.items(), max(1, top))
        return ["\t".join(f"{one_line(label)}\t{share:.4f}" for label, share in likeliest)]
    return [f"{found.value:.6g}"]


def column_names(task: str, *, top: int) -> list[str]:
    """The names of the cells of a prediction."""
    if task == "regress":
        return ["prediction"]
    ranks = ["", *(f"_{rank}" for rank in range(2, top + 1))]
    return [f"{name}{rank}" for rank in ranks for name in ("prediction", "probability")]


def as_cells(found: "Prediction", *, top: int) -> list[str | float]:
    """The cells of a class or a number: each class with its probability, the likeliest first."""
    from regard.tasks.labelling.classification import Classified
    from regard.tasks.labelling.regression import Measured

    if isinstance(found, Measured):
        return [found.value]
    assert isinstance(found, Classified)
    likeliest = list(islice(found.probabilities.items(), max(1, top)))
    missing = max(1, top) - len(likeliest)  # of a run with fewer classes
    cells: list[str | float] = []
    for label, share in likeliest:
        cells += [label, round(share, 6)]
    return [*cells, *("", "") * missing]


def as_json(found: "Prediction", *, top: int) -> dict[str, Any]:
    """Write a prediction with all that is known of it, or the likeliest `top`."""
    from regard.tasks.denoising.fill_mask import Filled
    from regard.tasks.images.caption_generation import Described
    from regard.tasks.labelling.classification import Classified
    from regard.tasks.labelling.regression import Measured

    if isinstance(found, Described):
        return {
            "caption": found.text,
            "candidates": [
                {"text": one.text, "score": one.score, "tokens": one.tokens, "log_probs": one.log_probs}
                for one in found.candidates
            ],
        }
    if isinstance(found, Measured):
        return {"value": found.value, "cut": found.cut}
    if isinstance(found, Classified):
        probabilities = dict(islice(found.probabilities.items(), top or None))
        return {
            "label": found.label,
            "probability": found.probability,
            "probabilities": probabilities,
            "cut": found.cut,
        }
    if isinstance(found, Filled):
        blanks = [
            [{"text": guess.text, "probability": guess.probability} for guess in guesses] for guesses in found.guesses
        ]
        return {"filled": found.text, "blanks": blanks}
    facts = {"words": found.words, "tags": found.tags, "probabilities": found.probabilities}
    return {**facts, "parts": found.n_parts}
