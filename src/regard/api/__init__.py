"""What Python users call: everything the command does, without the command.

run = regard.train("translate", train=["a.en", "a.de"], run="runs/mine", steps=2000)
run.translate("A dog runs.").text
regard.load("runs/reviews").predict("What a film!").label
regard.Classifier.load("runs/reviews").embed(["What a film!"])[0].vector
"""

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
from regard.api.new_run import with_defaults
from regard.api.run import Run, load
from regard.api.train import average, resume, train
from regard.inspection.trace_file import load_trace

__all__ = [
    "Captioner",
    "Classifier",
    "Denoiser",
    "ImageClassifier",
    "LanguageModel",
    "MaskedLM",
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
    "with_defaults",
]
