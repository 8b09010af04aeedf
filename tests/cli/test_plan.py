import json
import subprocess
import sys
from typing import Any

import pytest

from regard.training import devices, step_timing
from regard.training.devices import Devices

TINY = ("--set", "model.d_model=16", "--set", "model.d_ff=32", "--set", "model.n_heads=2")


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "PEAK_SECONDS", 0.0)
    monkeypatch.setattr(devices, "_WIDTHS", {"cpu": 64})
    monkeypatch.setattr(step_timing, "BATCH_SECONDS", 0.001)


def test_help_loads_nothing_heavy() -> None:
    program = "import sys; from regard.cli.main import main; main(['plan', '--help']); print('torch' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("Usage: regard plan MODEL")
    assert ended.stdout.endswith("False\n")


def test_the_papers_base_model(command: Any) -> None:
    outcome = command("plan", "transformer-base", "--paper")
    assert outcome.code == 0
    assert outcome.lines == [
        "model       transformer-base for translate, vocabulary of 37,000 tokens",
        "parameters  63,082,496: source embedding 18,944,000, encoder 18,914,304, decoder 25,224,192",
        "step        25,000 source and 25,000 target tokens, in sentences of 30",
        "FLOPs       9.53e12 per step, 9.53e17 in 100,000 steps",
        "devices     8 P100, 9.5 TFLOP/s each in fp32 (Vaswani et al. 2017, footnote 5)",
        "links       8 per node by NVLINK1 (80 GB/s, 3.4 µs)",
        "time        10 h 17 min, 0.37 s per step, at 35% of the peak",
        "",
        "memory per device  replicated  share  sharded  share",
        "weights                252 MB     8%    32 MB     1%",
        "gradients              252 MB     8%    32 MB     1%",
        "optimizer              505 MB    16%    63 MB     3%",
        "activations            2.1 GB    67%   2.1 GB    85%",
        "gathered                               227 MB     9%",
        "total                  3.1 GB   100%   2.4 GB   100%",
        "",
        "time per step         replicated  share    sharded  share",
        "compute                   0.36 s    97%     0.36 s    97%",
        "waiting                  0.008 s     2%    0.008 s     2%",
        "communication          0.00081 s     0%   0.0034 s     1%",
        "update                  0.0028 s     1%  0.00034 s     0%",
        "total                     0.37 s   100%     0.37 s   100%",
        "hidden communication    0.0068 s     2%   0.0086 s     2%",
        "",
        "limits  replicated: the FLOPs; sharded: the FLOPs",
        "",
        "the paper  Vaswani et al. 2017, which does not say how long sentences are: 30 tokens are our assumption",
        "its time   12 h (section 5.2); ours is 0.86 of it",
        "its FLOPs  3.3e18 (table 2), which is 12 h × 8 devices × 9.5 TFLOP/s = 3.28e18:",
        "           all that the devices could do in that time; the model's FLOPs are 29% of it",
    ]


def test_the_papers_big_model_for_programs(command: Any) -> None:
    found = json.loads(command("plan", "transformer-big", "--paper", "--json").out)
    assert (found["parameters"], found["flops"]) == (214_245_376, 9_681_960_960_000_000_000)
    assert found["paper"] == {
        "seconds": 3.5 * 86400,
        "ratio": pytest.approx(1.2408, abs=1e-4),
        "device_flops": 2.3e19,
    }
    assert found["memory"]["total"] == sum(found["memory"][kind] for kind in found["memory"] if kind != "total")
    assert "measured" not in found


def test_our_assumptions_about_the_paper_can_be_changed(command: Any) -> None:
    found = json.loads(
        command("plan", "transformer-base", "--paper", "--length", 25, "--utilisation", 0.29, "--json").out
    )
    assert (found["length"], found["utilisation"]) == (25, 0.29)
    assert found["paper"]["ratio"] == pytest.approx(1, abs=0.03)


def test_a_text_model_on_this_machine(command: Any) -> None:
    outcome = command("plan", "gpt-nano", "--vocab-size", 65)
    assert outcome.code == 0
    facts = {line[:12].strip(): line[12:] for line in outcome.lines[:6]}
    assert facts["model"] == "gpt-nano for language, vocabulary of 65 tokens"
    assert facts["step"] == "4,096 tokens, in sequences of 64"
    assert facts["FLOPs"].endswith(" in 10,000 steps")
    assert facts["devices"].startswith("this machine, ")
    assert facts["devices"].endswith(" in fp32 (measured on cpu, 1 thread)")
    assert outcome.lines[7].split() == ["memory", "share"]


