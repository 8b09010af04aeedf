"""The attention of a run to one text: for every preset that has attention, and for every task over text."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.config import DecodingConfig, from_tables
from regard.data.pairs.dataset import Vocabulary
from regard.data.text.roles import GAPS, MASK
from regard.data.text.tokenizer_training import learn
from regard.errors import UsageError
from regard.models.presets import PRESETS, Preset, build_model, model_config
from regard.tasks import find_task
from regard.tasks.attention import AttentionWeights, attention_of
from regard.tasks.labelling.labels import LabelTable
from regard.tasks.translation.translator import TranslationOptions

TEXTS = [f"the {noun} is {word} today ." for noun in ("dog", "film", "song") for word in ("good", "bad")]
SIZES = {
    "n_encoder_layers": 1,
    "n_decoder_layers": 2,
    "n_layers": 2,
    "d_model": 8,
    "d_ff": 8,
    "n_heads": 2,
    "d_head": 4,
    "d_state": 8,
    "context": 16,
    "max_positions": 32,
}
TEXT_PRESETS = [preset for preset in PRESETS.values() if preset.family not in ("vit", "convnet", "resnet", "captioner")]
WITHOUT = {"rnn", "birnn", "lstm"}


def drawn(preset: Preset, task: str, **fields: Any) -> tuple[AttentionWeights, list[str]]:
    """The attention of a tiny random model of a preset to a text, and the tokens of that."""
    sizes = {name: size for name, size in SIZES.items() if name in {**vars(preset.config), **preset.fields}}
    table = {"preset": preset.name, **sizes, **fields}
    config = from_tables({"task": task, "model": table, "tokenizer": {"kind": "words"}}, origin="test")
    specials = [MASK] if task == "mask" else GAPS if task == "denoise" else []
    tokenizer = learn(iter(TEXTS * 5), kind="words", vocab_size=200, specials=specials)
    kind = find_task(task)
    made: Any
    if task == "translate":
        made = kind(Vocabulary(tokenizer, tokenizer), config)
    elif task in ("language", "mask", "denoise"):
        made = kind(tokenizer, config)
    else:
        labels = LabelTable(labels=("a", "b"), counts=(1, 1), offset=0.0, scale=1.0, n_features=0, pairs=False)
        made = kind(tokenizer, config, labels)
    model = build_model(model_config(config.model, origin="test", **made.model_fields()), seed=2).eval()
    text = TEXTS[0].replace("good", "[MASK]") if task in ("mask", "denoise") else TEXTS[0]
    options = made.options(**({"decoding": DecodingConfig(max_length=5)} if made.spec.generates else {}))
    [result] = made.predict(model, [text], options)
    return attention_of(model, made.reading(model, text, result, options)), text.split()


@pytest.mark.parametrize("preset", TEXT_PRESETS, ids=lambda preset: preset.name)
def test_every_preset(preset: Preset) -> None:
    task = preset.tasks[0]
    if preset.name in WITHOUT:
        with pytest.raises(UsageError) as caught:
            drawn(preset, task)
        assert str(caught.value) == (
            "This model has no attention to draw.\n"
            "Leave --picture out, or use a model with attention, such as rnn-attention or a Transformer."
        )
        return
    found, words = drawn(preset, task)
    weights = np.nan_to_num(found.weights)
    assert weights.shape[-2:] == (len(found.rows), len(found.columns))
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    assert set(words) - {"[MASK]"} <= set(found.columns)


@pytest.mark.parametrize(
    ("task", "name"),
    [("translate", "t5-tiny"), ("denoise", "transformer-tiny"), ("mask", "bert-tiny"), ("tag", "bert-tiny")],
)
def test_other_tasks_of_a_preset(task: str, name: str) -> None:
    found, words = drawn(PRESETS[name], task)
    if name == "bert-tiny":
        assert found.weights.shape == (2, 2, len(words) + 2, len(words) + 2)
        assert (found.rows[0], found.rows[-1]) == ("(start)", "(end)")
    else:
        assert found.weights.shape == (len(found.rows), len(words) + 1)
        assert found.columns[-1] == "(end)"


def test_a_language_model_attends_to_no_later_token() -> None:
    found, words = drawn(PRESETS["gpt-nano"], "language")
    n_tokens = len(found.rows)
    assert len(words) < n_tokens <= len(words) + 5
    masked = np.isnan(found.weights)
    assert (masked == np.triu(np.ones((n_tokens, n_tokens), bool), 1)).all()


def test_a_window_and_a_short_context_are_drawn_too() -> None:
    found, _ = drawn(PRESETS["llama-nano"], "language", window=2, context=7)
    assert len(found.rows) == 7
    assert np.nan_to_num(found.weights)[:, :, 6, :4].max() == 0


def test_what_was_written_ends_where_the_model_ended_it(trained: Path) -> None:
    run = regard.load(trained, threads=1)
    for length in (2, 0):
        options = TranslationOptions(decoding=DecodingConfig(beam=1, max_length=length))
        result = run.translate("a dog runs", decoding=options.decoding)
        found = attention_of(run.model, run.task.reading(run.model, "a dog runs", result, options))
        output = result.outputs[0]
        assert (found.rows[-1] == "(end)") == output.finished
        assert len(found.rows) == len(output.ids) + output.finished


def test_a_text_in_parts_is_refused(trained: Path) -> None:
    run = regard.load(trained, threads=1)
    text = "A dog runs. The cat."
    with pytest.raises(UsageError, match=r"^The text was translated in 2 parts, and one is looked into at a time\."):
        run.task.reading(run.model, text, run.translate(text), TranslationOptions())


def test_pairs_are_read_together(pairs_run: Path) -> None:
    run = regard.load(pairs_run, threads=1)
    options = run.options({"texts_b": ("a cat",)})
    [result] = run.predict_with(["a dog"], options)
    found = attention_of(run.model, run.task.reading(run.model, "a dog", result, options))
    assert found.columns.count("(end)") == 2
