"""Build, train, look inside and serve Transformers of your own.

    regard.load("runs/m30k").translate(["A dog runs across the grass."])
    regard.train("translate", train=["train.en", "train.de"], run="runs/mine")

The public names are imported when first used, so that `import regard` is quick.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from regard.api.compare import compare
    from regard.api.run import Run, load
    from regard.api.train import average, resume, train
    from regard.errors import RegardError

_HOMES = {
    "Run": "regard.api",
    "average": "regard.api",
    "compare": "regard.api",
    "load": "regard.api",
    "resume": "regard.api",
    "train": "regard.api",
    "RegardError": "regard.errors",
}

__all__ = ["RegardError", "Run", "average", "compare", "load", "resume", "train"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'regard' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