def test_both_sides_of_pairs(command: Any) -> None:
    outcome = command(
        "plan", "transformer-tiny", *TINY, "--source-tokens", 300, "--target-tokens", 400, "--length", 3,
        "--devices", "v100",
    )  # fmt: skip
    assert "step        300 source and 400 target tokens, in sentences of 3 and 4" in outcome.lines
    assert "devices     V100, 15.7 TFLOP/s in fp32 (NVIDIA's data sheet, SXM2)" in outcome.lines


def test_fields_task_and_device_of_ones_own(command: Any) -> None:
    sets = ("--set", "model.d_ff=256", "--set", "model.pooling=mean")
    outcome = command(
        "plan", "bert-tiny", "--task", "tag", *sets, "--tokens", 64, "--length", 8, "--devices", "2xAbacus",
        "--peak", 0.001, "--steps", 3, "--json",
    )  # fmt: skip
    found = json.loads(outcome.out)
    assert (found["task"], found["steps"], found["tokens"], found["length"]) == ("tag", 3, [64], 8)
    assert (found["config"]["d_ff"], found["config"]["pooling"]) == (256, "mean")
    assert found["devices"]["peak"] == 1e9
    time = found["layouts"]["replicated"]["time"]
    assert time["ideal"] == pytest.approx(found["flops_per_step"] / (2 * 1e9 * 0.35))
    assert found["seconds"] == pytest.approx(3 * time["seconds"])


def test_vectors_have_no_vocabulary(command: Any) -> None:
    few = ("--tokens", 64, "--length", 8, "--devices", "P100")
    outcome = command("plan", "bert-tiny", "--task", "regress", "--set", "model.n_features=5", *few)
    assert outcome.lines[0] == "model       bert-tiny for regress, vectors of 5 numbers"


def test_a_model_of_images(command: Any) -> None:
    outcome = command("plan", "resnet-50", "--devices", "A100", "--precision", "fp32", "--images", 256)
    assert outcome.code == 0
    assert outcome.lines == [
        "model       resnet-50 for image, 1,000 classes",
        "parameters  25,557,032: stem 9,536, stage 23,498,496, head 2,049,000",
        "step        256 images of 224 × 224 pixels",
        "FLOPs       6.22e12 per step, 6.22e16 in 10,000 steps",
        "devices     A100, 19.5 TFLOP/s in fp32 (NVIDIA's data sheet, SXM of 80 GB)",
        "time        2 h 32 min, 0.91 s per step, at 35% of the peak",
        "",
        "memory                share",
        "weights       102 MB     0%",
        "gradients     102 MB     0%",
        "optimizer     111 MB     0%",
        "activations  22.4 GB    99%",
        "total        22.7 GB   100%",
    ]


def test_a_model_that_describes_images(command: Any) -> None:
    options = ("--images", 2, "--image-size", 16, "--length", 9, "--vocab-size", 50, "--devices", "P100")
    outcome = command("plan", "captioner-vit", *options)
    facts = {line[:12].strip(): line[12:] for line in outcome.lines[:6]}
    assert facts["model"] == "captioner-vit for caption, vocabulary of 50 tokens"
    assert facts["step"] == "2 images of 16 × 16 pixels, each with 5 captions of 9 tokens"
    found = json.loads(command("plan", "captioner-vit", *options, "--json").out)
    assert (found["images"], found["image_size"], found["captions"], found["length"]) == (2, 16, 5, 9)
    assert (found["tokens"], found["vocab_size"]) == ([90], 50)


def test_classes_of_ones_own(command: Any) -> None:
    sets = ("--set", "model.n_outputs=10", "--set", "model.n_channels=1")
    found = json.loads(command("plan", "convnet", *sets, "--images", 2, "--devices", "P100", "--json").out)
    assert (found["config"]["n_outputs"], found["config"]["n_channels"]) == (10, 1)
    assert (found["images"], found["image_size"], found["tokens"], found["vocab_size"]) == (2, 32, [], 0)
    assert "captions" not in found and "length" not in found


def test_a_real_step_on_images_can_be_measured(command: Any) -> None:
    options = ("vit-tiny", "--set", "model.n_layers=1", "--images", 3, "--image-size", 8, "--measure")
    outcome = command("plan", *options)
    assert outcome.code == 0
    assert outcome.lines[-3].startswith("measured   here, gradients of ")
    assert " of 8 × 8 pixels took " in outcome.lines[-3]
    measured = json.loads(command("plan", *options, "--json").out)["measured"]
    assert 1 <= measured["images"] <= 3
    assert measured["image_size"] == 8
    assert "sequences" not in measured


