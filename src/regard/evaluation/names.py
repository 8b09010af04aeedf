"""What scores are called, and how they are written for people. Loads nothing, so that lists of runs are quick."""

LABELS = {  # in the order in which tables have them
    "loss": "loss",
    "perplexity": "perplexity",
    "bits_per_byte": "bits per byte",
    "bleu": "BLEU",
    "chrf": "chrF",
    "ter": "TER",
    "accuracy": "accuracy",
    "top_5": "top-5 accuracy",
    "masked_accuracy": "masked accuracy",
    "macro_f1": "macro F1",
    "entity_f1": "entity F1",
    "entity_precision": "entity precision",
    "entity_recall": "entity recall",
    "spearman": "Spearman",
    "r_squared": "R²",
    "mae": "MAE",
}
# Digits behind the point; of what is not named here, a percentage mostly, one.
DIGITS = {"loss": 3, "perplexity": 2, "bits_per_byte": 3, "spearman": 3, "r_squared": 3, "mae": 3}
# The one score to show of a run, beside its loss: the first of these that it has.
TELLING = ("bleu", "entity_f1", "accuracy", "spearman", "masked_accuracy", "bits_per_byte", "perplexity")


def digits(name: str) -> int:
    """How many digits of a score stand behind the point."""
    return DIGITS.get(name, 1)
