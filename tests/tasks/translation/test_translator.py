"""What becomes of lines: searched for, put together, aligned."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.api import Run
from regard.config import DecodingConfig
from regard.errors import UsageError
from regard.evaluation.alignment import Link
from regard.evaluation.generated_text import score_translations
from regard.models.transformer import Transformer, TransformerConfig
from regard.tasks.generation import Output
from regard.tasks.translation.lengths import UsualSource
from regard.tasks.translation.task import TranslationTask
from regard.tasks.translation.translator import LineTranslator, Translation, TranslationOptions

GREEDY = DecodingConfig(beam=1)
BEAM = DecodingConfig(beam=4)
PARTS = ["The dog runs.", "A cat sees the man.", "Man."]
LONG = " ".join(PARTS)
LINES = ["a dog runs", "the big old house", "", "man", "a cat sees the red tree", "   ", "the dog"]


@pytest.fixture(scope="module")
def run(trained: Path) -> Run:
    return regard.load(trained, threads=1, engine="torch")


def texts(translations: list[Translation]) -> list[str]:
    return [one.text for one in translations]


# Lines


@pytest.mark.parametrize("decoding", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_batched_is_one_by_one_in_order(run: Run, decoding: DecodingConfig) -> None:
    lines = [line for line in LINES * 3 if line.strip()] + Path(run.config.data.train[0]).read_text().splitlines()[:20]
    together = run.translate(lines, decoding=dataclasses.replace(decoding, batch_size=7))
    alone = [run.translate([line], decoding=decoding)[0] for line in lines]
    assert texts(together) == texts(alone)
    assert [one.source for one in together] == lines
    for one, other in zip(together, alone, strict=True):
        assert one.outputs[0].score == pytest.approx(other.outputs[0].score, abs=1e-4)
    assert len(set(texts(together))) > 10, "the model says different things about different lines"


def test_the_model_has_learnt_something(run: Run) -> None:
    sources, targets = (Path(file).read_text().splitlines()[:30] for file in run.config.data.train)
    bleu, *_ = score_translations(texts(run.translate(sources, decoding=BEAM)), targets)
    assert bleu.value > 10


def test_an_empty_line_stays_empty(run: Run) -> None:
    found = run.translate(LINES, decoding=GREEDY)
    assert [one.text == "" for one in found] == [not line.strip() for line in LINES]
    assert found[2].outputs[0].tokens == ()
    assert texts(run.translate(["", " "], decoding=GREEDY)) == ["", ""]
    assert run.translate([]) == []


def test_a_candidate_says_its_tokens_and_their_probabilities(run: Run) -> None:
    (found,) = run.translate(["a dog runs"], decoding=GREEDY)
    (candidate,) = found.outputs
    assert "".join(candidate.tokens).strip() == candidate.text
    # The end token has a probability too; with the exponent 1 the score is their mean.
    assert len(candidate.log_probs) == len(candidate.tokens) + 1
    assert candidate.score == pytest.approx(sum(candidate.log_probs) / len(candidate.log_probs), abs=1e-5)
    assert found.n_parts == 1


def test_n_best_are_distinct_and_sorted(run: Run) -> None:
    (found,) = run.translate(["a dog runs"], decoding=DecodingConfig(beam=4, n_best=3))
    assert len(found.outputs) == 3
    assert len({one.tokens for one in found.outputs}) == 3
    scores = [one.score for one in found.outputs]
    assert scores == sorted(scores, reverse=True)
    assert found.text == found.outputs[0].text


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


def test_a_beginning_of_any_length_is_written_whole(run: Run) -> None:
    prefix = " ".join(["Haus findet den alten Baum"] * 6)
    n_forced = len(run.task.vocabulary.target.encode(prefix))
    (free,) = run.translate(["man"], decoding=DecodingConfig(beam=2, min_length=1000))
    for decoding in (DecodingConfig(beam=2, min_length=1000), DecodingConfig(sample=True, min_length=1000)):
        (found,) = run.translate(["man"], decoding=decoding, prefixes=[prefix])
        assert found.text.startswith(prefix)
        assert len(found.outputs[0].tokens) == len(free.outputs[0].tokens) + n_forced
    (short,) = run.translate(["man"], decoding=DecodingConfig(beam=2, max_length=3), prefixes=[prefix])
    assert short.text.startswith(prefix)
    assert len(short.outputs[0].tokens) <= n_forced + 3


def test_a_beginning_that_the_positions_cannot_hold(run: Run) -> None:
    decoding = DecodingConfig(beam=2)
    ids = run.task.vocabulary.target.encode("Haus Haus Haus Haus Haus Haus Haus Haus")
    fitting = run.task.vocabulary.target.decode(ids[:7])
    (found,) = short_sighted(run, decoding, prefixes=(fitting,)).translate(["man"])
    assert found.text.startswith(fitting)
    too_long = run.task.vocabulary.target.decode(ids[:8])
    with pytest.raises(UsageError) as caught:
        short_sighted(run, decoding, prefixes=("", too_long)).translate(["man", "dog"])
    assert str(caught.value) == (
        "With the model's positions a beginning has at most 7 tokens, but that of line 2 has 8.\nShorten it."
    )


@pytest.mark.parametrize("beam", [1, 3])
def test_a_beginning_has_the_last_word(run: Run, beam: int) -> None:
    decoding = DecodingConfig(beam=beam, no_repeat_ngram=1)
    prefixes = ["Haus Haus Haus", ""]
    banned, free = run.translate(["a dog runs", "the man"], decoding=decoding, prefixes=prefixes, banned=["Haus"])
    assert banned.text.startswith("Haus Haus Haus")
    assert "Haus" not in banned.text.removeprefix("Haus Haus Haus").split()
    assert free.text == run.translate(["the man"], decoding=decoding, banned=["Haus"])[0].text
    # What is forced has the model's own probability: that which it has where no rule stands against it.
    plain, *_ = run.translate(["a dog runs"], decoding=DecodingConfig(beam=beam), prefixes=["Haus Haus Haus"])
    n_forced = len(run.task.vocabulary.target.encode("Haus Haus Haus"))
    assert banned.outputs[0].log_probs[:n_forced] == pytest.approx(plain.outputs[0].log_probs[:n_forced], abs=1e-4)


@pytest.mark.parametrize("decoding", [GREEDY, BEAM, DecodingConfig(sample=True)], ids=["greedy", "beam", "sampling"])
def test_a_line_that_can_write_nothing_is_named(run: Run, decoding: DecodingConfig) -> None:
    """Lines are decoded longest first: the number in the batch is another one."""
    options = TranslationOptions(prefixes=("Hund", "", "Hund", "Hund", ""))
    settings = dataclasses.replace(decoding, batch_size=2)
    translator = LineTranslator(run.task.vocabulary, [run.model], settings, options, max_length=256)
    lines = ["man", "", "the big old house", "a dog runs", "the cat"]
    # Nothing may be written first, but what is forced.
    translator.generator.rules += (
        lambda log_probs, step: log_probs if step.written.shape[1] else log_probs - math.inf,
    )
    with pytest.raises(UsageError) as caught:
        translator.translate(lines)
    assert str(caught.value) == (
        "The line 'the cat' has no token to write at position 0: "
        "the rules ban every one, or the model's logits are not numbers.\n"
        "Relax the rules (banned tokens, minimum length, repeated n-grams), or check the model."
    )


def test_only_the_first_part_of_a_long_line_has_the_beginning(run: Run) -> None:
    task = shorter(run, 13)
    (found,) = translated(task, run, [LONG], BEAM, prefixes=("Haus findet",))
    (free,) = translated(task, run, [LONG], BEAM)
    assert found.text.startswith("Haus findet")
    assert found.text.count("Haus findet") == 1 + free.text.count("Haus findet")


def test_banned_words_are_not_written(run: Run) -> None:
    lines = ["a dog runs", "the big cat"]
    free = texts(run.translate(lines, decoding=BEAM))
    words = [free[0].split()[0], free[1].split()[-1]]
    found = texts(run.translate(lines, decoding=BEAM, banned=words))
    assert not {word for text in found for word in text.split()} & set(words)
    assert found[0] != free[0]


def test_a_banned_phrase_leaves_its_words_free(run: Run) -> None:
    (free,) = texts(run.translate(["a dog runs the cat"], decoding=BEAM))
    phrase = " ".join(free.split()[:2])
    (found,) = texts(run.translate(["a dog runs the cat"], decoding=BEAM, banned=[phrase]))
    assert phrase not in found
    assert set(found.split()) & set(phrase.split())


def test_special_tokens_are_never_written(run: Run) -> None:
    ids = {0, 1}
    decoding = DecodingConfig(sample=True, temperature=50.0, n_best=3)
    found = run.translate(["a dog runs", "the cat"], decoding=decoding)
    specials = {run.task.vocabulary.target.piece_text(id) for id in ids}
    written = {token for one in found for candidate in one.outputs for token in candidate.tokens}
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
    assert len(long.outputs[0].tokens) == 25
    assert len(short.outputs[0].tokens) == 2
    (free,) = run.translate(["a dog"], decoding=DecodingConfig(beam=1, min_length=1000))
    n_source = len(run.task.vocabulary.source.encode("a dog")) + 1
    assert len(free.outputs[0].tokens) == 2 * n_source + 10


def translated(
    task: TranslationTask, run: Run, lines: list[str], decoding: DecodingConfig, **options: Any
) -> list[Translation]:
    return task.predict(run.model, lines, TranslationOptions(decoding=decoding, **options))


def shorter(run: Run, max_length: int) -> TranslationTask:
    """The run's task, whose lines may have this many tokens."""
    config = dataclasses.replace(run.config, data=dataclasses.replace(run.config.data, max_length=max_length))
    return TranslationTask(run.task.vocabulary, config)