def test_a_real_step_can_be_measured(command: Any) -> None:
    outcome = command("plan", "gpt-nano", "--vocab-size", 65, "--tokens", 128, "--measure")
    assert outcome.code == 0
    measured, time_here, reached = outcome.lines[-3:]
    assert measured.startswith("measured   here, gradients of 1 sequence of ")
    assert time_here.startswith("time here  ")
    assert reached.endswith(" in fp32 (measured on cpu, 1 thread)")


def test_a_measurement_for_programs(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Devices(name="this", n_devices=1, peak=1e9, precision="fp32", source="a guess", on_cpu=True)
    monkeypatch.setattr(step_timing, "this_machine", lambda: slow)
    outcome = command(
        "plan", "transformer-tiny", *TINY, "--tokens", 40, "--length", 4, "--devices", "P100", "--measure", "--json"
    )
    found = json.loads(outcome.out)
    measured = found["measured"]
    assert measured["devices"]["source"] == "a guess"
    assert measured["seconds"] == pytest.approx(found["steps"] * measured["seconds_per_step"])
    assert measured["utilisation"] == pytest.approx(found["flops_per_step"] / measured["seconds_per_step"] / 1e9)


@pytest.mark.parametrize(
    ("arguments", "problem", "remedy"),
    [
        ((), "regard plan needs MODEL.", "See: regard plan --help"),
        (("transformer-bas",), "There is no model 'transformer-bas'.", "Did you mean transformer-base?"),
        (
            ("gpt2", "--devices", "8xP10"),
            "Unknown device 'P10'.",
            "Did you mean P100? For any other, give --peak.",
        ),
        (("gpt2", "--steps", "many"), "--steps must be a whole number, not 'many'.", "See: regard plan --help"),
        (("gpt2", "--steps", "0"), "The number of steps must be at least 1, not 0.", "Give a larger number."),
        (
            ("gpt2", "--tokens", "1" + "0" * 30),
            f"--tokens must be at most 1,000,000,000, not {10**30}.",
            "Correct --tokens and run the command again.",
        ),
        (
            ("gpt2", "--tokens", "-1"),
            "The number of tokens per step must be at least 1, not -1.",
            "Give a larger number.",
        ),
        (("gpt2", "--peak", "0"), "--peak must be a number of TFLOP/s above 0, not 0.", "A P100 has 9.5."),
        (("gpt2", "--peak", "-1"), "--peak must be a number of TFLOP/s above 0, not -1.", "A P100 has 9.5."),
        (
            ("gpt2", "--utilisation", "35"),
            "Utilisation must be above 0 and at most 1, not 35.",
            "Usual is 0.35.",
        ),
        (
            ("gpt2", "--source-tokens", "5", "--target-tokens", "5"),
            "gpt2 reads text, not pairs of source and target.",
            "Give one number of tokens.",
        ),
        (
            ("transformer-base", "--source-tokens", "5"),
            "Pairs have two sides, but --target-tokens is missing.",
            "Give --target-tokens, or --tokens for both.",
        ),
        (
            ("transformer-base", "--tokens", "5", "--target-tokens", "5"),
            "--tokens is for both sides, --source-tokens and --target-tokens for one each.",
            "Give one or the other.",
        ),
        (
            ("gpt2", "--set", "training.steps=5"),
            "--set training.steps is not a field of the model.",
            "Set one, such as model.d_model=256.",
        ),
        (("gpt2", "--set", "model.d_modle=5"), "model: there is no key model.d_modle.", "Did you mean d_model?"),
        (
            ("transformer-base", "--paper", "--steps", "5"),
            "--paper uses the paper's own settings, which conflicts with --steps.",
            "Leave one of the two out; --length and --utilisation may be given with --paper.",
        ),
        (
            ("transformer-base", "--paper", "--images", "5"),
            "--paper uses the paper's own settings, which conflicts with --images.",
            "Leave one of the two out; --length and --utilisation may be given with --paper.",
        ),
        (("gpt2", "--images", "5"), "gpt2 reads text, not images.", "Give the number of tokens per step."),
        (("gpt2", "--image-size", "32"), "gpt2 reads text, not images.", "Leave the image size out."),
        (
            ("vit-tiny", "--tokens", "5"),
            "The batch size of vit-tiny is a number of images, not of tokens.",
            "Give the number of images.",
        ),
        (("vit-tiny", "--length", "5"), "vit-tiny reads and writes no tokens.", "Leave the length out."),
        (
            ("gpt-nano", "--devices", "100xA100"),
            "A step of 64 sequences of 64 tokens is fewer than one for each of 100 devices.",
            "Give a larger batch (--per-device takes it as that of each device), or fewer devices.",
        ),
        (
            ("gpt-nano", "--devices", "0xA100"),
            "--devices must be like 8xP100 or A100, not '0xA100'.",
            "Name at least one device.",
        ),
        (
            ("gpt-nano", "--devices", "A100", "--shard"),
            "Weights are sharded over several devices, and there is one.",
            "Give more, or leave --shard out.",
        ),
        (
            ("gpt-nano", "--devices", "8xA100", "--link", "NVLINK33"),
            "Unknown link 'NVLINK33'.",
            "Did you mean NVLINK3? Or give figures: --link 25GB/s@10us",
        ),
        (
            ("gpt-nano", "--devices", "8xA100", "--network", "IB"),
            "Unknown network 'IB'.",
            "Available: ETH-10, ETH-100, ETH-25, ETH-400, IB-EDR, IB-HDR, IB-NDR. "
            "Or give figures: --network 25GB/s@10us",
        ),
        (
            ("gpt-nano", "--devices", "8xA100", "--per-node", "3"),
            "8 devices do not fill nodes of 3.",
            "Give another --per-node, or a multiple of it.",
        ),
        (
            ("gpt-nano", "--devices", "8xA100", "--up-to", "8"),
            "--up-to must be above the 8 of --devices and at most 1,000,000, not 8.",
            "Such as --up-to 64.",
        ),
        (
            ("gpt-nano", "--devices", "8xA100", "--processes", "2"),
            "--processes is for this machine.",
            "Of others, give their number: --devices 8xA100",
        ),
        (
            ("gpt-nano", "--devices", "2xcpu"),
            "A CPU is planned for as this machine, whose peak is measured.",
            "Leave --devices out, and give --processes 2; or give --peak.",
        ),
        (("gpt-nano", "--processes", "0"), "--processes must be from 1 to 1,024, not 0.", "Usual is one per core."),
        (
            ("gpt-nano", "--processes", "2", "--link", "NVLINK3"),
            "--link is for --devices, not for this machine.",
            "Leave it out.",
        ),
        (
            ("transformer-base", "--paper", "--shard"),
            "--paper uses the paper's own settings, which conflicts with --shard.",
            "Leave one of the two out; --length and --utilisation may be given with --paper.",
        ),
        (
            ("gpt-nano", "--optimizer", "adam"),
            "The optimizer must be muon or adamw, not 'adam'.",
            "Did you mean adamw?",
        ),
        (
            ("gpt2", "--paper"),
            "The paper did not train gpt2.",
            "It trained transformer-base and transformer-big.",
        ),
    ],
)
def test_wrong_usage(command: Any, arguments: tuple[str, ...], problem: str, remedy: str) -> None:
    outcome = command("plan", *arguments)
    assert outcome.err.splitlines() == [f"error: {problem}", remedy]
    assert (outcome.code, outcome.out) == (2, "")


def test_a_model_too_large_to_be_measured(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_timing, "free_memory", lambda: 20_000_000)
    outcome = command("plan", "gpt-nano", "--tokens", 64, "--measure")
    assert outcome.code == 2
    problem, remedy = outcome.error
    assert problem.startswith("error: A step of gpt-nano needs at least 0.03")
    assert problem.endswith(" GB, and this machine has 0.02 GB free.")
    assert remedy == "Measure a smaller model, or leave the measurement out."


def test_many_devices(command: Any) -> None:
    outcome = command("plan", "transformer-big", "--devices", "64xA100", "--steps", 100_000)
    assert outcome.code == 0
    facts = {line[:12].strip(): line[12:] for line in outcome.lines[:7]}
    links = "8 per node by NVLINK3 (300 GB/s, 3.4 µs), 8 nodes, each with 8 × IB-HDR (25 GB/s, 9.6 µs)"
    assert facts["links"] == links
    assert outcome.lines[8].split() == ["memory", "per", "device", "replicated", "share", "sharded", "share"]
    assert outcome.lines[16].split() == ["time", "per", "step", "replicated", "share", "sharded", "share"]
    # Each of 64 devices reads 64 tokens: the update of all weights is most of a step.
    assert outcome.lines[-1] == "limits  replicated: update; sharded: update"


def test_sharding_for_programs(command: Any) -> None:
    options = ("plan", "gpt-mini", "--devices", "16xA100", "--tokens", 16384, "--json")
    replicated, sharded = (json.loads(command(*options, *more).out) for more in ((), ("--shard",)))
    assert (replicated["sharded"], sharded["sharded"]) == (False, True)
    assert replicated["layouts"] == sharded["layouts"]
    for found, name in ((replicated, "replicated"), (sharded, "sharded")):
        assert found["memory"] == found["layouts"][name]["memory"]
        assert found["seconds_per_step"] == found["layouts"][name]["time"]["seconds"]
    assert sharded["memory"]["weights"] == replicated["memory"]["weights"] // 16
    assert sharded["interconnect"]["network"]["name"] == "IB-HDR"


@pytest.mark.parametrize(
    ("options", "last"),
    [
        (
            ("--tokens", 2048, "--devices", "8xA100", "--set", "model.n_layers=8"),
            "does not fit  {} are needed, and A100 has 80.0 GB: with --shard each has {}",
        ),
        (
            ("--tokens", 2048, "--devices", "8xT4", "--set", "model.n_layers=32"),
            "does not fit  {} are needed, and T4 has 16.0 GB: give more devices, or a smaller model",
        ),
        (
            ("--tokens", 2048, "--devices", "T4", "--set", "model.n_layers=8"),
            "does not fit  {} are needed, and T4 has 16.0 GB: give more devices, with --shard",
        ),
        (
            ("--tokens", 10**8, "--devices", "A100"),
            "does not fit  {} are needed, and A100 has 80.0 GB: give more devices, or a smaller batch; "
            "training.accumulate makes the same step of several",
        ),
    ],
)
def test_memory_that_does_not_fit(command: Any, options: tuple[Any, ...], last: str) -> None:
    wide = ("--set", "model.d_model=12288", "--set", "model.n_heads=96") if "--set" in options else ()
    outcome = command("plan", "gpt-mini", *options, *wide)
    layouts = ["replicated", "sharded"]
    facts = json.loads(command("plan", "gpt-mini", *options, *wide, "--json").out)
    memory = [facts["layouts"][one]["memory"] for one in layouts] if "layouts" in facts else [facts["memory"]]
    assert facts["fits"] is False
    assert outcome.lines[-1] == last.format(*(f"{one['total'] / 1e9:.1f} GB" for one in memory))


def test_scaling_for_people_and_programs(command: Any) -> None:
    options = ("plan", "gpt-nano", "--vocab-size", 65, "--tokens", 1024, "--devices", "4xA100", "--up-to", 32)
    outcome = command(*options)
    lines = outcome.lines
    strong = lines.index("strong scaling: the same step for all devices, 1,024 tokens, in sequences of 64")
    assert lines[strong + 2].split()[:4] == ["replicated", "tokens", "each", "memory"]
    assert [line.split()[:2] for line in lines[strong + 3 : strong + 6]] == [["4", "256"], ["8", "128"], ["16", "64"]]
    weak = next(number for number, line in enumerate(lines) if line.startswith("weak scaling: "))
    assert [line.split()[0] for line in lines[weak + 3 : weak + 7]] == ["4", "8", "16", "32"]
    assert lines[-1].startswith("assumed")
    scaling = json.loads(command(*options, "--json").out)["scaling"]
    assert [row["devices"] for row in scaling["strong"]] == [4, 8, 16]
    assert [row["tokens"] for row in scaling["weak"]] == [[1024], [2048], [4096], [8192]]
    assert scaling["weak"][0]["layouts"]["sharded"]["efficiency"] == 1


def test_processes_of_this_machine_are_measured_together(command: Any) -> None:
    options = ("gpt-nano", "--vocab-size", 65, "--tokens", 256, "--processes", 2)
    found = json.loads(command("plan", *options, "--json").out)
    assert found["devices"]["n_devices"] == 2
    assert found["interconnect"]["link"]["name"] == "loopback"
    outcome = command("plan", *options, "--measure")
    assert outcome.code == 0
    assert outcome.lines[4].startswith("devices     2 processes on this machine, ")
    measured, time_here, _ = outcome.lines[-3:]
    assert ", the sum of gradients " in measured
    assert time_here.startswith("time here  ")
