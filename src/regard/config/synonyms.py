"""Synonyms: what other toolkits call our settings, so that whoever writes `--lr` is told `--learning-rate`."""

import dataclasses
import typing
from collections.abc import Collection, Iterable, Mapping

from regard.config.tables import RunConfig
from regard.errors import did_you_mean, plain_name

LAYERS = ("model.n_layers", "model.n_encoder_layers", "model.n_decoder_layers")
BATCH = ("training.batch_tokens", "training.batch_images")

# By our keys the names of PyTorch, transformers, fairseq, OpenNMT, Sockeye, nanoGPT and timm, in the order of the run file.
SYNONYMS: Mapping[tuple[str, ...], str] = {
    ("seed",): "random_seed manual_seed",
    ("data.train",): "train_file train_data",
    ("data.valid",): "val dev valid_file valid_data validation",
    ("data.valid_size",): "val_size val_split validation_split",
    ("data.source",): "src source_lang src_lang",
    ("data.target",): "tgt target_lang tgt_lang",
    ("data.image_size",): "img_size resolution",
    ("tokenizer.vocab_size",): "vocab n_vocab vocabulary_size num_words",
    ("tokenizer.lowercase",): "lower lowercasing do_lower_case do_lowercase uncased",
    ("tokenizer.normalisation",): "normalization normalizer unicode_normalization nfc nfkc",
    LAYERS: "layers num_layers n_layer num_hidden_layers depth",
    ("model.n_encoder_layers",): "encoder_layers enc_layers num_encoder_layers",
    ("model.n_decoder_layers",): "decoder_layers dec_layers num_decoder_layers",
    ("model.n_heads",): "heads num_heads nhead n_head num_attention_heads attention_heads",
    ("model.d_model",): "hidden_size hidden_dim embed_dim embedding_dim emb_dim n_embd width",
    ("model.d_ff",): "ffn_dim ff_dim dim_feedforward intermediate_size n_inner mlp_dim",
    ("model.dropout",): "dropout_rate drop_rate hidden_dropout hidden_dropout_prob",
    ("model.context", "model.max_positions"): "context_length block_size n_ctx n_positions max_position_embeddings",
    ("training.steps",): "max_steps num_steps n_steps train_steps iterations max_iters max_updates",
    ("training.epochs",): "num_epochs n_epochs max_epochs num_train_epochs",
    BATCH: "batch batch_size bs train_batch_size max_tokens batch_tokens batch_images",
    ("training.accumulate",): "accum grad_accum gradient_accumulation gradient_accumulation_steps update_freq",
    ("training.learning_rate",): "lr rate max_lr peak_lr",
    ("training.schedule",): "scheduler lr_scheduler lr_schedule lr_scheduler_type",
    ("training.warmup",): "warmup_steps warmup_updates warmup_iters num_warmup_steps",
    ("training.beta1", "training.beta2"): "betas adam_betas",
    ("training.epsilon",): "eps adam_eps adam_epsilon",
    ("training.weight_decay",): "wd decay l2",
    ("training.clip",): "clip_norm grad_clip gradient_clip clip_grad max_grad_norm gradient_clipping",
    ("training.label_smoothing",): "smoothing label_smoothing_factor",
    ("training.init",): "init_from pretrained finetune from_pretrained",
    ("training.freeze_init",): "freeze freeze_encoder",
    ("training.layer_decay",): "llrd layerwise_lr_decay",
    ("training.validate_every",): "eval_steps eval_every eval_interval valid_steps",
    ("training.save_every_steps",): "save_steps save_every save_interval checkpoint_every",
    ("training.best_by",): "metric_for_best_model monitor early_stopping_metric",
    ("training.patience",): "early_stopping early_stopping_patience",
    ("training.keep",): "save_total_limit keep_last keep_checkpoint",
    ("training.average",): "average_last average_checkpoints",
    ("training.ema",): "ema_decay",
    ("decoding.beam",): "beam_size beam_width num_beams beams",
    ("decoding.length_penalty",): "lenpen alpha len_penalty",
    ("decoding.n_best",): "nbest num_return_sequences num_hypotheses",
    ("decoding.max_length", "data.max_length"): "max_len max_length max_tokens max_new_tokens max_target_length",
    ("data.max_length",): "max_source_length truncate",
    ("decoding.min_length",): "min_len min_new_tokens",
    ("decoding.sample",): "sampling do_sample",
    ("decoding.temperature",): "temp softmax_temperature",
    ("decoding.top_k",): "topk sampling_topk",
    ("decoding.top_p",): "topp nucleus sampling_topp",
    ("decoding.no_repeat_ngram",): "no_repeat_ngram_size block_ngram_repeat",
    ("runtime.device",): "gpu cuda cpu gpus use_gpu gpu_id",
    ("runtime.precision",): "fp16 bf16 fp32 amp half dtype mixed_precision",
    ("runtime.threads",): "num_threads n_threads cpu_threads",
    ("runtime.workers",): "num_workers n_workers",
}  # fmt: skip
# Fields that most models have: their tables stand beside the networks, and would load torch.
OF_MODELS = ("n_layers", "n_encoder_layers", "n_decoder_layers", "n_heads", "d_model", "d_ff", "dropout", "context")


def keys_of(name: str) -> tuple[str, ...]:
    """The keys of a run file that a name may mean, dotted: those that others call so, and those that bear it."""
    name = plain_name(name)
    known = [key for keys, names in SYNONYMS.items() for key in keys if name in names.split()]
    own = [f"model.{name}"] if name in OF_MODELS else []
    for table, kind in typing.get_type_hints(RunConfig).items():
        if dataclasses.is_dataclass(kind) and name in {field.name for field in dataclasses.fields(kind)}:
            own.append(f"{table}.{name}")
    return tuple(dict.fromkeys((*known, *own)))


def near_name(name: str, choices: Iterable[str], *, otherwise: str = "") -> str:
    """The sentence that points to a valid name: to what others call `name`, else to the nearest, as `did_you_mean`."""
    names = list(choices)
    meant = {plain_name(key.rpartition(".")[2]) for key in keys_of(name)}
    ours = [one for one in names if plain_name(one) in meant and one != name]
    return which(ours) if ours else did_you_mean(name, names, otherwise=otherwise)


def near_key(name: str, path: str, known: Collection[str]) -> str:
    """The same for a key under `path` of a run file, whose keys are `known`; it may be one of another table."""
    elsewhere = [key for key in keys_of(name) if key.partition(".")[0] != path.partition(".")[0]]
    return near_name(
        name, known, otherwise=which(elsewhere) if elsewhere else f"Available: {', '.join(sorted(known))}."
    )


def which(names: Iterable[str]) -> str:
    """Ask whether one of these is meant."""
    return f"Did you mean {' or '.join(names)}?"
