"""What Python users call: everything the command does, without the command.

import regard
run = regard.train("translate", train=["a.en", "a.de"], run="runs/mine", settings={"training.steps": 2000})
run = regard.load("runs/mine")
run.translate(["A dog runs."])[0].text

regard.load("runs/reviews").predict(["What a film!"])[0].label
regard.load("runs/reviews").embed(["What a film!"])[0].vector
"""

from regard.api.compare import compare
from regard.api.evaluate import Evaluation, read_test_set
from regard.api.predict import Prediction
from regard.api.run import Run, load
from regard.api.train import average, resume, train, with_defaults

__all__ = [
    "Evaluation",
    "Prediction",
    "Run",
    "average",
    "compare",
    "load",
    "read_test_set",
    "resume",
    "train",
    "with_defaults",
]
