"""One thread for torch, which reads this when it is first imported: a child forked from a process with more hangs."""

import os

os.environ["OMP_NUM_THREADS"] = "1"
