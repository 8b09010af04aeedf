"""Translation: batches, the loss, and what becomes of lines."""

import dataclasses
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regard
from regard import config as configuration
from regard.api import Run
from regard.config import DecodingConfig
from regard.data.parallel import Vocabulary
from regard.data.tokenizers import learn
from regard.errors import ConfigError, DataError, UsageError
from regard.models.transformer import Transformer, TransformerConfig
from regard.tasks.pairs import PairExamples, pair_batch
from regard.tasks.task import Prepared
from regard.tasks.translate import Translate
from regard.tasks.translating import Translation, Translator, _first_words, _words_of_ids, cross_attention

GREEDY = DecodingConfig(beam=1)
BEAM = DecodingConfig(beam=4)
CPU = torch.device("cpu")
PARTS = ["The dog runs.", "A cat sees the man.", "Man."]
LONG = " ".join(PARTS)
LINES = ["a dog runs", "the big old house", "", "man", "a cat sees the red tree", "   ", "the dog"]


@pytest.fixture(scope="module")
def run(trained: Path) -> Run:
    return regard.load(trained, threads=1)


@pytest.fixture(scope="module")
def prepare(corpus: tuple[str, str], tiny: dict[str, Any]) -> Callable[..., Prepared]:
    def make(settings: dict[str, Any] | None = None, **options: Any) -> Prepared:
        tables: dict[str, Any] = {"task": "translate", "data": {"train": list(corpus)}}
        for key, value in {**tiny, **(settings or {})}.items():
            table, _, name = key.rpartition(".")
            tables.setdefault(table, {})[name] = value
        config = configuration.from_tables(tables, origin="test")
        return Translate.prepare(config, vocabulary=None, progress=lambda what, done: None, **options)

    return make


def texts(translations: list[Translation]) -> list[str]:
    return [one.text for one in translations]


# Batches and the loss


def test_a_batch_is_padded_behind_with_start_and_end_tokens(run: Run) -> None:
    vocabulary = run.task.vocabulary
    batch = pair_batch([[7, 8, 9], [5]], [[4], [6, 7]], vocabulary, CPU)
    pad, start, end = 0, 1, 2
    assert batch.source.tolist() == [[7, 8, 9, end], [5, end, pad, pad]]
    assert batch.source_lengths.tolist() == [4, 2]
    assert batch.target.tolist() == [[start, 4, end, pad], [start, 6, 7, end]]
    assert batch.target_lengths.tolist() == [2, 3]


def test_examples_come_as_they_were_written(prepare: Callable[..., Prepared], corpus: tuple[str, str]) -> None:
    prepared = prepare()
    assert isinstance(prepared.train, PairExamples)
    order = prepared.train.order(3)
    assert sorted(np.concatenate(order).tolist()) == list(range(len(prepared.train)))
    lines = Path(corpus[0]).read_text().splitlines()
    batch = prepared.train.batch(order[0], CPU)
    for row, place in zip(batch.source, prepared.train.places(order[0]), strict=True):
        file, _, line = place.rpartition(":")
        assert file == corpus[0]
        assert prepared.train.vocabulary.source.decode(row.tolist()) == lines[int(line) - 1]
    budget = 96
    assert all(len(indices) * prepared.train.lengths[indices].max() <= budget for indices in order)


def test_the_order_is_a_function_of_seed_and_epoch(prepare: Callable[..., Prepared]) -> None:
    def order(epoch: int) -> list[list[int]]:
        return [batch.tolist() for batch in prepare().train.order(epoch)]

    assert order(0) == order(0)
    assert order(0) != order(1)


