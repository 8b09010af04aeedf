"""The shortlist: what is learned from a made-up pair of languages, and the file that CTranslate2 reads."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import ENGLISH, GERMAN

import regard
from regard.errors import UsageError
from regard.evaluation.baselines.dictionary import TranslationTable
from regard.tasks.translation import shortlist as module
from regard.tasks.translation.shortlist import Shortlist, learn_shortlist
from regard.tasks.translation.task import TranslationTask


@pytest.fixture
def task(trained: Path) -> TranslationTask:
    found: TranslationTask = regard.load(trained, engine="torch").task
    return found


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hardly any token is allowed for its frequency: the vocabulary is smaller than what usually is."""
    monkeypatch.setattr(module, "MOST_FREQUENT", 2)


def words(task: TranslationTask) -> list[tuple[list[int], list[int]]]:
    """The tokens of each word and of its translation."""
    source, target = task.vocabulary.source, task.vocabulary.target
    return [(source.encode(one), target.encode(other)) for one, other in zip(ENGLISH, GERMAN, strict=True)]


def test_a_word_may_become_its_translation(task: TranslationTask) -> None:
    found = learn_shortlist(task)
    for own, other in words(task):
        assert {*other} <= {*found.always}.union(*(found.allowed[id] for id in own))


def test_a_word_may_not_become_everything(task: TranslationTask) -> None:
    found = learn_shortlist(task)
    used = {id for _, other in words(task) for id in other}
    outside = [used - {*found.always}.union(*(found.allowed[id] for id in own)) for own, _ in words(task)]
    assert all(outside)


def test_special_tokens_and_the_most_frequent_are_always_allowed(task: TranslationTask) -> None:
    target = task.vocabulary.target
    found = learn_shortlist(task)
    assert {target.start_id, target.end_id, target.unknown_id} < {*found.always}
    assert len(found.always) == 3 + module.MOST_FREQUENT
    lines = Path(task.config.data.train[1]).read_text().splitlines()
    counts = Counter(id for ids in target.encode_batch(lines) for id in ids)
    most = {id for id, count in counts.items() if count >= counts.most_common(4)[-1][1]}  # a tenth is held out
    assert {*found.always} - {target.start_id, target.end_id, target.unknown_id} <= most


def test_what_is_always_allowed_takes_no_place_among_the_likeliest(task: TranslationTask) -> None:
    found = learn_shortlist(task)
    for id, ids in found.allowed.items():
        assert {*ids} & {*found.always} <= {id}


def test_every_token_may_be_copied_where_the_vocabulary_is_shared(task: TranslationTask) -> None:
    assert task.vocabulary.shared
    found = learn_shortlist(task)
    assert all(id in found.allowed[id] for id in range(task.vocabulary.source.n_tokens))


def test_no_list_is_longer_than_is_said(task: TranslationTask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PER_TOKEN", 1)
    assert max(map(len, learn_shortlist(task).allowed.values())) == 2  # the likeliest, and itself


def test_the_same_is_learned_again(task: TranslationTask) -> None:
    assert learn_shortlist(task) == learn_shortlist(task)


def test_parts_teach_what_all_pairs_together_do(task: TranslationTask, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    fit = TranslationTable.fit

    def counted(sources: Any, targets: Any, *, n_sources: int) -> TranslationTable:
        sizes.append(len(sources))
        return fit(sources, targets, n_sources=n_sources)

    monkeypatch.setattr(module.TranslationTable, "fit", counted)
    monkeypatch.setattr(module, "PART_LINKS", 1000)
    found = learn_shortlist(task)
    assert len(sizes) > 1
    for own, other in words(task):
        assert {*other} <= {*found.always}.union(*(found.allowed[id] for id in own))
    n_pairs, sizes[:] = sum(sizes), []
    monkeypatch.setattr(module, "MOST_LINKS", 1000)
    learn_shortlist(task)
    assert 0 < sum(sizes) < n_pairs


def test_the_likeliest_of_a_table() -> None:
    table = TranslationTable(np.array([0, 0, 0, 2]), np.array([5, 6, 7, 5]), np.array([0.2, 0.5, 0.3, 0.01]))
    found = table.likeliest(2, least=0.0)
    assert (found.sources.tolist(), found.targets.tolist()) == ([0, 0, 2], [6, 7, 5])
    assert table.likeliest(3, least=0.25).targets.tolist() == [6, 7]


def test_the_file_has_a_line_for_each_source_token() -> None:
    found = Shortlist(always=(0, 2), allowed={0: (1,), 1: (1, 2), 2: (0,)})
    written = found.vocabulary_map(["a", "b", "c d"], ["x", "ß", "z"])
    assert written.decode() == "\tx z\na\tß\nb\tß z\n"  # a source token with a space has no line of its own


@pytest.mark.parametrize("name", [" ", "a b", "\t", "\n", "a\r"])
def test_a_target_token_with_white_space_is_refused(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        Shortlist(always=(0,), allowed={0: (1,)}).vocabulary_map(["a"], ["x", name])
    assert caught.value.problem == (
        f"A target token is {name!r}, and CTranslate2's vocabulary map separates tokens by white space."
    )
    assert caught.value.remedy == (
        "Leave --shortlist out, or train with a vocabulary of subwords (tokenizer.kind = bpe)."
    )


def without_files(task: TranslationTask, *files: str) -> TranslationTask:
    config = replace(task.config, data=replace(task.config.data, train=files))
    return TranslationTask(task.vocabulary, config)


def test_training_files_that_are_gone(task: TranslationTask, tmp_path: Path) -> None:
    files = str(tmp_path / "gone.en"), str(tmp_path / "gone.de")
    with pytest.raises(UsageError) as caught:
        learn_shortlist(without_files(task, *files))
    assert caught.value.problem.startswith(
        f"A shortlist is learned from the training pairs ({', '.join(files)}), which cannot be read: "
    )
    assert caught.value.remedy == "Put the files back, or leave --shortlist out."


def test_a_run_without_training_files(task: TranslationTask) -> None:
    with pytest.raises(UsageError) as caught:
        learn_shortlist(without_files(task))
    assert caught.value.problem == "A shortlist is learned from the training pairs, and this run has none of its own."
    assert caught.value.remedy == "Leave --shortlist out."
