"""GGUF files: the logits are those of the network that was written, and what does not fit is refused by its name."""

import random
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from tests.exchange.gguf_files import FACTORS, Draft, Type, drafted, logits, rotary_factors
from tests.exchange.their_networks import IDS, LLAMA, SLOWED, VARIANTS, V, transformers

from regard.errors import MissingExtraError, RegardError
from regard.exchange.gguf_file import is_gguf, read_gguf
from regard.models.llama import Llama3Scaling, LlamaConfig, NoScaling

KINDS = ["llama", "llama, tied", "llama, biases", "llama, wide heads", "llama, linear", "llama, llama3", "mistral"]
CONVERSION = "\nDownload it again, or another conversion of the same model."


def network(**settings: Any) -> Any:
    torch.manual_seed(1)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=V, **{**LLAMA, **settings})).eval()


@pytest.fixture(scope="module")
def draft() -> Draft:
    """A small Llama, not to be changed."""
    return drafted(network())


def refusal(path: Path) -> str:
    with pytest.raises(RegardError) as caught:
        read_gguf(path).weights()
    return str(caught.value).replace(str(path), "FILE")


# -- networks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*KINDS, "qwen2"])
def test_logits_are_those_of_the_network(name: str, tmp_path: Path) -> None:
    theirs = VARIANTS[name].network()
    path = drafted(theirs, "qwen2" if name == "qwen2" else "llama").write(tmp_path / "model.gguf")
    ours = read_gguf(path)
    with torch.inference_mode():
        torch.testing.assert_close(ours.model()(IDS), logits(theirs, IDS), atol=1e-4, rtol=0)
    assert ours.notes == ()
    assert ours.task == "language"
    assert ours.their_class == ("Qwen2ForCausalLM" if name == "qwen2" else "LlamaForCausalLM")


def test_rows_of_a_qwen2_are_not_those_of_a_llama(draft: Draft, tmp_path: Path) -> None:
    """Queries and keys of a Llama stand as llama.cpp turns them: unchanged, they would say something else."""
    theirs = network()
    name = "blk.0.attn_q.weight"
    unchanged = theirs.state_dict()["model.layers.0.self_attn.q_proj.weight"].numpy()
    assert not np.array_equal(draft.tensors[name][0], unchanged)
    wrong = Draft(draft.values, {**draft.tensors, name: (unchanged, Type.F32)}).write(tmp_path / "model.gguf")
    assert (read_gguf(wrong).model()(IDS) - logits(theirs, IDS)).abs().max() > 1e-3


def test_the_config_is_that_of_the_network(tmp_path: Path) -> None:
    theirs = network(rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 500000.0})
    values = {"tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.padding_token_id": 0}
    ours = read_gguf(drafted(theirs).having(values).write(tmp_path / "model.gguf"))
    assert ours.config == LlamaConfig(
        vocab=V,
        n_layers=2,
        n_heads=4,
        n_key_heads=2,
        d_model=32,
        d_ff=48,
        context=64,
        position_base=500000.0,
        epsilon=1e-5,
        tied="none",
    )
    assert ours.special_ids == {"bos": (1,), "eos": (2,), "pad": (0,)}


def test_what_a_file_may_leave_unsaid(draft: Draft, tmp_path: Path) -> None:
    tokens = [str(number) for number in range(V)]
    unsaid = ("llama.vocab_size", "llama.rope.freq_base", "llama.attention.key_length", "llama.attention.value_length")
    short = draft.without(*unsaid, "llama.rope.dimension_count").having({"tokenizer.ggml.tokens": tokens})
    assert read_gguf(short.write(tmp_path / "short.gguf")).config == read_gguf(draft.write(tmp_path / "b.gguf")).config


def test_settings_that_change_nothing(draft: Draft, tmp_path: Path) -> None:
    neutral = {
        "llama.expert_count": 0,
        "llama.attention.causal": True,
        "llama.tensor_data_layout": "Meta AI original pth",
        "llama.rope.scaling.type": "none",
        "llama.rope.scaling.finetuned": False,
        "general.type": "model",
        "split.count": 1,
    }
    ours = read_gguf(draft.having(neutral).write(tmp_path / "model.gguf"))
    assert ours.config.rotary_scaling == NoScaling()


