"""From prompts to text, token by token."""

from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.config import DecodingConfig
from regard.data.text.tokenizer_training import learn
from regard.errors import UsageError
from regard.tasks.language_model.continuation import TextGrowth

TEXT = "Häuser, Bäume und 日本語: 𝄞 naïve café — ½ «Straße»\n"


@pytest.mark.parametrize("kind", ["bpe", "bytes", "characters", "unigram", "wordpiece", "words"])
@pytest.mark.parametrize("running", [True, False])
def test_text_grows_by_whole_characters(kind: str, running: bool) -> None:
    tokenizer = learn([TEXT] * 3, kind=kind, vocab_size=340, running=running)
    ids = tokenizer.encode(TEXT * 8)
    for begun in (0, 1, 5):
        growth = TextGrowth(tokenizer, ids[:begun])
        pieces = [growth.add(id) for id in ids[begun:]]
        whole = tokenizer.decode(ids[:begun]) + "".join(pieces) + growth.rest()
        assert whole == tokenizer.decode(ids)
        if begun != 1 or kind != "bytes":  # a prompt that ends inside a character shows half of it
            assert "\ufffd" not in "".join(pieces)


def test_what_never_becomes_a_character_is_shown_at_the_end() -> None:
    tokenizer = learn([TEXT], kind="bytes", vocab_size=300, running=True)
    growth = TextGrowth(tokenizer)
    first, second, *_ = tokenizer.encode("日")
    assert growth.add(first) == ""
    assert growth.add(second) == ""
    assert growth.rest() == "\ufffd"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> regard.Run:
    """A model that has learned the alphabet by heart, and to end after it."""
    folder = tmp_path_factory.mktemp("language")
    text = folder / "text.txt"
    text.write_text("abcdefghijklmnopqrstuvwxyz\n.\n" * 60)
    settings: dict[str, Any] = {
        "tokenizer.kind": "characters",
        "data.separator": ".",
        "data.valid_size": 3,
        "model.n_layers": 1,
        "model.n_heads": 2,
        "model.d_model": 32,
        "model.context": 12,
        "training.batch_tokens": 96,
        "training.steps": 120,
        "training.warmup": 10,
        "training.learning_rate": 0.01,
        "runtime.threads": 1,
    }
    valid = folder / "valid.txt"
    valid.write_text("abcdefghijklmnopqrstuvwxyz\n")
    settings.pop("data.valid_size")
    trained = regard.train("language", train=text, valid=valid, run=folder / "run", settings=settings)
    assert isinstance(trained, regard.Run)
    return trained


GREEDY = DecodingConfig(beam=1, max_length=60)


def test_it_goes_on_past_its_context_and_stops_at_the_end(run: regard.Run) -> None:
    [found] = run.generate(["abc"], decoding=GREEDY)
    assert run.generate("abc", decoding=GREEDY) == found
    assert run.options({"banned": "de"}) == run.options({"banned": ("de",)})  # a word, not its letters
    assert found.text == "defghijklmnopqrstuvwxyz\n"
    [continuation] = found.outputs
    assert continuation.finished
    assert len(continuation.log_probs) == len(continuation.ids) + 1
    assert continuation.tokens[:3] == ("d", "e", "f")


def test_it_stops_at_the_limit(run: regard.Run) -> None:
    [found] = run.generate(["abc"], decoding=DecodingConfig(beam=1, max_length=4))
    assert found.text == "defg"
    assert not found.outputs[0].finished


def test_an_empty_prompt_begins_a_document(run: regard.Run) -> None:
    [found] = run.generate([""], decoding=GREEDY)
    assert found.text == "abcdefghijklmnopqrstuvwxyz\n"


def test_streamed_equals_whole(run: regard.Run) -> None:
    sampling = DecodingConfig(sample=True, temperature=2.0, max_length=40)
    for seed in range(5):
        [found] = run.generate(["mno"], decoding=sampling, seed=seed)
        assert "".join(run.stream("mno", decoding=sampling, seed=seed)) == found.text


def test_many_prompts_equal_each_alone(run: regard.Run) -> None:
    prompts = ["abc", "x", "efghijkl", ""]
    together = run.generate(prompts, decoding=GREEDY)
    assert [one.text for one in together] == [run.generate([prompt], decoding=GREEDY)[0].text for prompt in prompts]


def test_samples_differ_and_repeat_by_seed(run: regard.Run) -> None:
    sampling = DecodingConfig(sample=True, temperature=3.0, n_best=4, max_length=20)
    [first] = run.generate(["abc"], decoding=sampling, seed=1)
    assert len({one.text for one in first.outputs}) > 1
    assert run.generate(["abc"], decoding=sampling, seed=1) == [first]
    assert run.generate(["abc"], decoding=sampling, seed=2) != [first]