def test_the_loss_is_the_sum_over_real_tokens(run: Run) -> None:
    batch = pair_batch([[7, 8, 9], [5]], [[4], [6, 7]], run.task.vocabulary, CPU)
    with torch.no_grad():
        loss, weight = run.task.loss(run.model, batch, smoothing=0.1)
        logits = run.model(batch.source, batch.source_lengths, batch.target[:, :-1])
    assert weight == 5  # the end tokens count, start tokens and padding do not
    expected = F.cross_entropy(logits[0, :2], torch.tensor([4, 2]), label_smoothing=0.1, reduction="sum")
    expected += F.cross_entropy(logits[1], torch.tensor([6, 7, 2]), label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(loss, expected)


def test_a_batch_has_the_loss_of_its_examples(run: Run) -> None:
    pairs = [([7, 8, 9], [4]), ([5], [6, 7]), ([9, 9, 9, 9, 9, 9], [8, 8, 8, 8])]
    with torch.no_grad():
        alone = [
            run.task.loss(run.model, pair_batch([source], [target], run.task.vocabulary, CPU), smoothing=0.1)
            for source, target in pairs
        ]
        sources, targets = zip(*pairs, strict=True)
        together, weight = run.task.loss(
            run.model, pair_batch(sources, targets, run.task.vocabulary, CPU), smoothing=0.1
        )
    assert weight == sum(one for _, one in alone)
    torch.testing.assert_close(together, torch.stack([loss for loss, _ in alone]).sum())


class Biased(nn.Module):
    """An own network with states and an output layer that has a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.output = nn.Embedding(320, 8), nn.Linear(8, 320)

    def states(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        return self.embedding(target)

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        return self.output(self.states(source, source_lengths, target))


def test_the_bias_of_an_own_output_layer_counts(run: Run) -> None:
    torch.manual_seed(2)
    model = Biased()
    plain = nn.Module()
    plain.forward = model.forward  # type: ignore[method-assign]
    batch = pair_batch([[7]], [[4, 5]], run.task.vocabulary, CPU)
    torch.testing.assert_close(
        run.task.loss(model, batch, smoothing=0.1)[0], run.task.loss(plain, batch, smoothing=0.1)[0]
    )


def test_validation_is_token_weighted_and_decodes_greedily(run: Run, prepare: Callable[..., Prepared]) -> None:
    prepared = prepare()
    assert isinstance(prepared.valid, PairExamples)
    found = run.task.validate(run.model, prepared.valid, BEAM, n_decoded=-1)
    sources, references = prepared.valid.texts(1000)
    total = weight = 0.0
    with torch.no_grad():
        for source, target in zip(sources, references, strict=True):
            ids = [run.task.vocabulary.source.encode(text) for text in (source, target)]
            loss, n = run.task.loss(run.model, pair_batch([ids[0]], [ids[1]], run.task.vocabulary, CPU), smoothing=0.0)
            total, weight = total + float(loss), weight + n
    assert found.loss == pytest.approx(total / weight, rel=1e-5)
    assert found.scores["perplexity"] == pytest.approx(math.exp(found.loss))
    assert run.task.mean_loss(run.model, sources, references) == pytest.approx(found.loss, rel=1e-5)
    outputs = texts(run.task.translate([run.model], sources, GREEDY))
    assert found.samples == tuple(zip(sources, references, outputs, strict=True))[:3]
    expected = {score.name: score.value for score in run.task.score(outputs, references)}
    assert found.scores["bleu"] == pytest.approx(expected["bleu"])
    assert found.scores["chrf"] == pytest.approx(expected["chrf"])


def test_without_decoding_there_is_a_loss_and_no_bleu(run: Run, prepare: Callable[..., Prepared]) -> None:
    valid = prepare().valid
    assert set(run.task.validate(run.model, valid, BEAM, n_decoded=0).scores) == {"perplexity"}
    # An own network without `start` and `step` cannot be decoded, but it can be trained.
    assert set(run.task.validate(Biased(), valid, BEAM, n_decoded=2).scores) == {"perplexity"}


# The report


def test_the_report_tells_of_the_data(prepare: Callable[..., Prepared]) -> None:
    facts = dict(prepare({"data.hold_out": 9}).facts)
    training, held_out = (int(facts[name].split()[0]) for name in ("training", "validation"))
    assert training + held_out == 90
    assert facts["validation"] == f"{held_out} held out by source sentence"
    assert facts["vocabulary"] == "320 shared tokens (bpe)"
    assert re.fullmatch(r"\d+ an epoch, \d+\.\d% padding", facts["batches"])
    apart = dict(prepare({"tokenizer.shared": False, "tokenizer.kind": "words"}).facts)
    assert apart["vocabulary"] == "17 source, 17 target tokens (words)"
    assert apart["lost"].startswith("Words that are not in the vocabulary are dropped")


def test_padding_is_under_a_tenth_where_there_is_enough_text(prepare: Callable[..., Prepared], tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    files = [tmp_path / "long.en", tmp_path / "long.de"]
    lengths = chance.integers(3, 40, size=3000)
    files[0].write_text("".join("word " * n + f"{row}\n" for row, n in enumerate(lengths)))
    files[1].write_text("".join("Wort " * (n + n // 8) + f"{row}\n" for row, n in enumerate(lengths)))
    settings = {"data.train": [str(file) for file in files], "training.batch_tokens": 2048, "tokenizer.kind": "words"}
    facts = dict(prepare(settings).facts)
    share = float(facts["batches"].split(", ")[1].removesuffix("% padding"))
    assert 0 < share < 10


def test_what_was_left_out_is_told(prepare: Callable[..., Prepared], tmp_path: Path) -> None:
    source = [f"a dog {n}" for n in range(300)]
    source[4] = ""
    source[6] = "dog " * 60
    target = ["Hund " * 60 if n == 6 else "ein Hund" for n in range(300)]
    files = [tmp_path / "some.en", tmp_path / "some.de"]
    for file, lines in zip(files, (source, target), strict=True):
        file.write_text("\n".join(lines) + "\n")
    settings = {"data.train": [str(file) for file in files], "data.valid": [str(file) for file in files]}
    facts = prepare({**settings, "data.max_length": 40}).facts
    assert [text for label, text in facts if label == "left out"] == [
        f"1 bad pairs: 1 empty source; first {files[0]}:5",
        f"1 pairs too long, first {files[0]}:7",
        "2 validation pairs, bad or too long",
    ]
    assert dict(facts)["validation"] == "298 pairs"


# Word vectors


@pytest.mark.parametrize("frozen", [False, True])
def test_word_vectors_are_put_in_and_frozen(frozen: bool, corpus: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("2 4\ndog 1 2 3 4\nHund 5 6 7 8\n")
    tokenizers = [learn(Path(file).read_text().splitlines(), kind="words", vocab_size=30) for file in corpus]
    vocabulary = Vocabulary(*tokenizers)
    tables = {"kind": "words", "vectors": str(path), "freeze_vectors": frozen}
    config = configuration.from_tables({"task": "translate", "tokenizer": tables}, origin="test")
    task = Translate(vocabulary, config)
    sizes = {**task.sizes(), "d_model": 4, "n_heads": 1, "d_ff": 4, "n_encoder_layers": 1, "n_decoder_layers": 1}
    model = Transformer(TransformerConfig(**sizes, tied="none"), seed=1)
    before = model.source_embedding.tokens.weight.detach().clone()
    task.initialise(model)
    source, target = model.source_embedding.tokens.weight, model.target_embedding.tokens.weight
    dog, cat = (vocabulary.source.encode(word)[0] for word in ("dog", "cat"))
    assert source[dog].tolist() == [1, 2, 3, 4]
    assert target[vocabulary.target.encode("Hund")[0]].tolist() == [5, 6, 7, 8]
    assert torch.equal(source[cat], before[cat]), "a word without a vector keeps its random one"
    assert source.requires_grad == target.requires_grad == (not frozen)
    assert model.output.weight.requires_grad


def test_vectors_of_another_width_are_refused(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("1 5\ndog 1 2 3 4 5\n")
    config = dataclasses.replace(run.config, tokenizer=dataclasses.replace(run.config.tokenizer, vectors=str(path)))
    with pytest.raises(ConfigError) as caught:
        Translate(run.task.vocabulary, config).initialise(run.model)
    assert caught.value.problem == f"The vectors of {path} have 5 features, the model's embedding 32."
    assert caught.value.remedy == "Set model.d_model = 5."


# Lines


@pytest.mark.parametrize("decoding", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_batched_is_one_by_one_in_order(run: Run, decoding: DecodingConfig) -> None:
    lines = [line for line in LINES * 3 if line.strip()] + Path(run.config.data.train[0]).read_text().splitlines()[:20]
    together = run.translate(lines, decoding=dataclasses.replace(decoding, batch_size=7))
    alone = [run.translate([line], decoding=decoding)[0] for line in lines]
    assert texts(together) == texts(alone)
    assert [one.source for one in together] == lines
    for one, other in zip(together, alone, strict=True):
        assert one.candidates[0].score == pytest.approx(other.candidates[0].score, abs=1e-4)
    assert len(set(texts(together))) > 10, "the model says different things about different lines"


def test_the_model_has_learnt_something(run: Run) -> None:
    sources, targets = (Path(file).read_text().splitlines()[:30] for file in run.config.data.train)
    bleu, *_ = run.task.score(texts(run.translate(sources, decoding=BEAM)), targets)
    assert bleu.value > 20


def test_an_empty_line_stays_empty(run: Run) -> None:
    found = run.translate(LINES, decoding=GREEDY)
    assert [one.text == "" for one in found] == [not line.strip() for line in LINES]
    assert found[2].candidates[0].tokens == ()
    assert texts(run.translate(["", " "], decoding=GREEDY)) == ["", ""]
    assert run.translate([]) == []


def test_a_candidate_says_its_tokens_and_their_probabilities(run: Run) -> None:
    (found,) = run.translate(["a dog runs"], decoding=GREEDY)
    (candidate,) = found.candidates
    assert "".join(candidate.tokens).strip() == candidate.text
    # The end token has a probability too; with the exponent 1 the score is their mean.
    assert len(candidate.log_probs) == len(candidate.tokens) + 1
    assert candidate.score == pytest.approx(sum(candidate.log_probs) / len(candidate.log_probs), abs=1e-5)
    assert found.n_parts == 1


def test_n_best_are_distinct_and_sorted(run: Run) -> None:
    (found,) = run.translate(["a dog runs"], decoding=DecodingConfig(beam=4, n_best=3))
    assert len(found.candidates) == 3
    assert len({one.tokens for one in found.candidates}) == 3
    scores = [one.score for one in found.candidates]
    assert scores == sorted(scores, reverse=True)
    assert found.text == found.candidates[0].text


def test_a_translation_begins_as_it_must(run: Run) -> None:
    lines = ["a dog runs", "the old man", "a dog runs"]
    free = texts(run.translate(lines, decoding=BEAM))
    forced = texts(run.translate(lines, decoding=BEAM, prefixes=["Haus findet", "", "Mann"]))
    assert forced[0].startswith("Haus findet")
    assert forced[1] == free[1]
    assert forced[2].startswith("Mann")


def test_as_many_beginnings_as_lines(run: Run) -> None:
    with pytest.raises(UsageError) as caught:
        run.translate(["a dog", "a cat"], prefixes=["Haus"])
    assert caught.value.problem == "There are 2 lines and 1 beginnings for their translations."
    assert caught.value.remedy == "Give one for each line, empty where the translation is free."


def test_only_the_first_part_of_a_long_line_has_the_beginning(run: Run) -> None:
    task = shorter(run, 14)
    (found,) = task.translate([run.model], [LONG], BEAM, prefixes=["Haus findet"])
    (free,) = task.translate([run.model], [LONG], BEAM)
    assert found.text.startswith("Haus findet")
    assert found.text.count("Haus findet") == 1 + free.text.count("Haus findet")


def test_banned_words_are_not_written(run: Run) -> None:
    (free,) = texts(run.translate(["a dog runs"], decoding=BEAM))
    word = free.split()[0]
    (found,) = texts(run.translate(["a dog runs"], decoding=BEAM, banned=[word]))
    assert word not in found.split()
    assert found != free


def test_special_tokens_are_never_written(run: Run) -> None:
    ids = {0, 1}
    decoding = DecodingConfig(sample=True, temperature=50.0, n_best=3)
    found = run.translate(["a dog runs", "the cat"], decoding=decoding)
    specials = {run.task.vocabulary.target.piece_text(id) for id in ids}
    written = {token for one in found for candidate in one.candidates for token in candidate.tokens}
    assert len(written) > 20
    assert not written & specials


def test_sampling_is_seeded_and_each_line_draws_for_itself(run: Run) -> None:
    decoding = DecodingConfig(sample=True, temperature=2.0)
    lines = ["a dog runs", "the cat", "a dog runs"]
    once = texts(run.translate(lines, decoding=decoding, seed=5))
    assert texts(run.translate(lines, decoding=dataclasses.replace(decoding, batch_size=1), seed=5)) == once
    assert texts(run.translate(lines, decoding=decoding, seed=6)) != once
    assert once[0] != once[2], "equal lines draw different numbers"


def test_the_length_has_a_limit(run: Run) -> None:
    long, short = (
        run.translate(["a dog runs the cat"], decoding=DecodingConfig(beam=1, max_length=n, min_length=n))[0]
        for n in (25, 2)
    )
    assert len(long.candidates[0].tokens) == 25
    assert len(short.candidates[0].tokens) == 2
    (free,) = run.translate(["a dog"], decoding=DecodingConfig(beam=1, min_length=1000))
    n_source = len(run.task.vocabulary.source.encode("a dog")) + 1
    assert len(free.candidates[0].tokens) == 2 * n_source + 10


def shorter(run: Run, max_length: int) -> Translate:
    """The run's task, whose lines may have this many tokens."""
    config = dataclasses.replace(run.config, data=dataclasses.replace(run.config.data, max_length=max_length))
    return Translate(run.task.vocabulary, config)


def test_a_long_line_is_split_translated_and_joined(run: Run) -> None:
    task = shorter(run, 14)
    decoding = DecodingConfig(beam=4, n_best=2)
    short, long = task.translate([run.model], ["a dog", LONG], decoding)
    assert short.n_parts == 1
    assert long.n_parts == 3
    alone = task.translate([run.model], PARTS, decoding)
    assert long.text == " ".join(one.text for one in alone)
    assert long.candidates[1].text == " ".join(one.candidates[1].text for one in alone)
    assert long.candidates[0].score == pytest.approx(
        sum(one.candidates[0].score for one in alone) / len(alone), abs=1e-4
    )
    assert long.source == LONG


def test_learned_positions_limit_what_is_read_and_written(run: Run) -> None:
    sizes = {**run.task.sizes(), "d_model": 8, "n_heads": 1, "d_ff": 8, "n_encoder_layers": 1, "n_decoder_layers": 1}
    model = Transformer(TransformerConfig(**sizes, positions="learned", max_positions=9), seed=3).eval()
    line = " ".join(["the big old dog"] * 10)
    translator = Translator(run.task.vocabulary, [model], DecodingConfig(beam=2, min_length=100), max_length=256)
    (found,) = translator.translate([line])
    assert found.n_parts >= 5
    assert all(len(run.task.vocabulary.source.encode(part)) <= 8 for part in translator._fitting(line))
    assert len(found.candidates[0].tokens) <= 9 * found.n_parts


def test_an_ensemble_of_a_run_with_itself_is_the_run(run: Run) -> None:
    lines = ["a dog runs", "the big cat"]
    alone = run.translate(lines, decoding=BEAM)
    together = run.translate(lines, decoding=BEAM, ensemble=[run, run])
    assert texts(together) == texts(alone)
    for one, other in zip(alone, together, strict=True):
        assert one.candidates[0].score == pytest.approx(other.candidates[0].score, abs=1e-5)


def test_an_ensemble_is_heard_in_all_its_members(run: Run, trained: Path) -> None:
    other = regard.load(f"{trained}@40", threads=1)
    (together,) = run.translate(["a dog runs"], decoding=GREEDY, ensemble=[other])
    members = [one.translate(["a dog runs"], decoding=GREEDY, prefixes=[together.text])[0] for one in (run, other)]
    first = [math.exp(one.candidates[0].log_probs[0]) for one in (*members, together)]
    assert first[2] == pytest.approx((first[0] + first[1]) / 2, rel=1e-3)
    assert first[0] != pytest.approx(first[1], rel=1e-2)


# Attention and alignment


def test_attention_has_a_row_for_each_written_token_and_the_end(run: Run) -> None:
    source = [*run.task.vocabulary.source.encode("a dog runs"), 2]
    target = run.task.vocabulary.target.encode("läuft Hund")
    weights = cross_attention(run.model, run.task.vocabulary, source, target)
    assert weights.shape == (len(target) + 1, len(source))
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-5)
    assert weights.min() >= 0