# -- rotary angles ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factor", "first_context", "width"), [(8.0, 8192, 128), (32.0, 8192, 64), (4.0, 4096, 64), (8.0, 16, 8)]
)
def test_settings_of_llama_3_follow_from_what_they_amount_to(
    factor: float, first_context: int, width: int, tmp_path: Path
) -> None:
    rotary = {**SLOWED, "factor": factor, "original_max_position_embeddings": first_context, "rope_theta": 500000.0}
    theirs = network(head_dim=width, rope_parameters=rotary)
    ours = read_gguf(drafted(theirs).write(tmp_path / "model.gguf"))
    assert ours.config.rotary_scaling == Llama3Scaling(factor=factor, low=1.0, high=4.0, first_context=first_context)


def test_factors_of_one_slow_nothing(draft: Draft, tmp_path: Path) -> None:
    ones = {**draft.tensors, FACTORS: (np.ones(4, np.float32), Type.F32)}
    ours = read_gguf(Draft(draft.values, ones).write(tmp_path / "model.gguf"))
    assert ours.config.rotary_scaling == NoScaling()


@pytest.mark.parametrize("factors", [[1, 3, 1, 8], [0.5, 1, 1, 1], [1, 1, 1, -8], [8, 8, 8, 1]])
def test_factors_that_llama_3_has_not(factors: list[float], draft: Draft, tmp_path: Path) -> None:
    tensors = {**draft.tensors, FACTORS: (np.array(factors, np.float32), Type.F32)}
    assert refusal(Draft(draft.values, tensors).write(tmp_path / "model.gguf")) == (
        "FILE: rope_freqs.weight slows rotary angles in another way than Llama 3.\nChoose a model without that tensor."
    )


def test_factors_beside_a_linear_scaling(draft: Draft, tmp_path: Path) -> None:
    tensors = {**draft.tensors, FACTORS: (rotary_factors(SLOWED, 8), Type.F32)}
    both = Draft({**draft.values, "llama.rope.scaling.factor": 2.0}, tensors).write(tmp_path / "model.gguf")
    assert refusal(both).startswith("FILE: rope_freqs.weight slows rotary angles in another way than Llama 3.")


def test_factors_of_another_number(draft: Draft, tmp_path: Path) -> None:
    tensors = {**draft.tensors, FACTORS: (np.ones(3, np.float32), Type.F32)}
    assert refusal(Draft(draft.values, tensors).write(tmp_path / "model.gguf")) == (
        f"FILE: rope_freqs.weight has the shape [3], and by its metadata it must have [4].{CONVERSION}"
    )


# -- quantised weights --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q5_1])
def test_quantised_weights_are_the_dequantised_numbers(kind: gguf.GGMLQuantizationType, tmp_path: Path) -> None:
    theirs = network(intermediate_size=64)
    draft = drafted(theirs, kind=kind)
    plain = {name: (gguf.dequantize(numbers, own), Type.F32) for name, (numbers, own) in draft.tensors.items()}
    expected = read_gguf(Draft(draft.values, plain).write(tmp_path / "plain.gguf"))
    ours = read_gguf(draft.write(tmp_path / "model.gguf"))
    weights, others = ours.weights(), expected.weights()
    assert weights.keys() == others.keys()
    assert all(torch.equal(weights[name], others[name]) and weights[name].dtype == torch.float32 for name in weights)
    quantised = kind.name.startswith("Q")
    note = f"the weights were quantised ({kind.name}), and are now what was left of them in float32"
    assert (ours.notes, expected.notes) == ((note,) if quantised else (), ())
    differ = (ours.model()(IDS) - logits(theirs, IDS)).abs().max()
    assert 0 < differ < 0.1


def test_weights_of_several_types(tmp_path: Path) -> None:
    theirs = network(hidden_size=256, intermediate_size=256)
    draft = drafted(theirs, kind=Type.Q8_0)
    drawn = np.random.default_rng(1)
    blocks = drawn.integers(0, 60, (256, gguf.GGML_QUANT_SIZES[Type.Q4_K][1]), dtype=np.uint8)  # scales below one
    draft.tensors["blk.1.ffn_up.weight"] = (blocks, Type.Q4_K)
    ours = read_gguf(draft.write(tmp_path / "model.gguf"))
    assert ours.notes == ("the weights were quantised (Q4_K, Q8_0), and are now what was left of them in float32",)
    found = ours.weights()["decoder.1.feed_forward.up.weight"]
    np.testing.assert_array_equal(found.numpy(), gguf.dequantize(blocks, Type.Q4_K))