def short_sighted(run: Run, decoding: DecodingConfig, **options: Any) -> LineTranslator:
    """A translator whose model, of random weights, has nine learned positions."""
    sizes = {
        **run.task.model_fields(),
        "d_model": 8,
        "n_heads": 1,
        "d_ff": 8,
        "n_encoder_layers": 1,
        "n_decoder_layers": 1,
    }
    model = Transformer(TransformerConfig(**sizes, positions="learned", max_positions=9), seed=3).eval()
    return LineTranslator(run.task.vocabulary, [model], decoding, TranslationOptions(**options), max_length=256)


def test_a_long_line_is_split_translated_and_joined(run: Run) -> None:
    task = shorter(run, 13)
    decoding = DecodingConfig(beam=4, n_best=2)
    short, long = translated(task, run, ["a dog", LONG], decoding)
    assert short.n_parts == 1
    assert long.n_parts == 3
    alone = translated(task, run, PARTS, decoding)
    assert long.text == " ".join(one.text for one in alone)
    assert long.outputs[1].text == " ".join(one.outputs[1].text for one in alone)
    assert long.outputs[0].score == pytest.approx(sum(one.outputs[0].score for one in alone) / len(alone), abs=1e-4)
    assert long.source == LONG


def test_each_sentence_is_translated_by_itself_where_training_had_single_ones(run: Run) -> None:
    assert run.task.usual.sentences == 1
    assert run.translate(LONG).text == " ".join(run.translate(part).text for part in PARTS)
    pairs = TranslationTask(run.task.vocabulary, run.config, usual=UsualSource(tokens=100, sentences=2))
    (found,) = translated(pairs, run, [LONG], BEAM)
    assert [part.source for part in found.parts[0]] == [" ".join(PARTS[:2]), PARTS[2]]
    few = TranslationTask(run.task.vocabulary, run.config, usual=UsualSource(tokens=12, sentences=2))
    assert translated(few, run, [LONG], BEAM)[0].n_parts == 3


