"""Tasks with tokenizers that came along with somebody else's weights: other roles, and something in front of every text."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.data.text import imported

import regard
from regard import config as configuration
from regard.config import DecodingConfig
from regard.data.pairs.dataset import Vocabulary
from regard.data.text.roles import GAPS, Roles
from regard.data.text.tokenizer import Tokenizer
from regard.models.llama import Llama, LlamaConfig
from regard.models.transformer import Transformer, TransformerConfig
from regard.tasks.generation import Generator
from regard.tasks.language_model.continuation import prompt_ids
from regard.tasks.language_model.corpus_loss import text_costs
from regard.tasks.language_model.task import LanguageModelTask
from regard.tasks.options import GenerationOptions
from regard.tasks.translation.alignment import cross_attention
from regard.tasks.translation.task import TranslationTask
from regard.tasks.translation.translator import LineTranslator, TranslationOptions

CPU = torch.device("cpu")
SMALL: dict[str, Any] = {
    "model.n_heads": 2,
    "model.d_model": 32,
    "training.batch_tokens": 128,
    "training.steps": 3,
    "training.warmup": 1,
    "training.learning_rate": 0.01,
    "runtime.threads": 1,
}


def trained(tmp_path: Path, task: str, tokenizer: Tokenizer, text: str, **settings: Any) -> Any:
    """Train a small model for a few steps with a ready tokenizer."""
    tokenizer.save(tmp_path / "shared.json")
    file = tmp_path / ("text.csv" if task == "classify" else "text.txt")
    file.write_text(text)
    layers = {} if task == "denoise" else {"model.n_layers": 1}
    chosen = {**SMALL, **layers, "tokenizer.file": str(tmp_path / "shared.json"), **settings}
    return regard.train(task, train=file, valid=file, run=tmp_path / "run", settings=chosen)


# Language models

DOCUMENTS = "the dog runs.\n---\nthe man plays the guitar.\n---\nthe park.\n"


def language_task(tmp_path: Path, tokenizer: Tokenizer, **settings: Any) -> Any:
    tokenizer.save(tmp_path / "shared.json")
    file = tmp_path / "text.txt"
    file.write_text(DOCUMENTS)
    tables = {"task": "language", "data": {"train": [str(file)], "valid": [str(file)], "separator": "---"}}
    config = configuration.from_tables(tables, origin="test")
    chosen = {"model.preset": "llama-nano", "tokenizer.file": str(tmp_path / "shared.json"), **settings}
    config = configuration.override(config, chosen)
    return LanguageModelTask.prepare(config, vocabulary=None, progress=lambda what, done: None)


def test_every_document_begins_with_what_stands_in_front_of_a_text(tmp_path: Path) -> None:
    tokenizer = imported.llama()
    prepared = language_task(tmp_path, tokenizer, **{"model.context": 64})
    texts = ["the dog runs.\n", "the man plays the guitar.\n", "the park.\n"]
    expected = [id for text in texts for id in (tokenizer.start_id, *tokenizer.encode(text), tokenizer.end_id)]
    assert prepared.train.stream.tolist() == expected
    n_text = sum(len(tokenizer.encode(text)) for text in texts)
    assert prepared.train.n_tokens == n_text + 3  # and three ends; no beginning is predicted
    [batch] = [prepared.train.batch(indices, CPU) for indices in prepared.train.fixed_order()]
    assert batch.mask is not None
    assert int(batch.mask.sum()) == n_text + 3
    assert not (batch.targets[batch.mask] == tokenizer.start_id).any()
    # A document is known by its beginning: the end still belongs to the one before.
    begins = (batch.ids == tokenizer.start_id)[0]
    assert batch.documents[0].tolist() == begins.cumsum(0).tolist()
    assert prepared.train.places(np.array([0])) == [f"{tmp_path / 'text.txt'}:1"]


def test_a_token_that_ends_and_begins_stands_once_between_documents(tmp_path: Path) -> None:
    tokenizer = imported.gpt2()
    prepared = language_task(tmp_path, tokenizer, **{"model.context": 64})
    assert prepared.train.stream.tolist().count(tokenizer.end_id) == 4
    assert prepared.train.n_tokens == len(prepared.train.stream) - 1
    in_front = Tokenizer(imported.byte_level(), Roles(end="<|endoftext|>", prefix=("<|endoftext|>",)))
    again = language_task(tmp_path, in_front, **{"model.context": 64})
    assert again.train.stream.tolist() == prepared.train.stream.tolist()
    assert again.train.n_tokens == prepared.train.n_tokens


@pytest.mark.parametrize("make", [imported.llama, imported.gpt2])
def test_what_each_token_costs_adds_up_to_the_loss(make: Any, tmp_path: Path) -> None:
    prepared = language_task(tmp_path, make(), **{"model.context": 16})
    task = prepared.task
    torch.manual_seed(1)
    fields = {"n_layers": 1, "n_heads": 2, "d_model": 16, **task.model_fields()}
    model = Llama(LlamaConfig(**fields, n_key_heads=1, d_ff=32, context=16)).eval()
    losses = task.losses(model, prepared.valid)
    assert losses.shape == (prepared.valid.n_tokens,)
    loss, *_ = task.scores(model, prepared.valid)
    assert losses.mean() == pytest.approx(loss.value, rel=1e-5)
    costs = text_costs(prepared.valid, task.config.data, task.tokenizer, lambda: losses)
    assert costs.n_tokens.sum() == prepared.valid.n_tokens
    [baseline] = task.fit_baselines(prepared.train)
    assert task.score_baseline(baseline, prepared.valid, n_samples=0)[0].value > 0


def test_prompts_stand_behind_what_begins_a_text() -> None:
    llama, gpt2 = imported.llama(), imported.gpt2()
    assert prompt_ids(llama, "the dog") == [llama.start_id, *llama.encode("the dog")]
    assert prompt_ids(llama, "") == [llama.start_id]
    assert prompt_ids(gpt2, "the dog") == gpt2.encode("the dog")
    assert prompt_ids(gpt2, "") == [gpt2.end_id]


def test_a_model_whose_roles_are_one_token_ends_its_text(tmp_path: Path) -> None:
    text = "the dog runs.\n---\n" * 30
    settings = {"data.separator": "---", "training.steps": 60, "model.context": 16}
    run = trained(tmp_path, "language", imported.gpt2(), text, **settings)
    for prompt in ("the dog", ""):
        [found] = run.generate([prompt], decoding=DecodingConfig(beam=1, max_length=40))
        assert prompt + found.text == "the dog runs.\n"
        assert found.outputs[0].finished
    assert "".join(run.stream("the", decoding=DecodingConfig(beam=1, max_length=40))) == " dog runs.\n"


def test_a_model_with_a_space_in_front_of_texts_goes_on(tmp_path: Path) -> None:
    text = "the dog runs.\n---\n" * 30
    settings = {"data.separator": "---", "training.steps": 60, "model.context": 24}
    run = trained(tmp_path, "language", imported.llama(), text, **settings)
    assert run.generate("the dog", decoding=DecodingConfig(beam=1, max_length=40)).text == " runs.\n"
    assert regard.load(tmp_path / "run").task.tokenizer.kind == "imported"


def test_rows_that_no_token_has_are_never_written() -> None:
    tokenizer = Tokenizer(imported.byte_level(), Roles(end="<|endoftext|>", rows=400))
    settings, options = DecodingConfig(), GenerationOptions()
    generator = Generator(tokenizer, None, settings, options, network=torch.nn.Linear(1, 1))  # type: ignore[arg-type]
    log_probs = torch.zeros(1, 400)
    for rule in generator.rules:
        log_probs = rule(log_probs, None)  # type: ignore[arg-type]
    assert log_probs[0, :301].isfinite().all()
    assert log_probs[0, 301:].isinf().all()


# Translation


def sides() -> Vocabulary:
    """A source and a target with a language's token in front, as NLLB has them."""
    names = ["</s>", "<pad>", "eng_Latn", "deu_Latn"]
    found = [
        Tokenizer(imported.byte_level(*names), Roles(end="</s>", pad="<pad>", start="</s>", prefix=(language,)))
        for language in ("eng_Latn", "deu_Latn")
    ]
    return Vocabulary(found[0], found[1])