# -- what is refused ----------------------------------------------------------------------------------------------------

NO_COUNTERPART = "has no counterpart in regard"
WITHOUT = "\nChoose a model without that setting."
VALUES: list[tuple[dict[str, Any], str]] = [
    (
        {"general.architecture": "gemma2"},
        f"FILE names the architecture gemma2, which {NO_COUNTERPART}.\n"
        "Choose a model of one of: llama, qwen2; Mistral's files say llama.",
    ),
    ({"general.type": "adapter"}, f"FILE: general.type = adapter {NO_COUNTERPART} (only model has).{WITHOUT}"),
    (
        {"split.count": 3},
        "FILE is one of 3 parts of a file.\nJoin them first, with llama.cpp's gguf-split --merge.",
    ),
    ({"llama.expert_count": 8}, f"FILE: llama.expert_count = 8 {NO_COUNTERPART} (only 0 has).{WITHOUT}"),
    (
        {"llama.attention.sliding_window": 16},
        f"FILE: llama.attention.sliding_window = 16 {NO_COUNTERPART} (only 0 has).{WITHOUT}",
    ),
    ({"llama.logit_scale": 2.0}, f"FILE: llama.logit_scale = 2.0 {NO_COUNTERPART} (the key is not known).{WITHOUT}"),
    (
        {"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 4.0},
        f"FILE: llama.rope.scaling.type = yarn {NO_COUNTERPART} (known here: none, linear, and that of Llama 3)."
        f"{WITHOUT}",
    ),
    (
        {"llama.rope.dimension_count": 4},
        f"FILE: llama.rope.dimension_count = 4 {NO_COUNTERPART} (only 8 has).{WITHOUT}",
    ),
    (
        {"llama.attention.value_length": 4},
        f"FILE: llama.attention.value_length = 4 {NO_COUNTERPART} (only 8 has).{WITHOUT}",
    ),
    (
        {"llama.attention.head_count": [4, 4]},
        "FILE: llama.attention.head_count must be a whole number, not [4, 4].\nCorrect llama.attention.head_count.",
    ),
    ({"llama.block_count": "two"}, "FILE: llama.block_count must be a whole number, not 'two'."),
    ({"llama.rope.freq_base": float("nan")}, "FILE: llama.rope.freq_base must be a number, not nan."),
    (
        {"llama.attention.head_count": 0},
        f"FILE: model.n_heads must be at least 1, not 0.{CONVERSION}",
    ),
    (
        {"llama.attention.head_count_kv": 3},
        f"FILE: model.n_heads = 4 cannot be divided by n_key_heads = 3.{CONVERSION}",
    ),
    ({"llama.block_count": 10**9}, "FILE: model.n_layers must be at least 1 and at most 1,000, not 1000000000."),
    (
        {"llama.block_count": 3},
        f"FILE lacks the tensor blk.2.attn_norm.weight, which LlamaForCausalLM has by its metadata.{CONVERSION}",
    ),
    (
        {"llama.block_count": 1},
        f"FILE holds blk.1.attn_q.weight, for which LlamaForCausalLM has no place by its metadata.{CONVERSION}",
    ),
    (
        {"llama.feed_forward_length": 50},
        f"FILE: blk.0.ffn_gate.weight has the shape [48, 32], and by its metadata it must have [50, 32].{CONVERSION}",
    ),
    (
        {"llama.vocab_size": 41},
        f"FILE: token_embd.weight has the shape [40, 32], and by its metadata it must have [41, 32].{CONVERSION}",
    ),
    (
        {"llama.vocab_size": 2**24, "llama.embedding_length": 2**16, "llama.attention.key_length": 8},
        "FILE: token_embd.weight has the shape [40, 32], and by its metadata it must have [16777216, 65536].",
    ),
]


@pytest.mark.parametrize(("values", "problem"), VALUES, ids=[" ".join(one[0]) for one in VALUES])
def test_values_that_do_not_fit(values: dict[str, Any], problem: str, draft: Draft, tmp_path: Path) -> None:
    assert refusal(draft.having(values).write(tmp_path / "model.gguf")).startswith(problem)


def test_a_key_that_is_missing(draft: Draft, tmp_path: Path) -> None:
    assert refusal(draft.without("llama.block_count").write(tmp_path / "a.gguf")) == (
        f"FILE does not say llama.block_count.{CONVERSION}"
    )
    assert refusal(draft.without("llama.vocab_size").write(tmp_path / "b.gguf")) == (
        f"FILE does not say llama.vocab_size.{CONVERSION}"
    )


def test_tensors_that_do_not_fit(draft: Draft, tmp_path: Path) -> None:
    assert refusal(draft.without("blk.1.attn_k.weight").write(tmp_path / "a.gguf")) == (
        f"FILE lacks the tensor blk.1.attn_k.weight, which LlamaForCausalLM has by its metadata.{CONVERSION}"
    )
    extra = {**draft.tensors, "blk.0.ffn_gate.bias": (np.zeros(48, np.float32), Type.F32)}
    assert refusal(Draft(draft.values, extra).write(tmp_path / "b.gguf")) == (
        f"FILE holds blk.0.ffn_gate.bias, for which LlamaForCausalLM has no place by its metadata.{CONVERSION}"
    )


def test_a_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"{}" * 40)
    assert is_gguf(path)
    assert refusal(path) == (
        "FILE is no GGUF file, or a damaged one: it does not begin with GGUF.\n"
        "Give a GGUF file, or the folder that holds config.json."
    )
    path.rename(tmp_path / "model.gguf")
    assert refusal(tmp_path / "model.gguf").endswith("it does not begin with GGUF.\nDownload it again.")
    assert is_gguf(tmp_path / "nothing.gguf")
    assert refusal(tmp_path / "nothing.gguf") == (
        "FILE cannot be read: No such file or directory.\nGive a GGUF file that can be read."
    )
    assert not is_gguf(tmp_path)


