"""The field's own words: who greps for a concept finds the file, by the first line of its docstring."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "regard"

# A term, and the file that implements it.
TERMS = {
    "AdamW": "training/optimizer.py",
    "Muon": "training/muon.py",
    "attention mask": "parts/masks.py",
    "autoregressive": "decoding/autoregressive.py",
    "backbone": "models/captioner.py",
    "batch norm": "parts/convolution.py",
    "beam search": "decoding/beam.py",
    "beam width": "decoding/beam.py",
    "bi-encoder": "tasks/labelling/similarity.py",
    "bits per byte": "evaluation/perplexity.py",
    "block ablation": "tasks/images/block_ablation.py",
    "byte-pair encoding": "data/text/tokenizer_training.py",
    "checkpoint": "runs/checkpoints.py",
    "confusion matrix": "evaluation/confusion_matrix.py",
    "cross entropy": "parts/losses.py",
    "cross-attention": "parts/decoder_layer.py",
    "data augmentation": "data/images/augmentation.py",
    "dataset": "data/pairs/dataset.py",
    "decoder-only": "models/decoder_only.py",
    "dropout": "parts/dropout.py",
    "early stopping": "training/stopping.py",
    "EMA": "training/ema.py",
    "encoder-only": "models/encoder_only.py",
    "ensemble": "decoding/ensemble.py",
    "feed-forward": "parts/feedforward.py",
    "fine-tuning": "training/fine_tuning.py",
    "FLOPs": "training/cost.py",
    "gradient accumulation": "training/loop.py",
    "gradient clipping": "training/loop.py",
    "gradient norm": "training/gradient_norms.py",
    "greedy": "decoding/greedy.py",
    "image classification": "tasks/images/image_classification.py",
    "KV cache": "parts/decoder_state.py",
    "label smoothing": "parts/losses.py",
    "layer norm": "parts/norms.py",
    "layer-wise learning-rate decay": "training/fine_tuning.py",
    "learning-rate schedule": "training/schedules.py",
    "length penalty": "decoding/penalties.py",
    "logits": "parts/heads.py",
    "macro F1": "evaluation/classification.py",
    "masked language model": "tasks/denoising/masked_lm.py",
    "mixup": "data/images/augmentation.py",
    "model card": "training/card.py",
    "multi-head attention": "parts/attention.py",
    "named entities": "evaluation/entities.py",
    "nucleus": "decoding/sampling.py",
    "paired bootstrap": "evaluation/significance.py",
    "perplexity": "evaluation/perplexity.py",
    "positional encoding": "parts/positions.py",
    "prefetch": "training/prefetch.py",
    "regression": "tasks/labelling/regression.py",
    "residual connection": "parts/residual.py",
    "rotary": "parts/positions.py",
    "self-attention": "parts/encoder_layer.py",
    "sentence embedding": "tasks/embedding.py",
    "sequence tagging": "tasks/labelling/tagging.py",
    "span corruption": "tasks/denoising/span_corruption.py",
    "teacher forcing": "tasks/translation/task.py",
    "temperature": "decoding/sampling.py",
    "throughput": "training/step_timing.py",
    "tokenizer": "data/text/tokenizer.py",
    "top-k": "decoding/sampling.py",
    "top-p": "decoding/sampling.py",
    "validation split": "data/pipeline/validation_split.py",
    "warm-up": "training/schedules.py",
    "weight decay": "training/optimizer.py",
    "weight tying": "parts/embedding.py",
    "word alignment": "evaluation/alignment.py",
}


def first_line(file: str) -> str:
    docstring = ast.get_docstring(ast.parse((SOURCE / file).read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


@pytest.mark.parametrize(("term", "file"), TERMS.items(), ids=TERMS)
def test_a_term_stands_in_the_first_line_of_its_file(term: str, file: str) -> None:
    assert term.lower() in first_line(file).lower()
