"""Build, train and look inside Transformers of your own.

    regard.load("runs/m30k").translate("A dog runs across the grass.").text
    regard.train("translate", train=["train.en", "train.de"], run="runs/mine", steps=2000)

The public names are imported when first used, so that `import regard` is quick.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from regard.api import load_trace
    from regard.api.compare import compare
    from regard.api.export import export
    from regard.api.import_model import import_model
    from regard.api.kinds import (
        Captioner,
        Classifier,
        Denoiser,
        ImageClassifier,
        LanguageModel,
        MaskedLM,
        Regressor,
        Similarity,
        Tagger,
        Translator,
    )
    from regard.api.run import Run, load
    from regard.api.train import average, resume, train
    from regard.errors import RegardError

__all__ = [
    "Captioner",
    "Classifier",
    "Denoiser",
    "ImageClassifier",
    "LanguageModel",
    "MaskedLM",
    "RegardError",
    "Regressor",
    "Run",
    "Similarity",
    "Tagger",
    "Translator",
    "average",
    "compare",
    "export",
    "import_model",
    "load",
    "load_trace",
    "resume",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'regard' has no attribute '{name}'")
    import importlib

    home = "regard.errors" if name == "RegardError" else "regard.api"
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