def test_links_stay_inside_their_sentences(run: Run) -> None:
    lines = ["a dog runs", "the  big old   house ", "", "man", "Schöne neue Wörter, unbekannt!"]
    for decoding in (BEAM, DecodingConfig(sample=True, temperature=3.0, n_best=2)):
        found = run.translate(lines, decoding=decoding, align=True)
        assert any(one.candidates[0].alignment for one in found)
        for line, translation in zip(lines, found, strict=True):
            for candidate in translation.candidates:
                words = candidate.text.split()
                targets = [link.target for link in candidate.alignment]
                assert len(targets) == len(set(targets)), "a target word has one link"
                for link in candidate.alignment:
                    assert 0 <= link.source < len(line.split())
                    assert 0 <= link.target < len(words)
                    assert 0 < link.score <= 1 + 1e-5


def test_a_long_line_is_aligned_as_one(run: Run) -> None:
    (found,) = shorter(run, 14).translate([run.model], [LONG], BEAM, align=True)
    expected, n_read, n_written = [], 0, 0
    for part, one in zip(PARTS, run.translate(PARTS, decoding=BEAM, align=True), strict=True):
        assert one.candidates[0].alignment
        expected += [(link.source + n_read, link.target + n_written) for link in one.candidates[0].alignment]
        n_read, n_written = n_read + len(part.split()), n_written + len(one.text.split())
    assert found.n_parts == 3
    assert [(link.source, link.target) for link in found.candidates[0].alignment] == expected
    assert n_written == len(found.text.split())


