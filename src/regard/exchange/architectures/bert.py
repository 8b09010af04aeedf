"""BERT with the heads that ours has too: for masked words, classes, tags, or none, as sentence encoders have it."""

from collections.abc import Mapping

from regard.exchange.architecture import (
    NO_IDS,
    Architecture,
    Network,
    Source,
    SpecialIds,
    TheirNetwork,
    no_counterpart,
    require,
)
from regard.exchange.weights import Rule, module, numbered, same
from regard.models.bert import EPSILON, BertConfig

# By their class our head.
_HEADS = {
    "BertModel": "none",
    "BertForMaskedLM": "words",
    "BertForPreTraining": "words",
    "BertForSequenceClassification": "sequence",
    "BertForTokenClassification": "tokens",
}
_CLASSES = {head: name for name, head in _HEADS.items() if name != "BertForPreTraining"}
_TASKS = {"none": "similarity", "words": "mask", "sequence": "classify", "tokens": "tag"}
_NEXT_SENTENCE = "The head that told whether one sentence follows another (next sentence prediction) was left out."
_POOLER = "The pooler was left out: nothing here reads it."


def _read(source: Source) -> Network:
    config, head = source.config, _HEADS[source.name]
    config.must_be("gelu", "hidden_act")
    config.must_be("absolute", "position_embedding_type")
    config.must_be(EPSILON, "layer_norm_eps")
    config.must_be(False, "is_decoder", "add_cross_attention")
    if head in ("words", "none"):
        config.must_be(True, "tie_word_embeddings")
    labels = config.labels if head in ("sequence", "tokens") else ()
    if config.values.get("problem_type") == "multi_label_classification":
        config.refuse("problem_type", "classes exclude each other")
    ours = source.ours(
        BertConfig,
        vocab=config.count("vocab_size"),
        head=head,
        n_outputs=len(labels),
        pooling="mean" if head == "none" else "class",  # texts are compared by the mean of their states
        n_layers=config.count("num_hidden_layers", 12),
        n_heads=config.count("num_attention_heads", 12),
        d_model=config.count("hidden_size", 768),
        d_ff=config.count("intermediate_size", 3072),
        max_positions=config.count("max_position_embeddings", 512),
        n_segments=config.count("type_vocab_size", 2),
        dropout=config.number("hidden_dropout_prob", 0.1),
    )
    task = "regress" if head == "sequence" and len(labels) == 1 else _TASKS[head]
    dropped = {r"^cls\.seq_relationship\.": _NEXT_SENTENCE} if source.name == "BertForPreTraining" else {}
    if not _has_pooler(ours):
        dropped |= {r"^bert\.pooler\.": _POOLER}
    return Network(
        config=ours, preset="bert-base", task=task, labels=() if task == "regress" else labels, dropped=dropped
    )


def _has_pooler(config: BertConfig) -> bool:
    return config.pooling == "class" and config.head in ("none", "sequence")


def _write(config: BertConfig, special_ids: SpecialIds) -> TheirNetwork:
    name = _CLASSES[config.head]
    require(config, name, n_features=0)
    if config.pooling == "last" or (config.head == "sequence" and config.pooling != "class"):
        raise no_counterpart(config, "pooling", class_name=name)
    return TheirNetwork(
        name=name,
        settings={
            **NO_IDS,
            "vocab_size": config.vocab,
            "hidden_size": config.d_model,
            "num_hidden_layers": config.n_layers,
            "num_attention_heads": config.n_heads,
            "intermediate_size": config.d_ff,
            "max_position_embeddings": config.max_positions,
            "type_vocab_size": config.n_segments,
            "hidden_act": "gelu",
            "layer_norm_eps": EPSILON,
            "hidden_dropout_prob": config.dropout,
            "attention_probs_dropout_prob": 0.0,
            "tie_word_embeddings": True,
        },
    )


def _rules(config: BertConfig, special_ids: SpecialIds) -> list[Rule]:
    layer = [
        *(
            rule
            for part in ("query", "key", "value")
            for rule in module(f"bert.encoder.layer.#.attention.self.{part}", f"encoder.#.self_attention.{part}")
        ),
        *module("bert.encoder.layer.#.attention.output.dense", "encoder.#.self_attention.output"),
        *module("bert.encoder.layer.#.attention.output.LayerNorm", "encoder.#.self_attention_residual.norm"),
        *module("bert.encoder.layer.#.intermediate.dense", "encoder.#.feed_forward.up"),
        *module("bert.encoder.layer.#.output.dense", "encoder.#.feed_forward.down"),
        *module("bert.encoder.layer.#.output.LayerNorm", "encoder.#.feed_forward_residual.norm"),
    ]
    copies = ("cls.predictions.decoder.weight",) if config.head == "words" else ()
    return [
        same("bert.embeddings.word_embeddings.weight", "embedding.tokens.weight", copies=copies),
        same("bert.embeddings.position_embeddings.weight", "embedding.positions.weight"),
        same("bert.embeddings.token_type_embeddings.weight", "embedding.segments.weight"),
        *module("bert.embeddings.LayerNorm", "embedding.norm"),
        *numbered(config.n_layers, layer),
        *(module("bert.pooler.dense", "pooler.dense") if _has_pooler(config) else []),
        *_HEAD_RULES[config.head],
    ]


_HEAD_RULES: Mapping[str, list[Rule]] = {
    "none": [],
    "words": [
        *module("cls.predictions.transform.dense", "head.dense"),
        *module("cls.predictions.transform.LayerNorm", "head.norm"),
        same("cls.predictions.bias", "head.output.bias", copies=("cls.predictions.decoder.bias",)),
    ],
    "sequence": module("classifier", "head.output"),
    "tokens": module("classifier", "head.output"),
}

BERT = Architecture(
    kind="bert",
    classes=dict.fromkeys(_HEADS, "bert"),
    config=BertConfig,
    read=_read,
    write=_write,
    rules=_rules,
    prefix="bert.",
    bare=("BertModel",),
    # As the first published files have it, which were converted from TensorFlow.
    renamed=((r"\.gamma$", ".weight"), (r"\.beta$", ".bias")),
)
