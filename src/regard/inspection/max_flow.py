"""Maximum flow through layers of capacities, for all pairs of positions: what attention flow is made of.

Push-relabel (Goldberg & Tarjan 1988), the flows from all sources to one sink at once: excess is pushed to whatever is nearer
to the sink, or back up; whole layers at a time, as no two of their edges share a capacity. Labels are the exact distances,
found anew before each round. What cannot reach the sink any more stays where it is: only the value is asked for. A flow that
has reached an upper bound (`most_flow`), which is exact more often than not, is done.
"""

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]  # (T, T), or with axes in front: flows (B), layers (L)
_NOTHING = 1e-12  # of capacity or excess: rounding
_WORD = 64  # bits


def all_flows(layers: list[Matrix]) -> Matrix:
    """(T, T): the maximum flow from each position above the last layer to each position below the first."""
    most = most_flow(layers)
    return np.stack([flows_to(layers, sink, most[:, sink]) for sink in range(len(most))], axis=1)


def most_flow(layers: list[Matrix]) -> Matrix:
    """(T, T), no less than the maximum flow: a position passes on to each below at most what that could, or was to, pass on
    alone; and a sink takes no more than all edges to it, a source gives no more than all edges from it."""
    down, up = layers[0], layers[-1]
    for above in layers[1:]:
        down = _limited(above, down)
    for below in layers[-2::-1]:
        up = _limited(up, below)
    ends = np.minimum(layers[-1].sum(1)[:, None], layers[0].sum(0))
    least: Matrix = np.minimum(np.minimum(down, up), ends)
    return least


def _limited(above: Matrix, below: Matrix) -> Matrix:
    return np.stack([np.minimum(row[:, None], below).sum(0) for row in above])


