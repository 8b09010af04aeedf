import math
from dataclasses import replace

import pytest

from regard.errors import UsageError
from regard.training.devices import DEVICES, DeviceOptions, Devices, find_devices
from regard.training.interconnect import (
    LINKS,
    LOOPBACK,
    NETWORKS,
    REACHED,
    RING_START,
    TREE_SHARE,
    TREE_START,
    Interconnect,
    InterconnectOptions,
    Link,
    find_interconnect,
)

FAST, SLOW = Link("fast", 100e9, 1e-6), Link("slow", 10e9, 10e-6)
NODE = Interconnect(n_devices=8, per_node=8, link=FAST, network=SLOW)


def devices(name: str) -> Devices:
    return find_devices(DeviceOptions(name=name))


def found(name: str, **options: object) -> Interconnect:
    return find_interconnect(InterconnectOptions(**options), devices(name))  # type: ignore[arg-type]


def test_in_a_ring_each_byte_passes_each_link_once_or_twice() -> None:
    # Twice 7/8 of the bytes by the bandwidth, over 14 hops; a gather half of that.
    assert NODE.all_reduce(8e9) == pytest.approx(RING_START + 14e-6 + 2 * 7 / 8 * 8e9 / (REACHED * 100e9))
    assert NODE.all_gather(8e9) == pytest.approx(RING_START + 7e-6 + 7 / 8 * 8e9 / (REACHED * 100e9))


def test_between_nodes_the_adapters_are_the_narrowest_part() -> None:
    nodes = replace(NODE, n_devices=32)
    assert nodes.n_nodes == 4
    assert nodes.bandwidth == REACHED * 10e9
    assert replace(nodes, n_adapters=4).bandwidth == REACHED * 40e9
    assert replace(nodes, n_adapters=16).bandwidth == REACHED * 100e9
    # 31 hops, of which 3 go from node to node.
    assert nodes.all_gather(0) == pytest.approx(RING_START + 28e-6 + 3 * 10e-6)


def test_trees_are_for_small_messages_among_many_nodes() -> None:
    many = replace(NODE, n_devices=4096)
    assert many.all_reduce(1000) == pytest.approx(
        TREE_START + 2 * (7e-6 + math.log2(512) * 10e-6) + 2000 / (TREE_SHARE * many.bandwidth)
    )
    ring = RING_START + 2 * (3584 * 1e-6 + 511 * 10e-6) + 2 * 4095 / 4096 * 1e12 / many.bandwidth
    assert many.all_reduce(1e12) == pytest.approx(ring)


def test_one_device_has_nobody_to_talk_to() -> None:
    alone = replace(NODE, n_devices=1, per_node=1)
    assert (alone.all_reduce(1e9), alone.all_gather(1e9)) == (0, 0)


def test_more_devices_fill_nodes_of_the_same_size() -> None:
    assert NODE.with_devices(64).n_nodes == 8
    assert (NODE.with_devices(2).n_nodes, NODE.with_devices(2).per_node) == (1, 2)


def test_what_is_usual_for_known_devices() -> None:
    for name, device in DEVICES.items():
        usual = found(f"64x{name}")
        assert usual.link == LINKS[device.link]
        assert usual.network == NETWORKS[device.network.split("x")[-1]]
    assert str(found("64xA100")) == (
        "8 per node by NVLINK3 (300 GB/s, 3.4 µs), 8 nodes, each with 8 × IB-HDR (25 GB/s, 9.6 µs)"
    )
    assert str(found("8xT4")) == "8 per node by PCIE3 (15.8 GB/s, 5.7 µs)"


def test_processes_of_this_machine_speak_over_its_loopback() -> None:
    here = Devices(name="this", n_devices=4, peak=1e9, precision="fp32", source="")
    usual = find_interconnect(InterconnectOptions(), here)
    assert (usual.link, usual.n_nodes) == (LOOPBACK, 1)
    assert str(usual) == "loopback (1 GB/s, 100 µs), assumed"


@pytest.mark.parametrize(("n_devices", "per_node"), [(1, 1), (6, 6), (7, 7), (12, 6), (22, 2), (13, 1), (64, 8)])
def test_nodes_are_filled(n_devices: int, per_node: int) -> None:
    assert found(f"{n_devices}xA100").per_node == per_node


def test_an_interconnect_of_ones_own() -> None:
    own = found("64xA100", per_node=4, link="100GB/s@2us", network="2x 200 Gbit/s")
    assert (own.n_nodes, own.n_adapters) == (16, 2)
    assert (own.link.bandwidth, own.link.latency) == (100e9, pytest.approx(2e-6))
    assert (own.network.bandwidth, own.network.latency) == (25e9, pytest.approx(1e-5))
    assert found("64xA100", network="4xib_ndr").network == NETWORKS["IB-NDR"]
    assert found("4xA100", per_node=8).per_node == 4


@pytest.mark.parametrize(
    ("options", "problem", "remedy"),
    [
        ({"link": "NVLINC3"}, "Unknown link 'NVLINC3'.", "Did you mean NVLINK3? Or give figures: --link 25GB/s@10us"),
        (
            {"network": "8xIB-HRD"},
            "Unknown network 'IB-HRD'.",
            "Did you mean IB-HDR? Or give figures: --network 25GB/s@10us",
        ),
        ({"link": "0GB/s"}, "--link must be faster than '0GB/s'.", "Such as 25GB/s@10us."),
        ({"link": "1.2.3GB/s"}, "--link must be faster than '1.2.3GB/s'.", "Such as 25GB/s@10us."),
        (
            {"network": "0xIB-HDR"},
            "--network needs at least one adapter per node.",
            "Such as 8xIB-HDR, or IB-HDR for one.",
        ),
        (
            {"per_node": 7},
            "64 devices do not fill nodes of 7.",
            "Give another --per-node, or a multiple of it.",
        ),
        ({"per_node": -1}, "--per-node must be at least 1, not -1.", "Usual is 8."),
    ],
)
def test_what_connects_nothing(options: dict[str, object], problem: str, remedy: str) -> None:
    with pytest.raises(UsageError) as raised:
        found("64xA100", **options)
    assert (raised.value.problem, raised.value.remedy) == (problem, remedy)


def test_this_machine_has_its_own_links() -> None:
    here = Devices(name="this", n_devices=4, peak=1e9, precision="fp32", source="")
    with pytest.raises(UsageError) as raised:
        find_interconnect(InterconnectOptions(per_node=2), here)
    assert raised.value.problem == "--per-node is for --devices, not for this machine."
    assert raised.value.remedy == "Leave it out."