def test_a_link_to_a_file_is_read(draft: Draft, tmp_path: Path) -> None:
    draft.write(tmp_path / "blob")
    (tmp_path / "model.gguf").symlink_to(tmp_path / "blob")
    assert read_gguf(tmp_path / "model.gguf").weights()


def test_without_the_package(draft: Draft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = draft.write(tmp_path / "model.gguf")
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(MissingExtraError) as caught:
        read_gguf(path)
    assert str(caught.value) == (
        "Importing a GGUF file needs the package 'gguf', which is not installed.\n"
        "Install it with: pip install 'regard[export]'"
    )


# -- damaged files ------------------------------------------------------------------------------------------------------


def test_files_that_end_early(draft: Draft, tmp_path: Path) -> None:
    path = draft.write(tmp_path / "model.gguf")
    content = path.read_bytes()
    for length in [0, 3, 4, 7, 8, 23, 24, 30, 100, 500, 1000, len(content) // 2, len(content) - 4]:
        path.write_bytes(content[:length])
        assert refusal(path).startswith("FILE is no GGUF file, or a damaged one: ")


def test_headers_with_other_bytes(draft: Draft, tmp_path: Path) -> None:
    """Read or refused as an error of ours; nothing else comes out of it."""
    path = draft.write(tmp_path / "model.gguf")
    content = path.read_bytes()
    length = len(content) - sum(numbers.nbytes for numbers, _ in draft.tensors.values())
    drawn, refused = random.Random(4), 0
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(3):
            damaged[drawn.randrange(length)] = drawn.randrange(256)
        path.write_bytes(damaged)
        try:
            read_gguf(path)
        except RegardError:
            refused += 1
    assert refused > 100


def test_any_value_of_any_setting(draft: Draft, tmp_path: Path) -> None:
    usual = read_gguf(draft.write(tmp_path / "model.gguf")).config
    for key in [key for key in draft.values if key.startswith("llama.")]:
        for value in [True, 0, 1, 3, 2**24, 2**32 - 1, 0.5, -1e-30, float("inf"), "", "word", [1, 2], ["a"]]:
            path = draft.having({key: value}).write(tmp_path / "model.gguf")
            try:
                found = read_gguf(path)
            except RegardError as error:
                assert str(path) in str(error)
            else:
                assert found.config == usual or found.weights()