@pytest.mark.parametrize(
    "decoding",
    [
        DecodingConfig(beam=1, n_best=2),
        DecodingConfig(sample=True, temperature=0.0, n_best=2),
        DecodingConfig(sample=True, top_k=1, n_best=2),
    ],
)
def test_several_texts_need_chance_or_a_beam(run: regard.Run, decoding: DecodingConfig) -> None:
    with pytest.raises(UsageError) as caught:
        run.generate(["abc"], decoding=decoding)
    assert caught.value.problem == "2 texts for each prompt are asked for, and without chance they would all be equal."
    assert caught.value.remedy == (
        "Ask for one, draw at random with a temperature above 0 and no top_k of 1, or search with a beam of 2 or more."
    )
    assert "".join(run.stream("abc", decoding=decoding)).startswith("def")  # always one


def test_what_the_vocabulary_does_not_know_of_a_prompt(run: regard.Run) -> None:
    known, unknown = run.generate(["abc", "aÄb?Ä"], decoding=DecodingConfig(beam=1, max_length=3))
    assert known.unknown == ()
    assert unknown.unknown == ("Ä", "?")


def test_banned_text_is_not_written(run: regard.Run) -> None:
    [found] = run.generate([""], decoding=GREEDY, banned=["abc"])  # as a word; inside one it would be another
    assert found.text.startswith("ab")
    assert not found.text.startswith("abc")


def test_a_prompt_longer_than_the_context_is_refused_at_once(run: regard.Run) -> None:
    with pytest.raises(UsageError) as caught:
        run.stream("abcdefghijklm")
    assert caught.value.problem == "The prompt 'abcdefghijklm' has 13 tokens, and the model reads at most 12."


def test_a_beam_cannot_be_streamed(run: regard.Run) -> None:
    with pytest.raises(UsageError, match="A beam search cannot show its text before its end"):
        run.stream("abc", decoding=DecodingConfig(beam=3))
    [found] = run.generate(["abc"], decoding=DecodingConfig(beam=3, max_length=60))
    assert found.text.startswith("defghijk")


def test_scores_are_those_of_every_token(run: regard.Run, tmp_path: Path) -> None:
    file = tmp_path / "test.txt"
    file.write_text("abcdefghijklm\n")
    found = run.evaluate([str(file)])
    loss, perplexity, bits = (score.value for score in found.scores)
    assert (found.count, found.unit) == (15, "tokens")
    ids = torch.tensor(
        [[run.task.tokenizer.end_id, *run.task.tokenizer.encode("abcdefghijklm\n"), run.task.tokenizer.end_id]]
    )
    with torch.inference_mode():
        # Windows of 12 tokens: the second begins with what the first has predicted last.
        first, second = run.model(ids[:, :12]), run.model(ids[:, 12:15])
    logits = torch.cat([first, second], dim=1)[0]
    expected = torch.nn.functional.cross_entropy(logits, ids[0, 1:])
    assert loss == pytest.approx(float(expected), abs=1e-5)
    assert perplexity == pytest.approx(float(expected.exp()), rel=1e-4)
    assert bits == pytest.approx(float(expected) * 15 / 14 / 0.6931471805599453, rel=1e-4)


def test_another_task_is_told(run: regard.Run, trained: Path) -> None:
    with pytest.raises(UsageError) as caught:
        regard.LanguageModel.load(trained)
    assert caught.value.problem.endswith(
        "is a Translator, not a LanguageModel: it was trained for the task 'translate'."
    )
    assert not hasattr(run, "translate")


def test_unknown_characters_leave_no_bits_per_byte(run: regard.Run, tmp_path: Path) -> None:
    file = tmp_path / "test.txt"
    file.write_text("abcÄ\n")
    found = run.evaluate([str(file)])
    assert [score.name for score in found.scores] == ["loss", "perplexity"]
    assert found.notes == ("1 of 6 tokens are unknown to the vocabulary: there are no bits per byte.",)


def test_a_validation_goes_on_from_tokens_not_from_text(tmp_path: Path) -> None:
    """A place inside a character is none that text could name."""
    text, valid = tmp_path / "text.txt", tmp_path / "valid.txt"
    text.write_text("smile\n" * 50)
    valid.write_text("😀" * 200)
    settings = {
        "tokenizer.kind": "bytes",
        "model.context": 6,
        "model.n_layers": 1,
        "model.n_heads": 1,
        "model.n_key_heads": 1,
        "model.d_model": 8,
    }
    settings |= {"training.steps": 2, "training.batch_tokens": 24, "runtime.threads": 1}
    assert regard.train("language", train=text, valid=valid, run=tmp_path / "run", settings=settings)
