"""Train every golden run without another's weights by 1, 2 and 4 processes for 50 updates, and compare what they learn.

    python -m tests.soak.rank_equality                      both precisions; ends with 1 where a difference is too large
    python -m tests.soak.rank_equality --only mask-bert

What differs is measured as the norm of the difference over the norm, of all losses, gradient norms, weights and their moving
averages: it must stay below 1e-5 in double precision and below 1e-3 in single precision.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tests.golden.run import RUNS, write_data
from tests.training.ranks import finish, start

SIZES = (1, 2, 4)
STEPS = 50
MOST = {"float64": 1e-5, "float32": 1e-3}
NAMES = [run.name for run in RUNS if not run.init]


def differences(name: str, size: int, out: Path) -> dict[str, float]:
    """What differs between one process and the last of so many."""
    alone, shared = np.load(out / f"{name}-1-0.npz"), np.load(out / f"{name}-{size}-{size - 1}.npz")
    return {key: float(np.linalg.norm(alone[key] - shared[key]) / np.linalg.norm(alone[key])) for key in alone}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="RUN")
    parser.add_argument("--precision", choices=MOST, nargs="+", default=list(MOST))
    chosen = parser.parse_args(arguments)
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="regard-equality-") as folder:
        data = Path(folder) / "data"
        write_data(data)
        for precision in chosen.precision:
            for name in chosen.only:
                program = ["-m", "tests.training.rank_program", str(data), folder, precision, str(STEPS), name]
                for size in SIZES:
                    for code, said in finish(start(program, size=size)):
                        if code:
                            raise SystemExit(f"{name} by {size} processes ended with {code}:\n{said}")
                found = {size: differences(name, size, Path(folder)) for size in SIZES[1:]}
                largest = max(max(one.values()) for one in found.values())
                wrong += largest >= MOST[precision]
                shown = "  ".join(
                    f"{size}: {key} {value:.0e}" for size, one in found.items() for key, value in one.items()
                )
                print(f"{precision}  {name:36}{shown}{'  TOO MUCH' * (largest >= MOST[precision])}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