def translation(tmp_path: Path) -> Any:
    vocabulary = sides()
    vocabulary.save(tmp_path / "vocabulary")
    files = [tmp_path / "a.en", tmp_path / "a.de"]
    for file, text in zip(files, ("the dog\nthe man plays\n", "der Hund\nder Mann spielt\n"), strict=True):
        file.write_text(text * 10)
    tables = {"task": "translate", "data": {"train": list(map(str, files))}}
    config = configuration.override(configuration.from_tables(tables, origin="test"), {"data.valid_size": 2})
    return TranslationTask.prepare(config, vocabulary=tmp_path / "vocabulary", progress=lambda what, done: None)


def network(vocabulary: Vocabulary) -> Transformer:
    torch.manual_seed(1)
    sizes = {"source_vocab": vocabulary.source.vocab_size, "target_vocab": vocabulary.target.vocab_size}
    small = {"d_model": 16, "d_ff": 32, "n_heads": 2, "n_encoder_layers": 1, "n_decoder_layers": 1}
    return Transformer(TransformerConfig(**sizes, **small)).eval()


def test_both_sides_have_their_language_in_front(tmp_path: Path) -> None:
    prepared = translation(tmp_path)
    vocabulary = prepared.task.vocabulary
    english, german = vocabulary.source.id_of("eng_Latn"), vocabulary.target.id_of("deu_Latn")
    end, pad = vocabulary.source.end_id, vocabulary.source.pad_id
    indices = np.arange(len(prepared.train))
    batch = prepared.train.batch(indices, CPU)
    for source, target in zip(batch.source.tolist(), batch.target.tolist(), strict=True):
        kept = [id for id in source if id != pad]
        assert (kept[0], kept[-1]) == (english, end)
        kept = [id for id in target if id != pad]
        assert (kept[:2], kept[-1]) == ([end, german], end)
    assert batch.source_lengths.max() == batch.source.shape[1]
    _, targets, mask = batch.teacher_forced()
    assert not mask[:, 0].any()  # the language is given
    assert (targets[mask] != pad).all() and (targets[mask] == end).sum() == len(indices)
    assert (prepared.train.lengths[indices, 0] == batch.source_lengths.numpy()).all()


