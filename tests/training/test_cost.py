from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from regard import runtime
from regard.config import ModelTable
from regard.models.presets import ModelConfig, build_model, model_config
from regard.parts.dropout import seeded
from regard.tasks.pairs import PairBatch
from regard.tasks.translate import Translate
from regard.training.cost import Kept, Load, kept_bytes, made_up_loss, shapes, training_flops
from regard.training.paper import RUNS, TOKENS, VOCAB_SIZE

CPU = torch.device("cpu")


def config_of(preset: str, vocab_size: int = 50, **fields: Any) -> ModelConfig:
    pairs = preset.startswith(("transformer", "rnn", "birnn-", "t5"))
    names = ("source_vocab", "target_vocab") if pairs else ("vocab",)
    return model_config(ModelTable(preset=preset, fields=fields), origin="test", **dict.fromkeys(names, vocab_size))


def transformer_flops(config: Any, n: float, s: int, t: int) -> float:
    """A training step of n pairs of s and t tokens, written out: every product of the paper's network, three times."""
    d, f = config.d_model, config.d_ff
    encoder = config.n_encoder_layers * (s * (4 * d * d + 2 * d * f) + 2 * s * s * d)
    cross = 2 * t * d * d + 2 * s * d * d + 2 * t * s * d  # queries and output, keys and values, attention
    decoder = config.n_decoder_layers * (t * (4 * d * d + 2 * d * f) + 2 * t * t * d + cross)
    return 3 * 2 * n * (encoder + decoder + t * d * config.target_vocab)


# -- arithmetic ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "target"), [(30, 30), (7, 150)])
def test_a_transformer_costs_what_its_formula_says(source: int, target: int) -> None:
    config = config_of("transformer-small", 1000)
    load = Load(n_sequences=2.5, length=source, target_length=target)
    assert training_flops(shapes(config), "translate", load) == transformer_flops(config, 2.5, source, target)


def test_other_lengths_would_hardly_change_what_the_papers_runs_cost() -> None:
    for length in range(11, 38):
        base, big = (
            RUNS[name].steps * transformer_flops(config_of(name, VOCAB_SIZE), TOKENS[0] / length, length, length)
            for name in ("transformer-base", "transformer-big")
        )
        assert (f"{base:.1e}", f"{big:.1e}") == ("9.5e+17", "9.7e+18")


def test_a_gpt_costs_what_its_formula_says() -> None:
    config: Any = config_of("gpt-mini", 1000)
    d, t = config.d_model, 200
    forward = config.n_layers * (t * 12 * d * d + 2 * t * t * d) + t * d * 1000
    assert training_flops(shapes(config), "language", Load(n_sequences=3, length=t)) == 3 * 2 * 3 * forward


def test_an_lstm_costs_what_its_formula_says() -> None:
    config: Any = config_of("lstm", head="tokens", n_outputs=3)
    d, state, t = config.d_model, config.d_state, 40
    forward = t * (4 * state * (d + state) + 4 * state * (state + state) + 3 * state)
    assert training_flops(shapes(config), "tag", Load(n_sequences=8, length=t)) == 3 * 2 * 8 * forward


def test_a_window_spares_arithmetic() -> None:
    load = Load(n_sequences=1, length=256)
    far, near = (training_flops(shapes(config_of("gpt-mini", window=window)), "language", load) for window in (0, 8))
    assert near < far


@pytest.mark.parametrize(
    ("preset", "within"),
    [
        ("transformer-tiny", 0.0),
        ("gpt-nano", 0.0),
        ("llama-nano", 0.0),
        # Nobody asks for the gradient of the zeros before a recurrent layer's first step.
        ("rnn", 0.02),
        ("birnn-attention", 0.02),
    ],
)
def test_a_real_step_multiplies_as_much(preset: str, within: float) -> None:
    """Forward and backward, as torch counts them on the CPU; the loss by plain logits, whose products it knows all."""
    config: Any = config_of(preset)
    model = build_model(config).train()
    ids = torch.zeros(6, 12, dtype=torch.int64)
    task = "language" if hasattr(config, "context") else "translate"
    inputs = (ids,) if task == "language" else (ids, torch.full((6,), 12), ids)
    with FlopCounterMode(display=False) as counter:
        F.cross_entropy(model(*inputs).flatten(0, 1), ids.flatten()).backward()
    load = Load(n_sequences=6, length=12, target_length=0 if task == "language" else 12)
    assert training_flops(shapes(config), task, load) == pytest.approx(counter.get_total_flops(), rel=within, abs=0)


def test_a_mean_length_lies_between_whole_ones() -> None:
    model = shapes(config_of("transformer-tiny"))
    short, mean, long = (
        training_flops(model, "translate", Load(n_sequences=1, length=10, target_length=length))
        for length in (10, 10.25, 11)
    )
    assert mean == 0.75 * short + 0.25 * long


