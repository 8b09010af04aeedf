"""Seconds until `regard --help` has answered, and until `import regard` is done; beside a bare Python and `import torch`."""

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from benchmarks.rounds import options, report, table, tell

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import regard": [sys.executable, "-c", "import regard"],
    "regard --help": [str(Path(sys.executable).with_name("regard")), "--help"],
    "import torch": [sys.executable, "-c", "import torch"],
}


def main() -> None:
    arguments = options("Start-up time.", rounds=11).parse_args()
    n_rounds = 1 if arguments.quick else arguments.rounds
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for number in range(n_rounds + 1):
        for name, command in COMMANDS.items():
            began = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            if number:  # the first round reads the files from the disk
                seconds[name].append(time.perf_counter() - began)
        tell(f"round {number} of {n_rounds}")
    rows = [[name, f"{median(times):.2f} s", f"{min(times):.2f} s"] for name, times in seconds.items()]
    text = f"Start-up, {n_rounds} rounds\n\n{table(['', 'median', 'best'], rows)}"
    report("startup", text, {"seconds": seconds}, quick=arguments.quick)


if __name__ == "__main__":
    main()