def test_translations_are_written_behind_the_language(tmp_path: Path) -> None:
    task = translation(tmp_path).task
    vocabulary, model = task.vocabulary, network(task.vocabulary)
    seen: list[list[int]] = []
    step = model.step

    def spied(state: Any, ids: torch.Tensor, *counts: Any) -> Any:
        seen.append(ids[0].tolist())
        return step(state, ids, *counts)

    model.step = spied  # type: ignore[method-assign]
    options = TranslationOptions(align=True)
    translator = LineTranslator(vocabulary, [model], DecodingConfig(beam=1, max_length=5), options, max_length=50)
    [found] = translator.translate(["the dog"])
    assert seen[0] == [vocabulary.target.start_id, *vocabulary.target.prefix]
    assert len(found.outputs[0].ids) <= 5
    source = [*vocabulary.source.prefix, *vocabulary.source.encode("the dog"), vocabulary.source.end_id]
    weights = cross_attention(model, vocabulary, source, vocabulary.target.encode("der Hund"))
    assert weights.shape == (len(vocabulary.target.encode("der Hund")) + 1, len(source))


def test_a_reference_has_a_loss_without_its_language(tmp_path: Path) -> None:
    task = translation(tmp_path).task
    loss, n_pairs = task.reference_loss(network(task.vocabulary), ["the dog"], ["der Hund"])
    assert n_pairs == 1 and 0 < loss < 20


# Others


def test_masked_language_modelling_of_berts_kind(tmp_path: Path) -> None:
    text = "the dog runs through the park. a man plays the guitar.\n" * 30
    run = trained(tmp_path, "mask", imported.bert(), text)
    assert run.task.mask_id == run.task.tokenizer.specials["[MASK]"]
    [found] = run.predict(["the [MASK] runs"])
    assert found.text.startswith("the")
    specials = {*run.task.tokenizer.specials}
    assert not specials & {guess.text for own in found.guesses for guess in own}


def test_span_corruption_of_t5s_kind(tmp_path: Path) -> None:
    library = imported.unigram()
    names = [f"<extra_id_{number}>" for number in range(len(GAPS))]
    library.add_special_tokens(names)
    roles = Roles(end="</s>", pad="<pad>", start="<pad>", unknown="<unk>", gaps=tuple(names))
    text = "the dog runs through the park. a man plays the guitar.\n" * 30
    layers = {"model.n_encoder_layers": 1, "model.n_decoder_layers": 1}
    run = trained(tmp_path, "denoise", Tokenizer(library, roles), text, **layers)
    assert run.task.gaps[0] == run.task.tokenizer.specials["<extra_id_0>"]
    [found] = run.predict(["the [MASK] runs"])
    assert found.text.startswith("the")


def test_a_vocabulary_without_a_mask_is_refused(tmp_path: Path) -> None:
    with pytest.raises(regard.RegardError) as caught:
        trained(tmp_path, "mask", imported.gpt2(), "the dog runs.\n" * 30)
    assert caught.value.problem == "The vocabulary has no token <mask>: it was learned for another task."


def test_classification_of_berts_kind(tmp_path: Path) -> None:
    rows = [
        f"the {noun} {verb},{label}\n" for noun in ("dog", "man") for verb, label in (("runs", "a"), ("plays", "b"))
    ]
    run = trained(tmp_path, "classify", imported.bert(), "text,label\n" + "".join(rows * 10))
    tokenizer = run.task.tokenizer
    assert (tokenizer.start_id, tokenizer.end_id) == (tokenizer.specials["[CLS]"], tokenizer.specials["[SEP]"])
    assert run.predict(["the dog runs"])[0].label in ("a", "b")


def test_letter_case_is_the_vocabularys_own(tmp_path: Path) -> None:
    text = "the dog runs.\n" * 30
    with pytest.raises(regard.RegardError) as caught:
        trained(tmp_path, "language", imported.gpt2(), text, **{"tokenizer.lowercase": True})
    assert str(caught.value) == (
        "tokenizer.lowercase is true, and a vocabulary of kind imported reads text as it stands.\n"
        "Leave tokenizer.lowercase out, or lower-case the files."
    )
    with pytest.raises(regard.RegardError) as caught:
        trained(tmp_path, "mask", imported.bert(), text, **{"tokenizer.lowercase": False})
    assert str(caught.value) == (
        "tokenizer.lowercase is false, and a vocabulary of kind imported lower-cases text.\nLeave tokenizer.lowercase out."
    )
