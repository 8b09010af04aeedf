"""Synthetic batches: the loss of random sequences or images, to count or to time a training step without data."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.config import CorruptionConfig, TrainingConfig
from regard.models.decoder_only import DecoderOnly
from regard.parts.losses import output_cross_entropy
from regard.tasks.token_loss import token_loss
from regard.training.batch_shape import AnyBatchShape, BatchShape, ImageBatchShape

META = torch.device("meta")


def synthetic_loss(model: Any, batch: AnyBatchShape, *, device: torch.device = META) -> Tensor:
    """Return the loss of a random batch, none of it padded, as a task for this network would compute it.

    batch: of a whole number of examples, and a target of a whole length
    """
    if isinstance(batch, ImageBatchShape):
        return (
            _caption_loss(model, batch, device)
            if batch.n_captions
            else _label_loss(model(_images(model, batch, device)))
        )
    if batch.target_length:
        return _pair_loss(model, batch, device)
    return (_language_loss if isinstance(model, DecoderOnly) else _encoder_loss)(model, batch, device)


def _ids(vocab_size: int, batch: BatchShape, device: torch.device) -> Tensor:
    return torch.randint(vocab_size, (int(batch.n_sequences), batch.length), device=device)


def _lengths(batch: BatchShape, device: torch.device) -> Tensor:
    return torch.full((int(batch.n_sequences),), batch.length, device=device)


def _pair_loss(model: Any, batch: BatchShape, device: torch.device) -> Tensor:
    """Of one sequence from another."""
    target = torch.randint(model.config.target_vocab, (int(batch.n_sequences), int(batch.target_length)), device=device)
    inputs = _ids(model.config.source_vocab, batch, device), _lengths(batch, device), target
    return token_loss(model, inputs, target, None, smoothing=TrainingConfig().label_smoothing)[0]


def _language_loss(model: Any, batch: BatchShape, device: torch.device) -> Tensor:
    """Of each token from those before it."""
    text = _ids(model.config.vocab, batch, device)
    return token_loss(model, (text,), text, None, smoothing=0.0)[0]


def _encoder_loss(model: Any, batch: BatchShape, device: torch.device) -> Tensor:
    """Of masked tokens, of a label for each sequence, or of one for each token, by the head."""
    config, lengths = model.config, _lengths(batch, device)
    if config.n_features:
        sequences = torch.rand(int(batch.n_sequences), batch.length, config.n_features, device=device)
    else:
        sequences = _ids(config.vocab, batch, device)
    if config.head != "words":
        return _label_loss(model(sequences, lengths).flatten(0, -2))  # one row per example, or per token
    n_masked = max(1, round(CorruptionConfig().rate * sequences.numel()))
    masked = torch.arange(n_masked, device=device)
    states = model.head.transform(model.encode(sequences, lengths).flatten(0, 1)[masked])
    output = model.head.output
    return output_cross_entropy(states, output.weight, output.bias, sequences.flatten()[masked])


def _images(model: Any, batch: ImageBatchShape, device: torch.device) -> Tensor:
    return torch.rand(int(batch.n_images), model.config.n_channels, batch.size, batch.size, device=device)


def _caption_loss(model: Any, batch: ImageBatchShape, device: torch.device) -> Tensor:
    image_of = torch.arange(int(batch.n_images), device=device).repeat_interleave(batch.n_captions)
    target = torch.randint(model.config.vocab, (len(image_of), batch.caption_length), device=device)
    inputs = _images(model, batch, device), target, image_of
    return token_loss(model, inputs, target, None, smoothing=TrainingConfig().label_smoothing)[0]


def _label_loss(outputs: Tensor) -> Tensor:
    """What outputs (N, K) cost, whatever the right class of each is."""
    return F.cross_entropy(outputs.float(), torch.zeros(len(outputs), dtype=torch.int64, device=outputs.device))