def test_white_space_and_lines_stay(run: Run) -> None:
    first, second, third = (one.text for one in run.translate(PARTS, decoding=BEAM))
    (found,) = run.translate([f"  {PARTS[0]}\n\n\t{PARTS[1]}  {PARTS[2]} \r\n"], decoding=BEAM)
    assert found.text == f"  {first}\n\n\t{second}  {third} \r\n"
    assert found.lines() == [f"  {first}", "", f"\t{second}  {third}", ""]
    assert found.n_parts == 3
    assert found.truncation == "translated in parts"
    (lines,) = run.translate([f"{PARTS[0]}\n{PARTS[1]}"], decoding=BEAM)
    assert lines.text == f"{first}\n{second}"
    assert lines.truncation == "", "lines are no parts of a line"
    (alone,) = run.translate(["\ta dog\u2028"], decoding=BEAM)
    assert alone.text == f"\t{run.translate('a dog', decoding=BEAM).text}\u2028"
    assert alone.n_parts == 1


def test_a_line_break_that_the_model_writes_ends_no_line() -> None:
    written = Output(text="ein\nHund\tda", score=0.0, ids=(), tokens=(), log_probs=())
    assert Translation(source="a dog there", outputs=(written,)).lines() == ["ein Hund da"]


def test_the_json_says_which_part_hit_its_limit(run: Run) -> None:
    limited = DecodingConfig(beam=1, max_length=4)
    (found,) = run.translate([LONG], decoding=limited)
    (written,) = found.to_json()["translations"]
    alone = [run.translate(part, decoding=limited).outputs[0] for part in PARTS]
    assert [part["finished"] for part in written["parts"]] == [one.finished for one in alone]
    assert [part["source"] for part in written["parts"]] == PARTS
    assert " ".join(part["text"] for part in written["parts"]) == found.text
    assert {one.finished for one in alone} == {True, False}
    assert written["finished"] is False
    assert "parts" not in run.translate("man", decoding=BEAM).to_json()["translations"][0]


