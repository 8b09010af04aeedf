"""Taps: named activations inside a network that a listener may record or replace, without hooks.

A module passes a tensor through `tap(self, "weights", tensor)`. With no listener that is one look at a variable. A listener
sees the tensor under its public name, the module's path plus the tap's own (`decoder.2.cross_attention.weights`), and may
return another tensor in its place: recording, ablation and patching are one mechanism.
"""

import contextlib
import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from torch import Tensor, nn

Listen = Callable[[str, Tensor], Tensor | None]


@dataclass(frozen=True)
class _Listener:
    paths: dict[nn.Module, str]
    patterns: tuple[str, ...]
    listen: Listen

    def name(self, module: nn.Module, tap: str) -> str | None:
        """Return the tap's public name if this listener asked for it."""
        path = self.paths.get(module)
        if path is None:
            return None
        name = f"{path}.{tap}" if path else tap
        return name if any(fnmatch.fnmatchcase(name, pattern) for pattern in self.patterns) else None


_listeners: ContextVar[tuple[_Listener, ...]] = ContextVar("listeners", default=())


def tap(module: nn.Module, name: str, tensor: Tensor) -> Tensor:
    """Show `tensor` to the listeners of this tap; return it, or what the last of them put in its place."""
    for listener in _listeners.get():
        public = listener.name(module, name)
        if public is not None:
            replaced = listener.listen(public, tensor)
            tensor = tensor if replaced is None else replaced
    return tensor


def listened(module: nn.Module, *names: str) -> bool:
    """Return whether anybody listens to one of these taps of the module."""
    listeners = _listeners.get()
    return bool(listeners) and any(one.name(module, name) is not None for one in listeners for name in names)


def anybody_listens() -> bool:
    """Return whether there is any listener, to whatever."""
    return bool(_listeners.get())


@contextlib.contextmanager
def listening(model: nn.Module, patterns: str | Sequence[str], listen: Listen) -> Iterator[None]:
    """Call `listen(name, tensor)` at every tap whose public name matches a pattern (`encoder.*.weights`) in the block."""
    patterns = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    paths = {module: path for path, module in model.named_modules()}
    token = _listeners.set((*_listeners.get(), _Listener(paths, patterns, listen)))
    try:
        yield
    finally:
        _listeners.reset(token)


class Record(Mapping[str, Tensor]):
    """What was heard, detached, by public name: the last tensor of each, or all of them in order.

    One forward pass shows most taps once; those inside a recurrence, or in a loop that decodes, once per step.
    """

    def __init__(self) -> None:
        self._calls: dict[str, list[Tensor]] = {}

    def __getitem__(self, name: str) -> Tensor:
        return self._calls[name][-1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def calls(self, name: str) -> tuple[Tensor, ...]:
        """Return every tensor that was heard under this name, the first one first."""
        return tuple(self._calls[name])

    def keep(self, name: str, tensor: Tensor) -> None:
        """Append a tensor; what `listening` calls."""
        self._calls.setdefault(name, []).append(tensor.detach())


@contextlib.contextmanager
def recording(model: nn.Module, patterns: str | Sequence[str] = "*") -> Iterator[Record]:
    """Yield a record that fills with the matching taps' tensors."""
    record = Record()
    with listening(model, patterns, record.keep):
        yield record
