"""What a run says of texts, from Python: each task its own kind of answer."""

import inspect
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.api import Run
from regard.errors import UsageError
from regard.tasks.denoising.fill_mask import Filled
from regard.tasks.labelling.classification import Classified
from regard.tasks.labelling.regression import Measured
from regard.tasks.labelling.tagging import TaggedText

TEXTS = ["a good dog", "a dull song", "a great film"]


def load(run: Path) -> Run:
    return regard.load(run, threads=1)


def test_texts_are_classified(classify_run: Path) -> None:
    found = load(classify_run).predict(TEXTS)
    assert all(isinstance(one, Classified) for one in found)
    assert [one.label for one in found if isinstance(one, Classified)] == ["pos", "neg", "pos"]


def test_words_are_tagged_and_given_as_text_or_in_a_list(tag_run: Path) -> None:
    run = load(tag_run)
    [by_text] = run.predict(["Anna Smith visits Oslo"])
    [by_words] = run.predict([("Anna", "Smith", "visits", "Oslo")])
    assert isinstance(by_text, TaggedText)
    assert by_text == by_words
    assert by_text.tags == ("B-PER", "I-PER", "O", "B-LOC")


def test_texts_are_measured(regress_run: Path) -> None:
    found = load(regress_run).predict(["AAAA", "DDDD"])
    values = [one.value for one in found if isinstance(one, Measured)]
    assert len(values) == 2
    assert values[0] > values[1] + 1


def test_blanks_are_filled(mask_run: Path, denoise_run: Path) -> None:
    [found] = load(mask_run).predict(["the [MASK] is good today ."], top=3)
    assert isinstance(found, Filled)
    assert found.text != found.source
    assert [len(guesses) for guesses in found.guesses] == [3]
    [written] = load(denoise_run).predict(["the [MASK] is good today ."])
    assert isinstance(written, Filled)
    assert "[MASK]" not in written.text


def test_sequences_of_vectors_are_classified(vectors_run: Path) -> None:
    rising = np.stack([0.3 * np.arange(6), np.zeros(6)], axis=-1)
    found = load(vectors_run).predict([rising, -rising])
    assert [one.label for one in found if isinstance(one, Classified)] == ["up", "down"]


def test_progress_is_told(classify_run: Path) -> None:
    done: list[tuple[str, int]] = []
    load(classify_run).predict(TEXTS, progress=lambda what, n: done.append((what, n)))
    assert done[-1] == ("reading", 3)


def test_a_second_text_is_for_who_reads_it(classify_run: Path, pairs_run: Path, tag_run: Path) -> None:
    run = load(classify_run)
    assert run.predict(TEXTS, texts_b=["", "", ""]) == run.predict(TEXTS)
    with pytest.raises(UsageError, match=r"^The model learned from single texts, and second ones are given"):
        run.predict(["a good dog"], texts_b=["a dull song"])
    same, other = load(pairs_run).predict(["a dog", "a dog"], texts_b=["a dog", "the sun"])
    assert same != other
    assert load(pairs_run).predict([]) == []
    with pytest.raises(UsageError) as caught:
        load(tag_run).predict(["Anna"], texts_b=["Ben"])
    assert caught.value.problem == "A sentence whose words are tagged has no second text."


@pytest.mark.parametrize(
    "name", ["classify_run", "tag_run", "regress_run", "mask_run", "denoise_run", "trained", "pairs_run", "image_run"]
)
def test_nothing_raises_when_a_run_is_looked_at(name: str, request: pytest.FixtureRequest) -> None:
    run = load(request.getfixturevalue(name))
    assert inspect.getmembers(run)
    assert all(hasattr(run, member) for member in dir(run))
    assert not hasattr(run, "nonsense")
    assert type(run).__name__ in repr(run)
    assert run._repr_html_().startswith("<table>")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("classify_run", "a good dog"),
        ("regress_run", "AABA"),
        ("tag_run", "Anna visits Oslo"),
        ("mask_run", "the [MASK] is good"),
        ("denoise_run", "the [MASK] is good"),
    ],
)
def test_a_bare_text_is_one_text(name: str, text: str, request: pytest.FixtureRequest) -> None:
    run = load(request.getfixturevalue(name))
    assert run.predict(text) == run.predict([text])[0]
    assert run.embed(text).vector.tolist() == run.embed([text])[0].vector.tolist()


def test_one_text_gives_one_result(classify_run: Path, tag_run: Path, mask_run: Path) -> None:
    run = load(classify_run)
    assert run.predict("a good dog") == run.predict(["a good dog"])[0]
    assert run.embed("a good dog").vector.tolist() == run.embed(["a good dog"])[0].vector.tolist()
    assert load(tag_run).predict("Anna visits Oslo").words == ("Anna", "visits", "Oslo")
    assert load(mask_run).predict("the [MASK] is good").source == "the [MASK] is good"
    assert run.predict(["a good dog"]).records()[0]["prediction"] == "pos"


def test_a_run_of_another_kind_names_its_command(trained: Path) -> None:
    with pytest.raises(UsageError) as caught:
        regard.Classifier.load(trained)
    assert caught.value.remedy == f"Use it with: regard translate {trained}"


@pytest.mark.parametrize("name", ["classify_run", "tag_run", "regress_run", "mask_run", "denoise_run", "trained"])
def test_every_run_over_text_has_vectors(name: str, request: pytest.FixtureRequest) -> None:
    run = load(request.getfixturevalue(name))
    found = run.embed(["a good dog", "the old man visits"], tokens=True)
    assert [one.words for one in found] == [("a", "good", "dog"), ("the", "old", "man", "visits")]
    for one in found:
        assert one.vector.shape == (32,)
        assert one.word_vectors is not None
        assert one.word_vectors.shape == (len(one.words), 32)
    assert not np.allclose(found[0].vector, found[1].vector)


def test_vectors_of_a_class_token_are_those_of_bert(classify_run: Path) -> None:
    import torch

    run = load(classify_run)
    tokenizer = run.task.tokenizer
    ids = torch.tensor([[tokenizer.start_id, *tokenizer.encode("a good dog"), tokenizer.end_id]])
    with torch.inference_mode():
        states = run.model.encode(ids, torch.tensor([ids.shape[1]]))[0].numpy()
    for pooling, expected in (("class", states[0]), ("mean", states.mean(0)), ("last", states[-1])):
        [found] = run.embed(["a good dog"], pooling=pooling)
        np.testing.assert_allclose(found.vector, expected, atol=1e-5)


def test_a_run_over_vectors_embeds_no_text(vectors_run: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load(vectors_run).embed(["a dog"])
    assert caught.value.problem == f"{vectors_run} was trained on vectors: it reads no text."
    assert caught.value.remedy == "Name a run over text."


def test_a_text_longer_than_the_run_reads_is_cut(classify_run: Path) -> None:
    long = "a good dog " * 30
    [one, other] = load(classify_run).embed([long, "a dog"])
    assert one.n_cut == 90 - 38  # 40 positions, two of them for the start and the end
    assert other.n_cut == 0
    [answer] = load(classify_run).predict([long])
    assert isinstance(answer, Classified)
    assert answer.cut
