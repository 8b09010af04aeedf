"""Words and tags in columns."""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from regard.config import DataConfig
from regard.data.formats import Bad
from regard.data.formats.conll import Tagged, read_tagged
from regard.errors import DataError


def write(path: Path, content: str | bytes) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def read(*files: str, labelled: bool = True, **settings: Any) -> list[Tagged | Bad]:
    return list(read_tagged(files, DataConfig(**settings), labelled=labelled))


def sentences(found: Sequence[Tagged | Bad]) -> list[str]:
    """Each sentence as word/tag word/tag; a bad line as LINE REASON."""
    return [
        f"{one.line} {one.reason}"
        if isinstance(one, Bad)
        else " ".join(f"{word}/{tag}" for word, tag in zip(one.words, one.tags, strict=True))
        for one in found
    ]


def test_a_blank_line_ends_a_sentence(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tsv", "The\tDET\ndog\tNOUN\n\n\n\t\nbarks\tVERB\r\n")
    found = read(file)
    assert sentences(found) == ["The/DET dog/NOUN", "barks/VERB"]
    assert [(one.file, one.line) for one in found] == [(file, 1), (file, 6)]
    assert isinstance(found[0], Tagged)
    assert found[0].texts == ("The dog",)


def test_spaces_may_split_columns(tmp_path: Path) -> None:
    content = "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\n10\u00a0000  CD I-NP O \n"
    file = write(tmp_path / "a.conll.gz", gzip.compress(content.encode()))
    assert sentences(read(file)) == ["EU/B-ORG 10\u00a0000/O"]
    assert sentences(read(file, label="2")) == ["EU/NNP 10\u00a0000/CD"]
    assert sentences(read(file, text="2", label="3")) == ["NNP/B-NP CD/I-NP"]


def test_comments_are_passed_over(tmp_path: Path) -> None:
    assert sentences(read(write(tmp_path / "a.tsv", "# id 7\n#\tSYM\n#tag\tX\n# more\nno\tDET\n"))) == [
        "#/SYM #tag/X no/DET"
    ]
    # Parted by spaces: "# id" has as many columns as a word and its tag, but nothing was tagged "id".
    spaced = "# id 7\nno O\n\n# id\nyes O\n# O\n\n# O\n#tag O\n# a comment\n"
    assert sentences(read(write(tmp_path / "a.conll", spaced))) == ["no/O", "yes/O #/O", "#/O #tag/O"]


CONLLU = """# text = He's here
1-2\tHe's\t_\t_\t_\t_\t_\t_\t_\t_
1\tHe\the\tPRON\tPRP\t_\t3\tnsubj\t_\t_
2\t's\tbe\tAUX\tVBZ\t_\t3\tcop\t_\t_
2.1\tnot\tnot\tPART\tRB\t_\t_\t_\t_\t_
3\there\there\tADV\tRB\t_\t0\troot\t_\t_

"""


def test_conllu(tmp_path: Path) -> None:
    file = write(tmp_path / "a.conllu", CONLLU)
    assert sentences(read(file)) == ["He/PRON 's/AUX here/ADV"]
    assert sentences(read(file, text="lemma", label="XPOS")) == ["he/PRP be/VBZ here/RB"]
    assert sentences(read(file, text="3", label="8")) == ["he/nsubj be/cop here/root"]
    with pytest.raises(DataError) as caught:
        read(file, label="upso")
    assert caught.value.problem == f"{file}:2 has no column 'upso'."
    assert caught.value.remedy == "Did you mean upos?"
    with pytest.raises(DataError) as other:
        read(write(tmp_path / "b.conllu", "He\tPRON\n"))
    assert other.value.problem.endswith("b.conllu:1: CoNLL-U has 10 columns parted by tabs, and 2 came.")
    assert other.value.remedy == "Fix the file, or give it another name, such as words.conll."


def test_a_header_may_name_the_columns(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tsv", "token\tpos\tner\nEU\tNNP\tB-ORG\n")
    assert sentences(read(file)) == ["EU/B-ORG"]
    assert sentences(read(file, label="pos")) == ["EU/NNP"]
    other = write(tmp_path / "b.tsv", "chunk\tname\nEU\tB-ORG\n")
    assert sentences(read(other, label="name")) == ["EU/B-ORG"]
    with pytest.raises(DataError, match=r"a\.tsv:1 has no column 'nre'\.\nDid you mean ner\?"):
        read(file, label="nre")


def test_a_bad_line_costs_its_sentence(tmp_path: Path) -> None:
    lines = ["a\tX", "b", "c\tY\tZ", "", "d\tX", "", "\tX", "", "e\t ", "", "f\tX"]
    content = "\n".join(lines).encode() + b"\n\xff\tX\ng\tX\n\nh\tX\n"
    file = write(tmp_path / "a.tsv", content)
    found = read(file)
    expected = ["2 2 columns expected, 1 found", "d/X", "7 empty word", "9 empty tag", "12 not UTF-8", "h/X"]
    assert sentences(found) == expected
    assert found[0] == Bad(file, 2, "2 columns expected, 1 found", "b")


def test_words_alone(tmp_path: Path) -> None:
    one = write(tmp_path / "a.txt", "The\ndog\n\nbarks\n")
    found = read(one, labelled=False)
    assert [one.words for one in found if isinstance(one, Tagged)] == [("The", "dog"), ("barks",)]
    assert [one.tags for one in found if isinstance(one, Tagged)] == [(), ()]
    with pytest.raises(DataError) as caught:
        read(one)
    assert caught.value.problem == f"{one}:1: a word and its tag were expected, one column came."
    assert caught.value.remedy == "Write a line for each word: the word, a tab, its tag."


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    file = write(tmp_path / "a.conll", "The DET\n")
    for wanted in ("word", "3", "0"):
        with pytest.raises(DataError) as caught:
            read(file, text=wanted)
        assert caught.value.problem == f"{file}:1 has no column '{wanted}'."
        assert caught.value.remedy == "It has no header: count its columns, from 1 to 2."
    with pytest.raises(DataError) as other:
        read(file, label="1")
    assert other.value.problem == f"{file}:1: the words and the tags cannot both be column 1."
    assert other.value.remedy == "Name two columns with --text and --label."


def test_a_file_without_blank_lines_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.data.formats.conll.MAX_WORDS", 10)
    file = write(tmp_path / "a.tsv", "a\tX\n\n" + "b\tX\n" * 11)
    with pytest.raises(DataError) as caught:
        read(file)
    assert caught.value.problem == f"{file}:3: a sentence of more than 10 words begins here."
    assert caught.value.remedy == "Put a blank line behind each sentence."


def test_missing_files_are_errors_at_once(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        read_tagged([str(tmp_path / "a.conll")], DataConfig())
    with pytest.raises(DataError, match="No file was given"):
        read_tagged([], DataConfig())