def fitting(translator: LineTranslator, line: str) -> list[str]:
    return [part.text for part in translator._segments([line], ())]


def test_learned_positions_limit_what_is_read_and_written(run: Run) -> None:
    line = " ".join(["the big old dog"] * 10)
    translator = short_sighted(run, DecodingConfig(beam=2, min_length=100))
    (found,) = translator.translate([line])
    assert found.n_parts >= 5
    assert all(len(run.task.vocabulary.source.encode(part)) <= 8 for part in fitting(translator, line))
    assert len(found.outputs[0].tokens) == 8 * found.n_parts
    assert short_sighted(run, DecodingConfig(beam=2), align=True).translate([line])[0].outputs[0].alignment


def test_an_ensemble_of_a_run_with_itself_is_the_run(run: Run) -> None:
    lines = ["a dog runs", "the big cat"]
    alone = run.translate(lines, decoding=BEAM)
    together = run.translate(lines, decoding=BEAM, ensemble=[run, run])
    assert texts(together) == texts(alone)
    for one, other in zip(alone, together, strict=True):
        assert one.outputs[0].score == pytest.approx(other.outputs[0].score, abs=1e-5)


def test_an_ensemble_is_heard_in_all_its_members(run: Run, trained: Path) -> None:
    other = regard.load(f"{trained}@40", threads=1)
    (together,) = run.translate(["a dog runs"], decoding=GREEDY, ensemble=[other])
    members = [one.translate(["a dog runs"], decoding=GREEDY, prefixes=[together.text])[0] for one in (run, other)]
    first = [math.exp(one.outputs[0].log_probs[0]) for one in (*members, together)]
    assert first[2] == pytest.approx((first[0] + first[1]) / 2, rel=1e-3)
    assert first[0] != pytest.approx(first[1], rel=1e-2)


# Alignment; how it is found is in test_alignment.py


def test_a_long_line_is_aligned_as_one(run: Run) -> None:
    (found,) = translated(shorter(run, 13), run, [LONG], BEAM, align=True)
    expected, n_read, n_written = [], 0, 0
    for part, one in zip(PARTS, run.translate(PARTS, decoding=BEAM, align=True), strict=True):
        assert one.outputs[0].alignment
        expected += [(link.source + n_read, link.target + n_written) for link in one.outputs[0].alignment]
        n_read, n_written = n_read + len(part.split()), n_written + len(one.text.split())
    assert found.n_parts == 3
    assert [(link.source, link.target) for link in found.outputs[0].alignment] == expected
    assert n_written == len(found.text.split())


def test_words_are_counted_over_parts_without_a_space_between_them(run: Run) -> None:
    translator = LineTranslator(run.task.vocabulary, [run.model], GREEDY, TranslationOptions(align=True), max_length=9)
    links = (Link(source=0, target=0, score=1.0),)
    row = tuple(
        Output(text=text, score=0.0, ids=(), tokens=(), log_probs=(), alignment=links) for text in ("好。", "no", "yes")
    )
    found = translator._concatenated("他来了。她走了 last", [(0, 4), (4, 7), (8, 12)], row)
    assert found.text == "好。no yes"
    assert [(link.source, link.target) for link in found.alignment or ()] == [(0, 0), (0, 0), (1, 1)]


def test_without_align_there_are_no_links(run: Run) -> None:
    (found,) = run.translate(["a dog runs"], decoding=BEAM)
    assert found.outputs[0].alignment is None
