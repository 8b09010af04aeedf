"""Bad rows: counted by reason, with their first examples; the policy about them."""

import math
from pathlib import Path

import pytest

from regard.data.formats import Bad, Row
from regard.data.pipeline.bad_rows import N_EXAMPLES, BadRows
from regard.errors import DataError

FILES = ["a.en"]


def good(number: int) -> list[Row | Bad]:
    return [Row("a.en", line, {}) for line in range(1, number + 1)]


def bad(number: int, reason: str = "empty source") -> list[Row | Bad]:
    return [Bad("a.en", line, reason, f"text {line}") for line in range(1, number + 1)]


def counted(*rows: Row | Bad, noun: str = "pair") -> BadRows:
    found = BadRows(noun)
    assert list(found.good(rows)) == [row for row in rows if isinstance(row, Row)]
    return found


def fault(found: BadRows, on_bad: str = "stop") -> DataError:
    with pytest.raises(DataError) as caught:
        found.enforce(on_bad, FILES)
    return caught.value


def test_good_rows_pass_and_bad_ones_are_counted() -> None:
    found = counted(*bad(2, "not UTF-8"), *good(1000), *bad(7))
    assert (found.n_read, found.n_good, found.n_bad) == (1009, 1000, 9)
    assert found.reasons.most_common() == [("empty source", 7), ("not UTF-8", 2)]
    assert found.examples == {"empty source": bad(N_EXAMPLES), "not UTF-8": bad(2, "not UTF-8")}


def test_one_percent_may_be_bad_and_no_more() -> None:
    counted(*good(990), *bad(10)).enforce("stop", FILES)
    error = fault(counted(*good(989), *bad(9), *bad(2, "no target")))
    assert error.problem == (
        "11 of 1,000 pairs are bad (1.1%, at most 1% may be): 9 empty source, 2 no target. "
        "First: a.en:1 (empty source) 'text 1'; a.en:1 (no target) 'text 1'."
    )
    assert error.remedy == "Fix the files, or leave the bad pairs out with --on-bad keep-going."


def test_keep_going_leaves_out_however_many() -> None:
    counted(*good(1), *bad(10)).enforce("keep-going", FILES)


def test_nothing_good_is_an_error_even_when_going_on() -> None:
    error = fault(counted(*bad(2)), "keep-going")
    assert error.problem.startswith("2 of 2 pairs are bad (100.0%, at most 100% may be): 2 empty source.")
    assert error.remedy == "Fix the files."


def test_nothing_at_all_is_an_error() -> None:
    error = fault(counted(noun="caption"))
    assert (error.problem, error.remedy) == (
        "a.en: no captions were found.",
        "Check that these are the right files.",
    )


def test_a_remedy_that_fits_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.en").write_bytes(b"M\xfcnchen\nKoln\n" * 6)
    converted = "Convert them to UTF-8 (iconv -f latin1 -t utf-8 OLD > NEW)"
    assert fault(counted(*good(9), *bad(1), *bad(1, "not UTF-8"), noun="line")).remedy == (
        f"{converted}, or leave the bad lines out with --on-bad keep-going."
    )
    Path("a.en").write_bytes(b"M\xfcnchen\nK\xc3\xb6ln\n" * 6)
    assert fault(counted(*good(99), *bad(6, "not UTF-8"), noun="line")).remedy == (
        "a.en is in UTF-8 but for some lines, such as 1, 2, 3, 4 and 5: write these again, or leave the bad lines out with "
        "--on-bad keep-going."
    )
    assert fault(counted(*bad(1, "longer than 9 tokens"))).remedy == "Raise data.max_length, shorten them."


def test_of_many_reasons_the_most_frequent_are_named() -> None:
    rows = [one for count in range(1, 8) for one in bad(count, f"reason {count}")]
    problem = fault(counted(*rows)).problem
    assert "7 reason 7, 6 reason 6, 5 reason 5, 4 reason 4, 3 reason 3, 2 other reasons. First: " in problem
    assert problem.endswith("a.en:1 (reason 7) 'text 1'; a.en:1 (reason 6) 'text 1'; a.en:1 (reason 5) 'text 1'.")
    assert ": 2 (3 columns expected, 1 found). " in fault(counted(*bad(2, "3 columns expected, 1 found"))).problem


def test_what_was_left_out_as_sentences() -> None:
    found = counted(*good(1), *bad(3), Bad("photos/", "/cat/1.png", "no image"), noun="image")
    assert found.sentences() == [
        "3 bad images, empty source: a.en:1 'text 1'; a.en:2 'text 2'",
        "1 bad image, no image: photos/cat/1.png",
    ]
    assert found.sentences("file")[1] == "1 file, no image: photos/cat/1.png"


def test_facts_name_the_files_where_they_lie_now() -> None:
    found = counted(*good(5), *bad(2))
    again = BadRows.from_facts(found.to_facts(["b.en", "a.en"]), ["x.en", "y.en"])
    assert (again.noun, again.n_good, again.reasons) == ("pair", 5, {"empty source": 2})
    assert [one.place for one in again.examples["empty source"]] == ["y.en:1", "y.en:2"]


def test_every_example_may_be_kept_and_several_rows_be_bad_for_one() -> None:
    found = BadRows("image", n_examples=math.inf)
    for one in bad(9):
        assert isinstance(one, Bad)
        found.add(one, count=2)
    assert (found.n_bad, len(found.examples["empty source"])) == (18, 9)
