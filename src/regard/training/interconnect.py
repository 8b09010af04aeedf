"""Interconnects: how long all-reduce, all-gather and reduce-scatter take over the links inside and between nodes.

The model is that of NCCL's own tuning (NVIDIA/nccl, src/graph/tuning.cc): a latency for every hop, and bytes by the
bandwidth of the slowest part (alpha and beta). A ring goes through all devices, and crosses from node to node once for
each; it moves 2 (N - 1) / N of the bytes in an all-reduce, half of that in the other two. An all-reduce may go along trees
between nodes instead, whose hops grow with the logarithm of the nodes.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from regard.errors import UsageError, did_you_mean
from regard.training.devices import DEVICES, GIGA, THIS, Devices

MICRO = 1e-6
PER_NODE = 8
# NCCL counts at most 235 GB/s of the 300 that A100's NVLink has in each direction ("busBw"), and of that 0.9 on trees.
REACHED = 235 / 300
TREE_SHARE = 0.9
RING_START = 8.4 * MICRO  # baseLat, ring, "Simple"
TREE_START = 4.4 * MICRO  # baseLat, tree, "LL128"


@dataclass(frozen=True)
class Link:
    """A kind of link: bytes per second in one direction of a device or an adapter, and the seconds of a hop."""

    name: str
    bandwidth: float
    latency: float

    def __str__(self) -> str:
        return f"{self.name} ({self.bandwidth / GIGA:.3g} GB/s, {self.latency / MICRO:.3g} µs)"


def _link(name: str, gigabytes: float, micros: float) -> Link:
    return Link(name, gigabytes * GIGA, micros * MICRO)


# Latencies are NCCL's "hwLat" of rings ("Simple"): 3.4 µs over NVLink, 5.7 over PCIe, 9.6 over a network as InfiniBand is.
LINKS: Mapping[str, Link] = {
    link.name: link
    for link in (
        # NVIDIA's data sheets of P100, V100, A100 and H100 have twice these, for both directions together.
        _link("NVLINK1", 80, 3.4),
        _link("NVLINK2", 150, 3.4),
        _link("NVLINK3", 300, 3.4),
        _link("NVLINK4", 450, 3.4),
        # PCI-SIG: 8, 16 and 32 GT/s on 16 lanes, 128 of 130 bits of which are data.
        _link("PCIE3", 15.8, 5.7),
        _link("PCIE4", 31.5, 5.7),
        _link("PCIE5", 63, 5.7),
    )
}
NETWORKS: Mapping[str, Link] = {
    link.name: link
    for link in (
        # InfiniBand Trade Association: 100, 200 and 400 Gbit/s on 4 lanes.
        _link("IB-EDR", 12.5, 9.6),
        _link("IB-HDR", 25, 9.6),
        _link("IB-NDR", 50, 9.6),
        # Ethernet is named by its Gbit/s. 30 µs for a hop by TCP are our assumption; with RDMA it is as InfiniBand.
        _link("ETH-10", 1.25, 30),
        _link("ETH-25", 3.125, 30),
        _link("ETH-100", 12.5, 30),
        _link("ETH-400", 50, 30),
    )
}
# Between processes of one machine, by gloo over its loopback: assumed, unless it is measured (`process_timing.py`).
LOOPBACK = _link("loopback", 1, 100)


@dataclass(frozen=True, kw_only=True)
class InterconnectOptions:
    """What shall connect the devices.

    per_node:  devices in a node; 0 for as many as usual, at most 8
    link:      inside a node: NVLINK3, or figures of one device: 300GB/s@3us
    network:   between nodes: 8xIB-HDR for eight adapters in each, or figures of one adapter
    """

    per_node: int = 0
    link: str = ""
    network: str = ""


@dataclass(frozen=True, kw_only=True)
class Interconnect:
    """Devices in nodes, with links inside and adapters between them."""

    n_devices: int
    per_node: int
    link: Link
    network: Link
    n_adapters: int = 1  # in each node

    @property
    def n_nodes(self) -> int:
        return self.n_devices // self.per_node

    @property
    def bandwidth(self) -> float:
        """Bytes per second that pass each device at most: by its link, or by what the adapters of its node carry."""
        slowest = self.link.bandwidth
        if self.n_nodes > 1:
            slowest = min(slowest, self.n_adapters * self.network.bandwidth)
        return REACHED * slowest

    def with_devices(self, n_devices: int) -> "Interconnect":
        """The same with so many devices, in nodes of the same size as far as there are so many."""
        return replace(self, n_devices=n_devices, per_node=min(self.per_node, n_devices))

    def all_reduce(self, n_bytes: float) -> float:
        """The seconds until each device has the sum of what all have: by a ring or by trees, whichever is faster."""
        if self.n_devices == 1:
            return 0.0
        n = self.n_devices
        ring = RING_START + self._latency(2) + 2 * (n - 1) / n * n_bytes / self.bandwidth
        return min(ring, self._tree(n_bytes))

    def all_gather(self, n_bytes: float) -> float:
        """The seconds until each device has all of the bytes, of which it had its share; reduce-scatter takes the same."""
        if self.n_devices == 1:
            return 0.0
        n = self.n_devices
        return RING_START + self._latency(1) + (n - 1) / n * n_bytes / self.bandwidth

    def latency_of_all_reduce(self) -> float:
        """The seconds of an all-reduce of nothing."""
        return self.all_reduce(0)

    def _latency(self, rounds: int) -> float:
        """Of all hops of a ring: between nodes one for each, the others inside."""
        between = self.n_nodes - 1
        return rounds * ((self.n_devices - 1 - between) * self.link.latency + between * self.network.latency)

    def _tree(self, n_bytes: float) -> float:
        hops = (self.per_node - 1) * self.link.latency + math.log2(self.n_nodes) * self.network.latency
        return TREE_START + 2 * hops + 2 * n_bytes / (TREE_SHARE * self.bandwidth)

    def __str__(self) -> str:
        if self.link == LOOPBACK:
            return f"{self.link}, assumed"
        inside = f"{self.per_node} per node by {self.link}"
        if self.n_nodes == 1:
            return inside
        return f"{inside}, {self.n_nodes:,} nodes, each with {self.n_adapters} × {self.network}"


def find_interconnect(options: InterconnectOptions, devices: Devices) -> Interconnect:
    """Return what connects the devices: as asked for, else as usual for them."""
    known, n_devices = DEVICES.get(devices.name), devices.n_devices
    if devices.name == THIS:
        if asked := [f"--{name.replace('_', '-')}" for name, value in vars(options).items() if value]:
            raise UsageError(f"{asked[0]} is for --devices, not for this machine.", "Leave it out.")
        return Interconnect(n_devices=n_devices, per_node=n_devices, link=LOOPBACK, network=LOOPBACK)
    per_node = _per_node(options.per_node, n_devices)
    link = find_link(options.link or (known.link if known else "PCIE4"), LINKS, flag="--link")
    count, name = re.fullmatch(
        r"\s*(?:(\d+)\s*[x×*]\s*)?(.*)", options.network or (known.network if known else "ETH-100")
    ).groups()  # type: ignore[union-attr]  # it always matches
    if count is not None and not int(count):
        raise UsageError("--network needs at least one adapter per node.", "Such as 8xIB-HDR, or IB-HDR for one.")
    network = find_link(name, NETWORKS, flag="--network")
    return Interconnect(n_devices=n_devices, per_node=per_node, link=link, network=network, n_adapters=int(count or 1))


def find_link(text: str, known: Mapping[str, Link], *, flag: str) -> Link:
    """Return the link of this name, or of these figures: 25GB/s, 200Gbit/s@5us."""
    if found := re.fullmatch(r"\s*([\d.]+)\s*(GB|Gbit)/s(?:\s*@\s*([\d.]+)\s*[uµ]s)?\s*", text, re.IGNORECASE):
        try:
            gigabytes, micros = float(found[1]) / (8 if found[2].lower() == "gbit" else 1), float(found[3] or 10)
        except ValueError:
            gigabytes = 0.0
        if not gigabytes:
            raise UsageError(f"{flag} must be faster than '{text}'.", "Such as 25GB/s@10us.")
        return _link("as given", gigabytes, micros)
    plain = re.sub(r"[\s_]", "-", text.strip().upper())
    if plain not in known:
        near = did_you_mean(plain, known)
        raise UsageError(f"Unknown {flag.removeprefix('--')} '{text}'.", f"{near} Or give figures: {flag} 25GB/s@10us")
    return known[plain]


def _per_node(asked: int, n_devices: int) -> int:
    if asked < 0:
        raise UsageError(f"--per-node must be at least 1, not {asked:,}.", "Usual is 8.")
    if asked and n_devices % asked and n_devices > asked:
        raise UsageError(
            f"{n_devices:,} devices do not fill nodes of {asked:,}.", "Give another --per-node, or a multiple of it."
        )
    return min(asked, n_devices) if asked else max(n for n in range(1, PER_NODE + 1) if n_devices % n == 0)
