"""What sources of training usually have, counted and kept with the run."""

from pathlib import Path
from typing import Any

import pytest

import regard
from regard.errors import DataError
from regard.tasks.translation.lengths import FILE, UsualSource


def test_a_run_keeps_what_its_sources_have(trained: Path, corpus: tuple[str, str]) -> None:
    run = regard.load(trained, threads=1)
    usual = UsualSource.load(trained / "vocabulary")
    assert run.task.usual == usual
    assert usual.sentences == 1
    lengths = sorted(map(len, run.task.vocabulary.source.encode_batch(Path(corpus[0]).read_text().splitlines())))
    assert lengths[len(lengths) // 2] < usual.tokens <= lengths[-1]


def test_sources_of_several_sentences(tmp_path: Path, tiny: dict[str, Any]) -> None:
    (tmp_path / "a.en").write_text("".join(f"The dog {n} runs. It {n} sees. Oh!\n" for n in range(40)))
    (tmp_path / "a.de").write_text("".join(f"Der Hund {n} läuft. Er {n} sieht. Oh!\n" for n in range(40)))
    files = [str(tmp_path / "a.en"), str(tmp_path / "a.de")]
    regard.train("translate", train=files, run=tmp_path / "run", settings={**tiny, "training.steps": 1})
    assert UsualSource.load(tmp_path / "run" / "vocabulary").sentences == 3


def test_a_run_of_before_takes_single_sentences(tmp_path: Path) -> None:
    assert UsualSource.load(tmp_path) == UsualSource()
    assert UsualSource().sentences == 1


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", '{"source": {"tokens": 3}}', '{"source": {"tokens": "x", "sentences": 1}}'),
        *("[" * 100_000, '{"source": {"tokens": 3, "sentences": 0}}', '{"source": {"tokens": 3, "sentences": 1e400}}'),
    ],
)
def test_a_damaged_file(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(DataError, match="not the lengths of a run's sources") as caught:
        UsualSource.load(tmp_path)
    assert str(tmp_path / FILE) in caught.value.problem
    assert caught.value.remedy == "Put back the file that the run was trained with."
