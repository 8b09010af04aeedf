"""Folders of the transformers package: what is read computes the same, and what is written their package loads."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.exchange.conftest import Saved
from tests.exchange.their_networks import IDS, LENGTHS, REAL, VARIANTS, V, Variant, transformers
from torch import Tensor

from regard.config import DecodingConfig, build
from regard.decoding.prompt import Prompt
from regard.decoding.request import Request
from regard.decoding.search import decode
from regard.errors import UsageError
from regard.exchange.exported_network import export_network
from regard.exchange.huggingface import read_folder, write_folder
from regard.models.presets import PRESETS, build_model

every_variant = pytest.mark.parametrize("name", VARIANTS)


def assert_close(found: Tensor, expected: Tensor, *, atol: float = 1e-5) -> None:
    torch.testing.assert_close(found, expected, atol=atol, rtol=0)


def their_model(folder: Path, **options: Any) -> Any:
    kind = getattr(transformers, json.loads((folder / "config.json").read_text())["architectures"][0])
    return kind.from_pretrained(folder, **options).eval()


def first_ids(ids: Any) -> dict[str, int]:
    return {name: numbers[0] for name, numbers in ids.items()}


def exported(folder: Path, target: Path) -> Path:
    network = read_folder(folder)
    write_folder(
        target,
        network.config,
        network.weights(),
        labels=network.labels,
        special_ids=first_ids(network.special_ids),
    )
    return target


# -- in -----------------------------------------------------------------------------------------------------------------


@every_variant
def test_what_is_read_computes_the_same(name: str, saved: Saved) -> None:
    variant = VARIANTS[name]
    network = read_folder(saved(name))
    with torch.inference_mode():
        assert_close(variant.ours(network.model()), variant.theirs(variant.network()))
    assert network.task == variant.task


@pytest.mark.parametrize("name", ["llama", "llama, linear", "llama, llama3", "mistral, window", "qwen2"])
def test_far_positions_turn_as_theirs(name: str, saved: Saved) -> None:
    ids = torch.randint(3, V, (1, 400), generator=torch.Generator().manual_seed(6))
    model, theirs = read_folder(saved(name)).model(), their_model(saved(name))
    with torch.inference_mode():
        assert_close(model(ids), theirs(ids).logits)


@pytest.mark.parametrize("name", ["marian", "pegasus", "m2m100", "t5"])
def test_the_last_of_the_positions(name: str, saved: Saved) -> None:
    source, target = torch.randint(3, V, (2, 1, 64), generator=torch.Generator().manual_seed(6))
    model, theirs = read_folder(saved(name)).model(), their_model(saved(name))
    with torch.inference_mode():
        expected = theirs(input_ids=source, decoder_input_ids=target, use_cache=False).logits
        assert_close(model(source, torch.tensor([64]), target), expected)


@every_variant
def test_the_fields_rebuild_the_network(name: str, saved: Saved) -> None:
    network = read_folder(saved(name))
    preset = PRESETS[network.preset]
    assert build(preset.config, network.fields, origin="run", path="model") == network.config
    assert network.task in preset.tasks


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["gpt2", "bert, words", "t5", "marian"])
def test_half_precision_becomes_single(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    variant = VARIANTS[name]
    variant.network().to(dtype).save_pretrained(tmp_path)
    network = read_folder(tmp_path)
    weights = network.weights()
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
    with torch.inference_mode():
        assert_close(variant.ours(network.model()), variant.theirs(their_model(tmp_path, dtype=torch.float32)))


@pytest.mark.parametrize("name", ["gpt2", "llama, tied", "marian", "bert, classes"])
def test_several_files_are_one_network(name: str, saved: Saved, tmp_path: Path) -> None:
    VARIANTS[name].network().save_pretrained(tmp_path, max_shard_size="10KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 2
    whole, parts = read_folder(saved(name)).weights(), read_folder(tmp_path).weights()
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[key], parts[key]) for key in whole)


@pytest.mark.parametrize("name", ["gpt2", "bert", "m2m100"])
def test_pickled_weights_are_read_for_those_who_ask(name: str, saved: Saved, tmp_path: Path) -> None:
    folder = saved(name)
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    torch.save(load_file(folder / "model.safetensors"), tmp_path / "pytorch_model.bin")
    safe, pickled = read_folder(folder).weights(), read_folder(tmp_path, allow_pickle=True).weights()
    assert all(torch.equal(safe[key], pickled[key]) for key in safe)


def rewritten(folder: Path, target: Path, change: Any) -> Path:
    """A copy of a folder whose tensors were changed."""
    target.mkdir(exist_ok=True)
    (target / "config.json").write_bytes((folder / "config.json").read_bytes())
    save_file(change(load_file(folder / "model.safetensors")), target / "model.safetensors")
    return target


def test_gpt2_as_it_was_published(saved: Saved, tmp_path: Path) -> None:
    """Without the prefix of its class, with masks among the weights, and with the output layer a second time."""

    def older(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        tensors = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
        masks = {f"h.{number}.attn.bias": torch.ones(1, 1, 24, 24).tril() for number in range(3)}
        return {
            **tensors,
            **masks,
            "h.0.attn.masked_bias": torch.tensor(-1e4),
            "lm_head.weight": tensors["wte.weight"].clone(),
        }

    ours = read_folder(rewritten(saved("gpt2"), tmp_path, older)).weights()
    expected = read_folder(saved("gpt2")).weights()
    assert all(torch.equal(ours[key], expected[key]) for key in expected)


def test_gpt2_without_its_head_is_the_same_network(tmp_path: Path) -> None:
    theirs = VARIANTS["gpt2"].network()
    theirs.transformer.save_pretrained(tmp_path)
    network = read_folder(tmp_path)
    assert network.their_class == "GPT2Model"
    with torch.inference_mode():
        assert_close(VARIANTS["gpt2"].ours(network.model()), theirs(IDS).logits)


def test_bert_as_it_was_published(saved: Saved, tmp_path: Path) -> None:
    """With TensorFlow's names of norms, positions among the weights, and the output layer's matrix and bias twice."""

    def older(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        renamed = {
            name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
            for name, tensor in tensors.items()
        }
        copies = {
            "cls.predictions.decoder.weight": tensors["bert.embeddings.word_embeddings.weight"].clone(),
            "cls.predictions.decoder.bias": tensors["cls.predictions.bias"].clone(),
        }
        return {**renamed, **copies, "bert.embeddings.position_ids": torch.arange(24)[None]}

    network = read_folder(rewritten(saved("bert, pre-training"), tmp_path, older))
    expected = read_folder(saved("bert, pre-training"))
    assert network.notes == expected.notes != ()
    ours, theirs = network.weights(), expected.weights()
    assert all(torch.equal(ours[key], theirs[key]) for key in theirs)


def test_a_network_alone_may_carry_the_prefix_of_its_class(saved: Saved, tmp_path: Path) -> None:
    def prefixed(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return {f"bert.{name}": tensor for name, tensor in tensors.items()}

    ours = read_folder(rewritten(saved("bert"), tmp_path, prefixed)).weights()
    expected = read_folder(saved("bert")).weights()
    assert all(torch.equal(ours[key], expected[key]) for key in expected)


def test_vit_by_the_names_of_its_modules(tmp_path: Path, saved: Saved) -> None:
    theirs = VARIANTS["vit"].network()
    ours = read_folder(rewritten(saved("vit"), tmp_path, lambda tensors: dict(theirs.state_dict()))).weights()
    expected = read_folder(saved("vit")).weights()
    assert all(torch.equal(ours[key], expected[key]) for key in expected)


@pytest.mark.parametrize("kept", ["model.shared.weight", "model.encoder.embed_tokens.weight", "lm_head.weight"])
def test_a_shared_matrix_may_be_stored_by_any_of_its_names(kept: str, saved: Saved, tmp_path: Path) -> None:
    def renamed(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return {
            **{name: one for name, one in tensors.items() if name != "model.shared.weight"},
            kept: tensors["model.shared.weight"],
        }

    ours = read_folder(rewritten(saved("marian"), tmp_path, renamed)).weights()
    expected = read_folder(saved("marian")).weights()
    assert all(torch.equal(ours[key], expected[key]) for key in expected)


def test_positions_that_a_file_holds_are_taken(saved: Saved, tmp_path: Path) -> None:
    table = torch.randn(64, 32, generator=torch.Generator().manual_seed(2))
    folder = rewritten(
        saved("marian"), tmp_path, lambda tensors: {**tensors, "model.decoder.embed_positions.weight": table}
    )
    variant, network = VARIANTS["marian"], read_folder(folder)
    assert torch.equal(network.weights()["target_embedding.positions.weight"], table)
    with torch.inference_mode():
        assert_close(variant.ours(network.model()), variant.theirs(their_model(folder)))


def test_an_output_layer_that_t5_does_not_hold_is_its_embedding(saved: Saved, tmp_path: Path) -> None:
    """As transformers saves a network of version 1.1 whose matrices were not trained apart."""
    without = rewritten(
        saved("t5, 1.1"),
        tmp_path,
        lambda tensors: {key: one for key, one in tensors.items() if key != "lm_head.weight"},
    )
    variant, network = VARIANTS["t5, 1.1"], read_folder(without)
    with torch.inference_mode():
        assert_close(variant.ours(network.model()), variant.theirs(their_model(without)), atol=2e-5)


def test_what_a_config_says_beside_the_network(saved: Saved) -> None:
    network = read_folder(saved("bert, classes"))
    assert (network.kind, network.their_class) == ("bert", "BertForSequenceClassification")
    assert network.labels == ("bad", "fair", "good")
    assert read_folder(saved("bert, number")).labels == ()
    marian = read_folder(saved("marian")).special_ids
    assert (marian["pad"], marian["eos"], marian["decoder_start"]) == ((1,), (2,), (1,))


def test_special_tokens_may_stand_in_the_generation_config(saved: Saved, tmp_path: Path) -> None:
    folder = rewritten(saved("gpt2"), tmp_path, dict)
    (folder / "generation_config.json").write_text('{"eos_token_id": [5, 6], "decoder_start_token_id": 3}')
    special_ids = read_folder(folder).special_ids
    assert special_ids["decoder_start"] == (3,)
    assert special_ids["eos"] == (2,)  # config.json says otherwise, and decides


def test_a_config_that_names_no_class_is_read_by_its_model_type(saved: Saved, tmp_path: Path) -> None:
    folder = rewritten(saved("mistral, window"), tmp_path, dict)
    config = json.loads((folder / "config.json").read_text())
    del config["architectures"]
    (folder / "config.json").write_text(json.dumps(config))
    assert read_folder(folder).their_class == "MistralForCausalLM"


def test_rotary_settings_of_older_configs(saved: Saved, tmp_path: Path) -> None:
    folder = rewritten(saved("llama, linear"), tmp_path, dict)
    config = json.loads((folder / "config.json").read_text())
    del config["rope_parameters"]
    config |= {"rope_theta": 500.0, "rope_scaling": {"type": "linear", "factor": 3.0}}
    (folder / "config.json").write_text(json.dumps(config))
    assert read_folder(folder).config == read_folder(saved("llama, linear")).config


def test_a_window_of_theirs_counts_the_token_itself(saved: Saved) -> None:
    assert read_folder(saved("mistral, window")).fields["window"] == 4  # of 5


def test_a_snapshot_of_the_hubs_cache_is_a_folder_of_links(saved: Saved, tmp_path: Path) -> None:
    snapshot, blobs = tmp_path / "snapshots" / "1a2b", tmp_path / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, name in enumerate(("config.json", "model.safetensors")):
        (blobs / str(number)).write_bytes((saved("vit") / name).read_bytes())
        (snapshot / name).symlink_to(Path("../../blobs") / str(number))
    assert read_folder(snapshot).weights().keys() == read_folder(saved("vit")).weights().keys()


# -- out ----------------------------------------------------------------------------------------------------------------


@every_variant
def test_what_is_written_computes_the_same(name: str, saved: Saved, tmp_path: Path) -> None:
    variant = VARIANTS[name]
    theirs = their_model(exported(saved(name), tmp_path / "out"))
    with torch.inference_mode():
        assert_close(variant.theirs(theirs), variant.theirs(variant.network()))


@every_variant
def test_what_is_written_is_read_again_bit_by_bit(name: str, saved: Saved, tmp_path: Path) -> None:
    before, after = read_folder(saved(name)), read_folder(exported(saved(name), tmp_path / "out"))
    assert after.config == before.config
    assert (after.kind, after.task, after.labels) == (before.kind, before.task, before.labels)
    ours, again = before.weights(), after.weights()
    assert ours.keys() == again.keys()
    assert all(torch.equal(ours[key], again[key]) for key in ours)


@pytest.mark.parametrize(
    "name", ["gpt2", "llama, llama3", "mistral, window", "qwen2", "t5", "t5, 1.1", "marian", "m2m100"]
)
def test_greedy_tokens_are_theirs(name: str, saved: Saved, tmp_path: Path) -> None:
    folder = exported(saved(name), tmp_path / "out")
    model, theirs = read_folder(folder).model(), their_model(folder)
    n_new = 12
    with torch.inference_mode():
        if VARIANTS[name].task == "language":
            prompt, begin = Prompt(IDS[:, :5]), 5
            state: Any = model.start(3)  # type: ignore[operator]
            given = {"inputs": IDS[:, :5], "attention_mask": torch.ones(3, 5, dtype=torch.long)}
        else:
            start = theirs.config.decoder_start_token_id
            prompt, begin = Prompt(torch.full((3, 1), start)), 1
            state = model.start((IDS, LENGTHS))  # type: ignore[operator]
            ids = IDS.masked_fill(~REAL, theirs.config.pad_token_id)
            given = {"inputs": ids, "attention_mask": REAL.long(), "decoder_start_token_id": start}
        # Their cache counts the layers of T5's encoder, of which this one has fewer.
        rules = {"do_sample": False, "num_beams": 1, "eos_token_id": 2, "forced_eos_token_id": None, "use_cache": False}
        expected = theirs.generate(**given, max_new_tokens=n_new, **rules)
        request = Request(prompt=prompt, end_id=2, limits=torch.full((3,), n_new))
        found = decode(model, state, request, DecodingConfig(beam=1))
    for one, row in zip(found, expected[:, begin:].tolist(), strict=True):
        assert list(one.best.ids) == (row[: row.index(2)] if 2 in row else row)


# -- networks of ours ---------------------------------------------------------------------------------------------------

TEXT = {"vocab": 40}
LAYERS = {"n_encoder_layers": 2, "n_decoder_layers": 2, "d_model": 16, "n_heads": 2, "d_ff": 24}
PAIRS = {"source_vocab": 40, "target_vocab": 40, **LAYERS}
OURS: dict[str, tuple[str, dict[str, Any], str]] = {
    "gpt": ("gpt-nano", TEXT, "GPT2LMHeadModel"),
    "llama": ("llama-nano", TEXT, "LlamaForCausalLM"),
    "llama, window": ("llama-nano", {**TEXT, "window": 3}, "MistralForCausalLM"),
    "llama, heads that divide nothing": (
        "llama-nano",
        {**TEXT, "d_model": 126, "d_head": 8, "tied": "none"},
        "MistralForCausalLM",
    ),
    "bert, words": ("bert-tiny", {**TEXT, "head": "words"}, "BertForMaskedLM"),
    "bert, classes": ("bert-tiny", {**TEXT, "head": "sequence", "n_outputs": 3}, "BertForSequenceClassification"),
    "t5": ("t5-tiny", {"source_vocab": 40, "target_vocab": 40}, "T5ForConditionalGeneration"),
    "transformer": ("transformer-base", PAIRS, "MarianMTModel"),
    "transformer, base of positions": ("transformer-base", {**PAIRS, "position_base": 100.0}, "MarianMTModel"),
    "transformer, learned": ("transformer-base", {**PAIRS, "positions": "learned"}, "MarianMTModel"),
    "transformer, pre-norm": (
        "transformer-base",
        {**PAIRS, "norm_order": "pre"},
        "PegasusForConditionalGeneration",
    ),
    "transformer, pre-norm, learned": (
        "transformer-base",
        {**PAIRS, "norm_order": "pre", "positions": "learned", "output_bias": True},
        "PegasusForConditionalGeneration",
    ),
    "transformer, own vocabularies": (
        "transformer-base",
        {**PAIRS, "source_vocab": 41, "tied": "target"},
        "MarianMTModel",
    ),
    "vit": (
        "vit-tiny",
        {"n_channels": 3, "image_size": 16, "n_outputs": 3, "n_layers": 2},
        "ViTForImageClassification",
    ),
    "resnet": (
        "resnet-20",
        {"n_channels": 3, "n_outputs": 3, "stem": "large", "n_blocks": (1, 1)},
        "ResNetForImageClassification",
    ),
}


def variant_of(name: str) -> Variant:
    if name.startswith(("gpt", "llama")):
        return VARIANTS["gpt2"]
    if name in ("vit", "resnet"):
        return VARIANTS["vit"]
    return VARIANTS[name] if name.startswith("bert") else VARIANTS["marian"]


@pytest.mark.parametrize("name", OURS)
def test_networks_of_ours_are_theirs(name: str, tmp_path: Path) -> None:
    preset, changes, their_class = OURS[name]
    config = build(PRESETS[preset].config, {**PRESETS[preset].fields, **changes}, origin="test")
    model = build_model(config, seed=2).eval()
    written = write_folder(tmp_path / "out", config, model.state_dict(), special_ids={"pad": 1, "bos": 2, "eos": 2})
    assert written.their_class == their_class
    variant = variant_of(name)
    with torch.inference_mode():
        assert_close(variant.theirs(their_model(tmp_path / "out")), variant.ours(model))
        network = read_folder(tmp_path / "out")
        assert_close(variant.ours(network.model()), variant.ours(model))


def test_nothing_is_lost_but_a_last_bit_of_t5s_tokens() -> None:
    """√D is no power of two, so that dividing and multiplying by it rounds; of a width of 64 or 1024 it does not."""
    for d_model, exact in ((48, False), (64, True)):
        sizes = {**PRESETS["t5-tiny"].fields, "source_vocab": 40, "target_vocab": 40, "d_model": d_model}
        config = build(PRESETS["t5-tiny"].config, sizes, origin="test")
        weights = build_model(config).state_dict()
        theirs = export_network(config, weights).tensors["shared.weight"]
        ours = weights["source_embedding.tokens.weight"]
        again = (theirs.double() / d_model**0.5).float()
        assert torch.equal(again, ours) == exact
        torch.testing.assert_close(again, ours, rtol=2e-7, atol=0)


def test_a_folder_in_use_is_not_written_to(saved: Saved, tmp_path: Path) -> None:
    exported(saved("gpt2"), tmp_path / "out")
    with pytest.raises(UsageError, match=r"out already holds a config\.json\.\nGive a new folder\."):
        exported(saved("gpt2"), tmp_path / "out")
