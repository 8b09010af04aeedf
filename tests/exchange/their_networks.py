"""Small networks of the transformers package, of every kind that has a counterpart, and what each reads."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import transformers

Choices = dict[str, Any]
V, LENGTH = 40, 20
GENERATOR = torch.Generator().manual_seed(5)
IDS = torch.randint(3, V, (3, LENGTH), generator=GENERATOR)
TARGET = torch.randint(3, V, (3, 14), generator=GENERATOR)
SEGMENTS = (torch.arange(LENGTH) >= torch.tensor([[10], [4], [20]])).long()
LENGTHS = torch.tensor([20, 9, 1])
REAL = torch.arange(LENGTH) < LENGTHS[:, None]
IMAGES = torch.randn(2, 3, 16, 16, generator=GENERATOR)


def shaken(model: Any) -> Any:
    """Biases and norms begin as zeros and ones, which would hide a mistake; fixed positions stay what they are."""
    generator = torch.Generator().manual_seed(9)
    tensors = [*model.named_parameters(), *model.named_buffers()]
    with torch.no_grad():
        for name, tensor in tensors:
            if tensor.is_floating_point() and not any(
                part in name for part in ("embed_positions", "rotary", "attn.bias")
            ):
                noise = torch.randn(tensor.shape, generator=generator)
                tensor.add_(0.1 * (noise.abs() if "running_var" in name else noise))
    return model.eval()


# -- what they say, and what we say, of the same inputs -----------------------------------------------------------------


def encoder_inputs() -> dict[str, Tensor]:
    return {"input_ids": IDS, "attention_mask": REAL.long(), "token_type_ids": SEGMENTS}


def their_language(model: Any) -> Tensor:
    logits: Tensor = model(input_ids=IDS).logits
    return logits


def their_pairs(model: Any) -> Tensor:
    # Padding by its own token: M2M100 looks for it, to count positions.
    ids = IDS.masked_fill(~REAL, model.config.pad_token_id)
    logits: Tensor = model(input_ids=ids, attention_mask=REAL.long(), decoder_input_ids=TARGET, use_cache=False).logits
    return logits


def their_words(model: Any) -> Tensor:
    outputs = model(**encoder_inputs())
    logits: Tensor = outputs.prediction_logits if "prediction_logits" in outputs else outputs.logits
    return logits[REAL]


def their_sequence(model: Any) -> Tensor:
    logits: Tensor = model(**encoder_inputs()).logits
    return logits


def their_mean(model: Any) -> Tensor:
    states: Tensor = model(**encoder_inputs()).last_hidden_state
    return (states * REAL[..., None]).sum(1) / LENGTHS[:, None]


def their_images(model: Any) -> Tensor:
    logits: Tensor = model(IMAGES).logits
    return logits


def our_language(model: nn.Module) -> Tensor:
    logits: Tensor = model(IDS)
    return logits


def our_pairs(model: nn.Module) -> Tensor:
    logits: Tensor = model(IDS.masked_fill(~REAL, 0), LENGTHS, TARGET)
    return logits


def our_encoder(model: nn.Module) -> Tensor:
    answer: Tensor = model(IDS, LENGTHS, SEGMENTS)
    return answer


def our_words(model: nn.Module) -> Tensor:
    return our_encoder(model)[REAL]


def our_images(model: nn.Module) -> Tensor:
    logits: Tensor = model(IMAGES)
    return logits


@dataclass(frozen=True)
class Variant:
    """A network of theirs, how it is made, and what both say of the same inputs.

    task: that it suits
    """

    make: Callable[[], Any]
    theirs: Callable[[Any], Tensor]
    ours: Callable[[nn.Module], Tensor]
    task: str

    def network(self) -> Any:
        with torch.random.fork_rng():
            torch.manual_seed(1)
            return shaken(self.make())


# -- every kind ---------------------------------------------------------------------------------------------------------


def _made(name: str, config: str, **settings: Any) -> Callable[[], Any]:
    return lambda: getattr(transformers, name)(getattr(transformers, config)(**settings))


def _language(name: str, config: str, **settings: Any) -> Variant:
    ids = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    return Variant(_made(name, config, vocab_size=V, **ids, **settings), their_language, our_language, "language")


GPT2: Choices = {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 24}
LLAMA: Choices = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}
SLOWED: Choices = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
    "rope_theta": 5000.0,
}
LANGUAGE: dict[str, Variant] = {
    "gpt2": _language("GPT2LMHeadModel", "GPT2Config", **GPT2),
    "llama": _language("LlamaForCausalLM", "LlamaConfig", **LLAMA),
    "llama, tied": _language("LlamaForCausalLM", "LlamaConfig", **LLAMA, tie_word_embeddings=True, rms_norm_eps=1e-3),
    "llama, biases": _language("LlamaForCausalLM", "LlamaConfig", **LLAMA, attention_bias=True),
    "llama, wide heads": _language("LlamaForCausalLM", "LlamaConfig", **LLAMA, head_dim=12),
    "llama, linear": _language(
        "LlamaForCausalLM",
        "LlamaConfig",
        **LLAMA,
        rope_parameters={"rope_type": "linear", "factor": 3.0, "rope_theta": 500.0},
    ),
    "llama, llama3": _language("LlamaForCausalLM", "LlamaConfig", **LLAMA, rope_parameters=SLOWED),
    "mistral": _language("MistralForCausalLM", "MistralConfig", **LLAMA, sliding_window=None),
    "mistral, window": _language("MistralForCausalLM", "MistralConfig", **LLAMA, sliding_window=5, head_dim=6),
    "qwen2": _language("Qwen2ForCausalLM", "Qwen2Config", **LLAMA),
    "qwen2, window": _language(
        "Qwen2ForCausalLM",
        "Qwen2Config",
        **LLAMA,
        tie_word_embeddings=True,
        use_sliding_window=True,
        sliding_window=4,
        max_window_layers=0,
    ),
}

BERT: Choices = {
    "vocab_size": V,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 24,
    "pad_token_id": 0,
}
LABELS = {0: "bad", 1: "fair", 2: "good"}


def _bert(
    name: str, theirs: Callable[[Any], Tensor], ours: Callable[[nn.Module], Tensor], task: str, **more: Any
) -> Variant:
    return Variant(_made(name, "BertConfig", **BERT, **more), theirs, ours, task)


ENCODERS: dict[str, Variant] = {
    "bert, words": _bert("BertForMaskedLM", their_words, our_words, "mask"),
    "bert, pre-training": _bert("BertForPreTraining", their_words, our_words, "mask"),
    "bert": _bert("BertModel", their_mean, our_encoder, "similarity"),
    "bert, no pooler": Variant(
        lambda: transformers.BertModel(transformers.BertConfig(**BERT), add_pooling_layer=False),
        their_mean,
        our_encoder,
        "similarity",
    ),
    "bert, classes": _bert("BertForSequenceClassification", their_sequence, our_encoder, "classify", id2label=LABELS),
    "bert, number": _bert("BertForSequenceClassification", their_sequence, our_encoder, "regress", num_labels=1),
    "bert, tags": _bert("BertForTokenClassification", their_words, our_words, "tag", id2label=LABELS),
}

T5: Choices = {
    "vocab_size": V,
    "d_model": 32,
    "d_kv": 6,
    "d_ff": 48,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 9,
    "decoder_start_token_id": 0,
}


def _untied_t5() -> Any:
    """Their class shares the matrix all the same until weights say otherwise."""
    config = transformers.T5Config(**T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False)
    network = transformers.T5ForConditionalGeneration(config)
    network.lm_head.weight = nn.Parameter(0.2 * torch.randn(V, 32))
    return network


def _pairs(make: Callable[[], Any]) -> Variant:
    return Variant(make, their_pairs, our_pairs, "translate")


BART: Choices = {
    "vocab_size": V,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}


def _bart(name: str, config: str, **settings: Any) -> Variant:
    return _pairs(_made(name, config, **{**BART, **settings}))


PAIRS: dict[str, Variant] = {
    "t5": _pairs(_made("T5ForConditionalGeneration", "T5Config", **T5)),
    "t5, gated": _pairs(_made("T5ForConditionalGeneration", "T5Config", **T5, feed_forward_proj="gated-silu")),
    "t5, 1.1": _pairs(_untied_t5),
    "marian": _bart("MarianMTModel", "MarianConfig", scale_embedding=True, activation_function="swish"),
    "marian, not scaled": _bart("MarianMTModel", "MarianConfig", scale_embedding=False, activation_function="relu"),
    "marian, two vocabularies": _bart(
        "MarianMTModel", "MarianConfig", share_encoder_decoder_embeddings=False, decoder_vocab_size=V + 3
    ),
    "marian, untied": _bart(
        "MarianMTModel",
        "MarianConfig",
        share_encoder_decoder_embeddings=False,
        decoder_vocab_size=V + 3,
        tie_word_embeddings=False,
    ),
    "pegasus": _bart("PegasusForConditionalGeneration", "PegasusConfig", scale_embedding=True),
    "m2m100": _bart("M2M100ForConditionalGeneration", "M2M100Config", activation_function="relu"),
    "m2m100, other padding": _bart("M2M100ForConditionalGeneration", "M2M100Config", pad_token_id=0, d_model=36),
}

VIT: Choices = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 16,
    "patch_size": 4,
    "id2label": LABELS,
}
RESNET: Choices = {"embedding_size": 4, "depths": [2, 1], "id2label": LABELS}


def _images(name: str, config: str, **settings: Any) -> Variant:
    return Variant(_made(name, config, **settings), their_images, our_images, "image")


PICTURES: dict[str, Variant] = {
    "vit": _images("ViTForImageClassification", "ViTConfig", **VIT),
    "resnet, bottleneck": _images("ResNetForImageClassification", "ResNetConfig", **RESNET, hidden_sizes=[16, 32]),
    "resnet, basic": _images(
        "ResNetForImageClassification", "ResNetConfig", **RESNET, hidden_sizes=[4, 8], layer_type="basic"
    ),
}
VARIANTS: dict[str, Variant] = {**LANGUAGE, **ENCODERS, **PAIRS, **PICTURES}