def test_a_part_may_begin_inside_a_word() -> None:
    assert _first_words("他来了。她走了 last", ["他来了。", "她走了", "last"]) == [0, 0, 1]


def test_without_align_there_are_no_links(run: Run) -> None:
    (found,) = run.translate(["a dog runs"], decoding=BEAM)
    assert found.candidates[0].alignment == ()


def test_words_of_ids_that_no_text_would_give() -> None:
    tokenizer = learn(["a dog runs  far"], kind="bytes", vocab_size=300)

    def words(data: bytes) -> list[int | None]:
        symbols = {tokenizer.piece_text(id): id for id in range(4, 260)}
        ids = [symbols.get(chr(byte)) or symbols[f"⟨{byte:02X}⟩"] for byte in data]
        return _words_of_ids(tokenizer, ids)

    assert words(b"ab c") == [0, 0, 0, 1]
    assert words(b"  a  b ") == [0, 0, 0, 0, 0, 1, 1], "white space never counts as a word"
    assert words(b"   ") == [None, None, None]
    ideographic_space = "\u3000".encode()
    assert words(b"a " + ideographic_space) == [0, 0, 0, 0, 0]
    assert words(b"a " + ideographic_space + b"b") == [0, 0, 1, 1, 0, 1]


# Saved and loaded


