"""Whether a network is still the one that was loaded: weights changed in place, and weights or modules replaced.

It is asked before every sentence that another engine translates: so it does not walk through the modules, and its loops are
those of `map`, which take half the time.
"""

from operator import attrgetter, is_
from typing import Any

from torch import nn

_version = attrgetter("_version")  # of a tensor: how often it was changed in place


class NetworkWatch:
    """Remembers where each weight and module of a network stands, and which version of each weight."""

    def __init__(self, network: nn.Module) -> None:
        places = [
            (holder, name, one)
            for module in network.modules()
            for holder in (module._parameters, module._modules)
            for name, one in holder.items()
            if one is not None
        ]
        self._holders: list[dict[str, Any]] = [holder for holder, _, _ in places]
        self._names = [name for _, name, _ in places]
        self._held: list[Any] = [one for _, _, one in places]
        self._weights = list(network.parameters())
        self._versions = list(map(_version, self._weights))

    def is_changed(self) -> bool:
        """Whether anything is other than it was."""
        if not all(map(is_, map(dict.get, self._holders, self._names), self._held)):
            return True
        return list(map(_version, self._weights)) != self._versions
