"""What the processes of a launch know of each other beside gradients: their versions and settings, who failed, who hangs.

Kept in torchrun's key-value store. A thread of each process writes a heartbeat there, with the number of its updates: where
a connection breaks or an answer does not come, the process that has fallen silent, or behind, is named. A process that
fails says why, so that the leader can show it; all others end quietly.
"""

import atexit
import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from datetime import timedelta
from itertools import count
from typing import Any, Self

from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from regard.errors import RegardError, TrainingError, UsageError
from regard.runtime import LAUNCHER, Ranks

BEAT = 1.0  # seconds between heartbeats
SILENT = 4 * BEAT  # after which a process counts as silent where one is missing
_RESUME = "Go on from the last checkpoint: regard resume RUN"
_numbers = count()  # of the runs that this program has trained: each has keys of its own


class LostError(TrainingError):
    """Training ends because of another process. `told`: somebody else shows why."""

    def __init__(self, problem: str, remedy: str, *, told: bool, exit_code: int = 1) -> None:
        super().__init__(problem, remedy)
        self.told = told
        self.exit_code = exit_code


class RankStore:
    """One process's view of the store that all have in common.

    timeout: the seconds that processes wait for one another
    """

    def __init__(self, store: Store, ranks: Ranks, *, timeout: float) -> None:
        self.store = store
        self.ranks = ranks
        self.timeout = timeout
        self.updates = 0
        self._leader: tuple[bytes, float] = (b"", time.monotonic())  # its last heartbeat, and when that was heard
        self._closed = threading.Event()
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    @classmethod
    def connect(cls, ranks: Ranks, *, timeout: float) -> Self:
        """Find the store where the environment says that it is."""
        place = f"{os.environ.get('MASTER_ADDR', '')}:{os.environ.get('MASTER_PORT', '')}"
        try:
            store, _, _ = next(rendezvous("env://", timeout=timedelta(seconds=timeout)))
        except (ValueError, RuntimeError) as error:
            reason = "the port is in use" if "EADDRINUSE" in str(error) else f"no answer in {timeout:,.0f} seconds"
            raise TrainingError(
                f"Rank {ranks.rank} cannot meet the others at {place} (MASTER_ADDR:MASTER_PORT): {reason}.",
                "Check that address, and that rank 0 runs there; torchrun --standalone finds a free port by itself.",
            ) from error
        return cls(PrefixStore(f"regard-{next(_numbers)}", store), ranks, timeout=timeout)

    def compare(self, facts: Mapping[str, Any]) -> None:
        """Refuse to train where a process differs from the leader in a fact, such as a version; wait for all of them."""
        if self.ranks.rank == 0:
            self.store.set("facts", json.dumps(facts))
        else:
            self._refuse_others(facts)
        self.done(f"agreed-{self.ranks.rank}")
        for rank in range(self.ranks.size):
            self.wait_for(f"agreed-{rank}", rank=rank, timeout=self.timeout)

    def _refuse_others(self, facts: Mapping[str, Any]) -> None:
        theirs, own = json.loads(self.wait_for("facts", timeout=self.timeout)), json.loads(json.dumps(facts))
        for name in {**theirs, **own}:
            if own.get(name) != theirs.get(name):
                here, there = _differing(own.get(name), theirs.get(name))
                raise UsageError(
                    f"It differs from rank 0 in its {name}: {here}, not {there}.",
                    "Start all processes with the same command, the same versions and the same files.",
                )

    def wait_for(self, key: str, *, rank: int = 0, timeout: float | None = None) -> bytes:
        """Wait until a value of a rank is there; for so many seconds, or as long as the leader lives."""
        began = time.monotonic()
        while not self._has(key):
            if timeout is not None and time.monotonic() - began > timeout:
                raise self._lost(rank, f"has not answered for {timeout:,.0f} seconds")
            self.refuse_failure(leader_only=True)
            time.sleep(0.02)
        return bytes(self.store.get(key))

    def refuse_failure(self, *, leader_only: bool, waited: float = 0.0) -> None:
        """Raise what has gone wrong while this process waits: another one has failed, or does not answer.

        leader_only: others are waited for as long as the leader lives, who may validate or save meanwhile
        """
        if self._has("failure"):
            raise self._failure()
        if leader_only:
            beat = bytes(self.store.get("beat-0")) if self._has("beat-0") else b""
            if beat != self._leader[0]:
                self._leader = (beat, time.monotonic())
            if self.ranks.rank and time.monotonic() - self._leader[1] > self.timeout:
                raise self._lost(0, f"has not answered for {self.timeout:,.0f} seconds")
        elif waited > self.timeout:
            raise self._lost(self._missing(), f"has not answered for {self.timeout:,.0f} seconds")

    def broken(self) -> LostError:
        """Return the error for a connection that broke: the process at its other end has failed, or was killed."""
        end = time.monotonic() + SILENT
        while time.monotonic() < end and not self._has("failure"):
            if LAUNCHER in os.environ and time.monotonic() > end - SILENT + BEAT:
                return self._leaving(LostError("Another process has ended.", _RESUME, told=True))
            time.sleep(0.05)
        if self._has("failure"):
            return self._failure()
        return self._lost(self._missing(), "was killed, or its machine is gone")

    def announce(self, error: RegardError) -> RegardError:
        """Tell all others why this process ends; return the error as it is to be shown: by the leader, if it lives."""
        problem = f"Rank {self.ranks.rank}: {error.problem}"
        if self._claim("failed"):
            with contextlib.suppress(RuntimeError):
                self.store.set("failure", json.dumps([problem, error.remedy, error.exit_code]))
            if self._claim("told", after=0.0 if self.ranks.rank == 0 else SILENT):
                shown = RegardError(problem, error.remedy)
                shown.exit_code = error.exit_code
                self._linger()
                return shown
        return self._leaving(LostError(problem, error.remedy, told=True, exit_code=error.exit_code))

    def done(self, key: str) -> None:
        """Say that something is done that others wait for."""
        self.store.set(key, "done")

    def close(self) -> None:
        """Stop the heartbeat."""
        self._closed.set()

    def _failure(self) -> LostError:
        problem, remedy, exit_code = json.loads(self.store.get("failure"))
        told = not (self.ranks.rank == 0 and self._claim("told"))
        self._linger()
        return self._leaving(LostError(problem, remedy, told=told, exit_code=exit_code))

    def _linger(self) -> None:
        """Stay a moment where the store ends with this process, and the others have yet to read it."""
        if self.ranks.rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
            time.sleep(2 * BEAT)

    def _lost(self, rank: int | None, what: str) -> LostError:
        who = "A process" if rank is None else f"Rank {rank}"
        return self._leaving(
            LostError(f"{who} {what}: the run cannot go on without it.", _RESUME, told=not self._claim("told"))
        )

    def _leaving(self, error: LostError) -> LostError:
        """Let this process end by itself: torch would wait for ever for collectives that the others never finish."""
        atexit.register(_leave, error.exit_code)
        return error

    def _missing(self) -> int | None:
        """Find the process that is silent, else one that is behind."""
        before = self._beats()
        time.sleep(SILENT)
        now = self._beats()
        others = [rank for rank in range(self.ranks.size) if rank != self.ranks.rank]
        silent = [rank for rank in others if now[rank] is None or now[rank] == before[rank]]
        behind = [rank for rank in others if (beat := now[rank]) and beat[1] < self.updates]
        return next(iter(silent or behind), None)

    def _beats(self) -> list[tuple[int, int] | None]:
        """The last heartbeat of each process, and how many updates it had made by then."""
        found: list[tuple[int, int] | None] = [None] * self.ranks.size
        for rank in range(self.ranks.size):
            if self._has(f"beat-{rank}"):
                number, updates = json.loads(self.store.get(f"beat-{rank}"))
                found[rank] = (number, updates)
        return found

    def _beat(self) -> None:
        for number in count():
            with contextlib.suppress(RuntimeError):  # the store is gone, with the launcher: the connections break, too
                self.store.set(f"beat-{self.ranks.rank}", json.dumps([number, self.updates]))
            if self._closed.wait(BEAT):
                return

    def _has(self, key: str) -> bool:
        try:
            return bool(self.store.check([key]))
        except RuntimeError:
            return False

    def _claim(self, key: str, *, after: float = 0.0) -> bool:
        """Whether this process is the first, of all, to claim something; `after` so many seconds in which others may."""
        end = time.monotonic() + after
        while time.monotonic() < end:
            if self._has(key):
                return False
            time.sleep(0.05)
        try:
            return int(self.store.add(key, 1)) == 1
        except RuntimeError:
            return True


def _leave(exit_code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)


def _differing(own: Any, theirs: Any) -> tuple[str, str]:
    """Show two values that differ; of two tables the first key that does."""
    if isinstance(own, dict) and isinstance(theirs, dict):
        for key in {**theirs, **own}:
            if own.get(key) != theirs.get(key):
                here, there = _differing(own.get(key), theirs.get(key))
                return f"{key} {here}", there
    return str(own), str(theirs)