def test_a_loaded_task_is_the_saved_one(run: Run, tmp_path: Path) -> None:
    run.task.save(tmp_path / "vocabulary")
    loaded = Translate.load(run.config, tmp_path / "vocabulary")
    assert loaded.vocabulary.fingerprint() == run.task.vocabulary.fingerprint()
    assert loaded.sizes() == {"source_vocab": 320, "target_vocab": 320}
    assert texts(loaded.translate([run.model], ["a dog"], BEAM)) == texts(run.translate(["a dog"], decoding=BEAM))


def test_a_run_without_its_vocabulary_says_what_is_missing(run: Run, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape(f"{tmp_path / 'source.json'}: there is no such file.")):
        Translate.load(run.config, tmp_path)


def test_validation_pairs_that_are_left_out_are_told(
    prepare: Callable[..., Prepared], corpus: tuple[str, str], tmp_path: Path
) -> None:
    for side, file in zip(("en", "de"), corpus, strict=True):
        lines = Path(file).read_text().splitlines() * 3
        lines[1] = "" if side == "de" else lines[1]
        (tmp_path / f"valid.{side}").write_text("\n".join(lines) + "\n")
    prepared = prepare({"data.valid": [str(tmp_path / "valid.en"), str(tmp_path / "valid.de")]})
    assert ("left out", "1 validation pairs, bad or too long") in prepared.facts