def flows_to(layers: list[Matrix], sink: int, most: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """(T,): the maximum flow from each position above the last layer to a sink below the first; `most`: bounds of them."""
    found = np.zeros(len(layers[0]))
    sources = np.nonzero(most > 0)[0]
    if len(layers) == 1:
        return layers[0][:, sink]
    flow = _Flows(layers, sources, sink)
    while len(sources):
        flow.push(*flow.labels())
        is_done = (flow.arrived >= most[sources] - _NOTHING) | ~flow.can_go_on()
        if is_done.any():
            found[sources[is_done]] = flow.arrived[is_done]
            sources = sources[~is_done]
            flow.keep(~is_done)
    return found


class _Flows:
    """Flows from several sources to one sink, each with room and excess of its own.

    down:    (B, L, T, T) what an edge can still take, from a position (row) to one below (column)
    up:      (B, L, T, T) what it carries, and could give back
    excess:  (B, L + 1, T) what has come to a position, and was not passed on
    """

    def __init__(self, layers: list[Matrix], sources: npt.NDArray[np.intp], sink: int) -> None:
        self.sink, self.top, own = sink, len(layers), np.arange(len(sources))
        self.down = np.repeat(np.array(layers)[None], len(sources), axis=0)
        self.up = np.zeros_like(self.down)
        self.excess = np.zeros((len(sources), self.top + 1, len(layers[0])))
        # The sources have pushed all that they can.
        self.excess[own, self.top - 1] = self.up[own, -1, sources] = self.down[own, -1, sources]
        self.down[own, -1, sources] = 0.0
        self._distances: Matrix | None = None

    @property
    def arrived(self) -> npt.NDArray[np.float64]:
        """(B,): what has come to the sink."""
        return self.excess[:, 0, self.sink]

    def keep(self, which: npt.NDArray[np.bool_]) -> None:
        """Go on with some of the flows."""
        self.down, self.up, self.excess = self.down[which], self.up[which], self.excess[which]
        self._distances = None if self._distances is None else self._distances[which]

    def labels(self) -> tuple[Matrix, bool]:
        """(B, L + 1, T): distances from the sink; and whether these are the first, when nothing can go back up yet."""
        if self._distances is not None:
            return self._distances, False
        first = np.repeat(np.arange(self.top + 1.0)[:, None], self.excess.shape[2], axis=1)
        first[0] = np.inf
        first[0, self.sink] = 0.0
        return np.broadcast_to(first, self.excess.shape), True

    def can_go_on(self) -> npt.NDArray[np.bool_]:
        """(B,): whether there is excess from which edges with room lead to the sink."""
        self._distances = _distances(self.down, self.up, self.sink)
        waiting = (self.excess[:, : self.top] > _NOTHING) & np.isfinite(self._distances[:, : self.top])
        waiting[:, 0, self.sink] = False
        return np.asarray(waiting.any((1, 2)))

    def push(self, distances: Matrix, is_first: bool) -> None:
        """Push all excess one step nearer to the sink, layer by layer: down from the top, then back up."""
        for level in range(self.top - 1, 0, -1):
            nearer = distances[:, level, :, None] == distances[:, level - 1, None, :] + 1
            room = self.down[:, level - 1] * nearer
            pushed = (_spread if is_first else _filled)(self.excess[:, level], room)
            self.down[:, level - 1] -= pushed
            self.up[:, level - 1] += pushed
            self._move(level, level - 1, pushed)
        for level in range(0 if is_first else self.top):
            excess = self.excess[:, level] * (distances[:, level] > 0)
            nearer = distances[:, level, :, None] == distances[:, level + 1, None, :] + 1
            if not (nearer.any(2) & (excess > _NOTHING)).any():
                continue
            pushed = _filled(excess, self.up[:, level].swapaxes(1, 2) * nearer)
            self.up[:, level] -= pushed.swapaxes(1, 2)
            self.down[:, level] += pushed.swapaxes(1, 2)
            self._move(level, level + 1, pushed)

    def _move(self, start: int, end: int, pushed: Matrix) -> None:
        self.excess[:, start] -= pushed.sum(2)
        self.excess[:, end] += pushed.sum(1)


def _spread(excess: Matrix, room: Matrix) -> Matrix:
    """Give the excess (B, T) of each position to its edges (B, T, T) in proportion to the room they have."""
    shares = np.minimum(1.0, excess / np.maximum(room.sum(2), np.finfo(np.float64).tiny))
    spread: Matrix = room * shares[:, :, None]
    return spread


def _filled(excess: Matrix, room: Matrix) -> Matrix:
    """Give the excess to edges one after the other, as much as each has room for: so it comes to an end."""
    left = excess[:, :, None] - np.cumsum(room, axis=2) + room
    pushed: Matrix = np.minimum(np.maximum(left, 0.0), room)
    return pushed


def _distances(down: Matrix, up: Matrix, sink: int) -> Matrix:
    """How many edges with room lie between each position and the sink, breadth first: (B, L + 1, T); infinite for none."""
    falls, rises = _bits(down > _NOTHING), _bits((up > _NOTHING).swapaxes(2, 3))
    shape = len(down), down.shape[1] + 1, down.shape[2]
    distance, newest = np.full(shape, np.inf), np.zeros(shape, np.bool_)
    newest[:, 0, sink] = True
    n_steps = 0
    while newest.any():
        distance[newest] = n_steps
        ends, found = _bits(newest), np.zeros_like(newest)
        found[:, 1:] = (falls & ends[:, :-1, None]).any(3)
        found[:, :-1] |= (rises & ends[:, 1:, None]).any(3)
        newest = found & np.isinf(distance)
        n_steps += 1
    return distance


def _bits(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """Flags (…, T) as words of bits (…, W): 64 positions are compared at once."""
    missing = -flags.shape[-1] % _WORD
    padded = np.pad(flags, [(0, 0)] * (flags.ndim - 1) + [(0, missing)]) if missing else flags
    return np.packbits(padded, axis=-1).view(np.uint64)