def test_counting_leaves_a_model_as_it_was() -> None:
    model = shapes(config_of("gpt-nano"))
    training_flops(model, "language", Load(n_sequences=1, length=4))
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert all(parameter.device.type == "meta" for parameter in model.parameters())


def test_masked_words_are_guessed_only_where_they_are_hidden() -> None:
    few, many = (
        training_flops(shapes(config_of("bert-tiny", vocab, head="words")), "mask", Load(n_sequences=1, length=100))
        for vocab in (1000, 2000)
    )
    assert many - few == 3 * 2 * 15 * 1000 * 128  # 15 % of a hundred


# -- memory -------------------------------------------------------------------------------------------------------------


def really_kept(config: ModelConfig, task: str, load: Load, *, precision: str = "fp32") -> int:
    """What a real step on the CPU keeps."""
    model = build_model(config).train()
    kept = Kept(model)
    machine = runtime.Machine(device=CPU, precision=precision, threads=1)
    with kept.hooks(), seeded(0), machine.autocast():
        made_up_loss(
            model,
            task,
            n_sequences=int(load.n_sequences),
            length=load.length,
            target_length=int(load.target_length),
            device=CPU,
        )
    return kept.n_bytes


def counted(config: ModelConfig, task: str, load: Load, *, precision: str = "fp32") -> float:
    return kept_bytes(shapes(config), task, load, on_cpu=True, precision=precision)


@pytest.mark.parametrize(
    ("preset", "task", "load", "fields"),
    [
        ("transformer-tiny", "translate", Load(n_sequences=8, length=20, target_length=25), {}),
        ("gpt-nano", "language", Load(n_sequences=8, length=64), {}),
        ("llama-nano", "language", Load(n_sequences=5, length=40), {}),
        ("bert-tiny", "mask", Load(n_sequences=8, length=40), {"head": "words"}),
        ("bert-tiny", "classify", Load(n_sequences=8, length=40), {"head": "sequence", "n_outputs": 3}),
    ],
)
def test_a_real_step_keeps_as_much(preset: str, task: str, load: Load, fields: dict[str, Any]) -> None:
    config = config_of(preset, **fields)
    assert counted(config, task, load) == really_kept(config, task, load)


@pytest.mark.parametrize(
    ("preset", "task", "load", "within"),
    [
        # The fused kernel, for long sequences: only what masks take differs.
        ("transformer-tiny", "translate", Load(n_sequences=3, length=150, target_length=160), 0.001),
        ("t5-tiny", "translate", Load(n_sequences=8, length=20, target_length=25), 0.001),
        # Torch's kernels for whole sequences keep somewhat more than the steps that are counted.
        ("birnn-attention", "translate", Load(n_sequences=6, length=20, target_length=20), 0.1),
    ],
)
def test_a_real_step_keeps_about_as_much(preset: str, task: str, load: Load, within: float) -> None:
    config = config_of(preset)
    assert counted(config, task, load) == pytest.approx(really_kept(config, task, load), rel=within)


def test_the_batch_of_a_task_keeps_about_as_much_as_the_made_up_one() -> None:
    config = config_of("transformer-tiny")
    model = build_model(config).train()
    ids, lengths = torch.ones(8, 21, dtype=torch.int64), torch.full((8,), 20)
    kept = Kept(model)
    with kept.hooks(), seeded(0):
        Translate.loss(cast(Any, None), model, PairBatch(ids[:, 1:], lengths, ids, lengths), smoothing=0.1)
    load = Load(n_sequences=8, length=20, target_length=20)
    assert counted(config, "translate", load) == pytest.approx(kept.n_bytes, rel=0.01)


@pytest.fixture(scope="module")
def multiplies_bf16() -> bool:
    """Whether this processor survives it."""
    return runtime._survives_bf16()


@pytest.mark.parametrize("length", [30, 150])
def test_bf16_keeps_less(length: int, multiplies_bf16: bool) -> None:
    config, load = config_of("gpt-nano", n_layers=2, context=160), Load(n_sequences=6, length=length)
    found = counted(config, "language", load, precision="bf16")
    assert found < 0.9 * counted(config, "language", load)
    if not multiplies_bf16:
        pytest.skip("this processor cannot multiply bf16 matrices")
    assert found == pytest.approx(really_kept(config, "language", load, precision="bf16"), rel=0.02)


def test_a_gpu_takes_the_fused_kernel_for_short_sequences_too() -> None:
    model, load = shapes(config_of("gpt-nano")), Load(n_sequences=8, length=64)
    on_gpu, on_cpu = (kept_bytes(model, "language", load, on_cpu=on_cpu, precision="fp32") for on_cpu in (False, True))
    weights = 4 * 4 * 4 * 8 * 64 * 64  # bytes, layers, heads, sequences, queries, keys
    assert 0.4 * weights < on_cpu - on_gpu < weights
