"""Pairs from aligned files, tables and memories."""

import gzip
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.formats import Bad
from regard.data.pairs.rows import Pair, header_columns, read_pairs
from regard.errors import DataError


def write(file: Path, content: str) -> str:
    data = content.encode()
    file.write_bytes(gzip.compress(data) if file.suffix == ".gz" else data)
    return str(file)


def tmx(*units: dict[str, str], srclang: str = "*all*") -> str:
    segments = (
        "<tu>" + "".join(f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in unit.items()) + "</tu>\n"
        for unit in units
    )
    return f"<tmx version='1.4'><header srclang='{srclang}'/><body>\n{''.join(segments)}</body></tmx>"


def sides(files: list[str], source: str = "", target: str = "") -> list[tuple[str, str]]:
    pairs = list(read_pairs(files, source=source, target=target))
    assert all(isinstance(pair, Pair) for pair in pairs)
    return [(pair.source, pair.target) for pair in pairs if isinstance(pair, Pair)]


def error_of(files: list[str], source: str = "", target: str = "") -> DataError:
    with pytest.raises(DataError) as caught:
        list(read_pairs(files, source=source, target=target))
    return caught.value


# --- aligned text files


def test_two_text_files_are_aligned_line_by_line(tmp_path: Path) -> None:
    english, german = write(tmp_path / "a.en", "Yes\r\nNo\n"), write(tmp_path / "a.de.gz", "\ufeffJa\nNein")
    assert list(read_pairs([english, german])) == [Pair("Yes", "Ja", english, 1), Pair("No", "Nein", english, 2)]


def test_files_are_read_one_after_another(tmp_path: Path) -> None:
    files = [
        write(tmp_path / "a.en", "Yes\n"),
        write(tmp_path / "a.de", "Ja\n"),
        write(tmp_path / "b.tsv", "No\tNein\n"),
        write(tmp_path / "c.en", "Hello\n"),
        write(tmp_path / "c.de", "Hallo\n"),
    ]
    assert sides(files) == [("Yes", "Ja"), ("No", "Nein"), ("Hello", "Hallo")]


def test_a_bad_line_spoils_its_pair_only(tmp_path: Path) -> None:
    english, german = tmp_path / "a.en", tmp_path / "a.de"
    english.write_bytes(b"one\n\xff\nthree\n\n  \n six \n")
    german.write_bytes(b"eins\nzwei\ndr\0ei\nvier\n\n\n")
    assert list(read_pairs([str(english), str(german)])) == [
        Pair("one", "eins", str(english), 1),
        Bad(str(english), 2, "not UTF-8", "\\xff"),
        Bad(str(german), 3, "NUL byte", "dr\\x00ei"),
        Bad(str(english), 4, "empty source", "vier"),
        Bad(str(english), 5, "empty pair", ""),
        Bad(str(english), 6, "empty target", "six"),
    ]


@pytest.mark.parametrize(("english_lines", "german_lines"), [(1200, 3), (3, 1200)])
def test_different_line_counts_name_both(tmp_path: Path, english_lines: int, german_lines: int) -> None:
    english, german = write(tmp_path / "a.en", "x\n" * english_lines), write(tmp_path / "a.de", "x\n" * german_lines)
    error = error_of([english, german])
    assert error.problem == (
        f"{english} has {english_lines:,} lines, but {german} has {german_lines:,}: they are not aligned."
    )
    assert error.remedy == (
        "Make both files again from their origin: line n of one is the translation of line n of the other."
    )


def test_a_text_file_without_partner(tmp_path: Path) -> None:
    english, table = write(tmp_path / "a.en", "x\n"), write(tmp_path / "a.tsv", "x\ty\n")
    problem = f"{english}: a text file needs its translation as the next file, but "
    error = error_of([english])
    assert error.problem == problem + "nothing follows it."
    assert error.remedy == (
        "Give both sides, or one file with both: .csv, .tsv, .jsonl, .ndjson, .parquet, .tmx, .xliff, .xlf, .po."
    )
    assert error_of([english, table]).problem == problem + f"{table} follows it."


def test_no_files() -> None:
    error = error_of([])
    assert error.problem == "No file was given."
    assert error.remedy == "Name two aligned text files, or a file that holds both languages."


def test_a_missing_file_is_an_error_before_the_first_pair(tmp_path: Path) -> None:
    english = write(tmp_path / "a.en", "x\n")
    with pytest.raises(DataError, match="there is no such file"):
        read_pairs([english, str(tmp_path / "a.de")])


odd_lines = st.lists(
    st.tuples(
        *[st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n\t")).map(lambda text: f"x{text}x")]
        * 2
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(odd_lines)
def test_odd_characters_survive(tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[str, str]]) -> None:
    folder = tmp_path_factory.mktemp("odd")
    aligned = [
        write(folder / "a.en", "".join(f"{source}\n" for source, _ in lines)),
        write(folder / "a.de", "".join(f"{target}\n" for _, target in lines)),
    ]
    table = write(folder / "a.tsv", "".join(f"{source}\t{target}\n" for source, target in lines))
    records = write(
        folder / "a.jsonl", "".join(json.dumps({"a": a, "b": b}, ensure_ascii=False) + "\n" for a, b in lines)
    )
    assert sides(aligned) == sides([table]) == sides([records]) == lines


def test_separators_that_python_splits_at_survive(tmp_path: Path) -> None:
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\ufeffh\ri"
    files = [write(tmp_path / "a.en", text + "\n"), write(tmp_path / "a.de", text + "\n")]
    assert sides(files) == [(text, text)]
    assert sides([write(tmp_path / "a.tsv", f"{text}\t{text}\n")]) == [(text, text)]


# --- tables


@pytest.mark.parametrize(("source", "target"), [("", ""), ("en", "de"), ("en", "")])
def test_two_columns_without_a_header_are_taken_in_their_order(tmp_path: Path, source: str, target: str) -> None:
    assert sides([write(tmp_path / "a.tsv.gz", "Yes\tJa\n")], source, target) == [("Yes", "Ja")]


def test_columns_by_number(tmp_path: Path) -> None:
    assert sides([write(tmp_path / "a.tsv", "Yes\tJa\n")], "2", "1") == [("Ja", "Yes")]
    assert sides([write(tmp_path / "b.tsv", "7\tYes\tJa\n")], "3", "2") == [("Ja", "Yes")]
    error = error_of([str(tmp_path / "a.tsv")], "1", "3")
    assert (error.problem, error.remedy) == (f"{tmp_path}/a.tsv has no column '3'.", "Available: 1, 2.")


def test_columns_by_name(tmp_path: Path) -> None:
    table = write(tmp_path / "a.tsv", "id\tEN\tde_AT\n7\tYes\tJa\n")
    assert sides([table], "en", "de") == [("Yes", "Ja")]
    assert sides([write(tmp_path / "a.csv", "de,en\nJa,Yes\n")], "en") == [("Yes", "Ja")]
    assert sides([write(tmp_path / "a.jsonl", '{"de": "Ja", "en": "Yes"}\n')], "en", "de") == [("Yes", "Ja")]


def test_too_many_columns_are_listed(tmp_path: Path) -> None:
    error = error_of([write(tmp_path / "a.csv", "id,en,de\n7,Yes,Ja\n")])
    assert error.problem == f"{tmp_path}/a.csv holds 3 columns: id, en and de."
    assert error.remedy == "Say which are meant with --from and --to."
    table = write(tmp_path / "a.tsv", "id\tenglish\tgerman\n7\tYes\tJa\n")
    assert error_of([table]).problem == f'{table} holds 3 columns: 1 ("id"), 2 ("english") and 3 ("german").'


def test_an_unknown_column_gets_the_near_name(tmp_path: Path) -> None:
    table = write(tmp_path / "a.tsv", "id\tenglish\tgerman\n7\tYes\tJa\n")
    error = error_of([table], "englsh", "germn")
    assert (error.problem, error.remedy) == (f"{table} has no column 'englsh'.", "Did you mean english?")


def test_the_first_row_says_which_columns_there_are(tmp_path: Path) -> None:
    file = write(
        tmp_path / "a.jsonl", '{"en": "Yes", "de": "Ja"}\n{"de": "Nein"}\n{"en": "No"}\n{"en": "a\\u0000", "de": "b"}\n'
    )
    assert list(read_pairs([file])) == [
        Pair("Yes", "Ja", file, 1),
        Bad(file, 2, "no source", "Nein"),
        Bad(file, 3, "no target", "No"),
        Bad(file, 4, "NUL byte", "a\\x00"),
    ]


def test_a_header_of_a_tsv_is_no_pair(tmp_path: Path) -> None:
    table = write(tmp_path / "a.tsv", "de\ten\nJa\tYes\n")
    assert sides([table]) == [("Ja", "Yes")]
    assert sides([table], "en", "de") == [("Yes", "Ja")]
    assert sides([table], "2", "1") == [("Yes", "Ja")]
    assert sides([write(tmp_path / "b.tsv", "tgt\tsrc\nJa\tYes\n")], "en", "de") == [("Yes", "Ja")]


def test_a_first_line_that_begins_like_a_language_is_a_pair(tmp_path: Path) -> None:
    table = write(tmp_path / "a.tsv", "En-suite room\tZimmer mit Bad\n")
    assert sides([table], "en", "de") == [("En-suite room", "Zimmer mit Bad")]


def test_first_records_without_a_pair_are_bad(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{}\n{"id": 7}\n{"de": "Nein"}\n{"en": "Yes", "de": "Ja"}\n{"en": "No"}\n')
    assert list(read_pairs([file])) == [
        Bad(file, 1, "fewer than two columns", ""),
        Bad(file, 2, "fewer than two columns", ""),
        Bad(file, 3, "fewer than two columns", "Nein"),
        Pair("Yes", "Ja", file, 4),
        Bad(file, 5, "no target", "No"),
    ]
    assert list(read_pairs([file], source="de", target="EN")) == [
        Bad(file, 1, "no source", ""),
        Bad(file, 2, "no source", ""),
        Bad(file, 3, "no target", "Nein"),
        Pair("Ja", "Yes", file, 4),
        Bad(file, 5, "no source", "No"),
    ]


def test_names_that_stand_in_records_of_their_own(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"en": "Yes"}\n{"de": "Ja"}\n{"de": "Nein", "id": "7", "en": "No"}\n')
    assert list(read_pairs([file], source="en", target="de")) == [
        Bad(file, 1, "no target", "Yes"),
        Bad(file, 2, "no source", "Ja"),
        Pair("No", "Nein", file, 3),
    ]


def test_records_of_source_and_target(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"tgt": "Ja", "src": "Yes"}\n')
    assert sides([file]) == sides([file], "en", "de") == sides([file], "src", "tgt") == [("Yes", "Ja")]


def test_names_that_no_record_has(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{}\n{"en": "Yes", "fr": "Oui"}\n{"id": "7", "en": "No"}\n')
    error = error_of([file], "en", "de")
    assert (error.problem, error.remedy) == (f"{file} has no column 'de'.", "Available: en, fr, id.")
    error = error_of([write(tmp_path / "b.jsonl", '{"text": "a"}\n{"text": "b"}\n')])
    assert (error.problem, error.remedy) == (f"{tmp_path}/b.jsonl holds 1 column: text.", "A pair of them is needed.")
    error = error_of([write(tmp_path / "c.jsonl", '{"id": "7"}\n{"id": "7", "en": "a", "de": "b"}\n')])
    assert error.problem == f"{tmp_path}/c.jsonl holds 3 columns: id, en and de."


def test_records_without_any_column_are_bad_to_the_end(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{}\n{"id": 7}\n')
    assert [pair.reason for pair in read_pairs([file], source="en", target="de") if isinstance(pair, Bad)] == [
        "no source",
        "no source",
    ]


@pytest.mark.parametrize(("source", "target"), [("", ""), ("en", "de")])
def test_nulls_of_a_parquet_are_empty_cells(tmp_path: Path, source: str, target: str) -> None:
    file = str(tmp_path / "a.parquet")
    columns = {"en": [None, None, "Yes"], "de": [None, "Ja", "Ja"]}
    pyarrow.parquet.write_table(pyarrow.table(columns), file)
    assert list(read_pairs([file], source=source, target=target)) == [
        Bad(file, 1, "empty pair", ""),
        Bad(file, 2, "empty source", "Ja"),
        Pair("Yes", "Ja", file, 3),
    ]


def test_a_number_in_the_first_row_is_a_bad_row_and_no_unknown_column(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"en": 7, "de": "Ja"}\n{"en": "Yes", "de": "Ja"}\n')
    bad, good = read_pairs([file], source="en", target="de")
    assert (bad, good) == (Bad(file, 1, "not a string", '{"en": 7, "de": "Ja"}'), Pair("Yes", "Ja", file, 2))


# --- memories


def test_two_languages_are_taken_as_the_first_unit_has_them(tmp_path: Path) -> None:
    memory = tmx({"en": "Yes", "de": "Ja"}, {"de": "Nein", "en": "No"}, {"en": "alone"})
    file = write(tmp_path / "a.tmx", memory)
    assert list(read_pairs([file])) == [Pair("Yes", "Ja", file, 2), Pair("No", "Nein", file, 3)]
    assert sides([file], target="en") == [("Ja", "Yes"), ("Nein", "No")]


def test_languages_by_code_with_their_regions(tmp_path: Path) -> None:
    memory = tmx(
        {"en-US": "Yes", "fr": "Oui"}, {"fr": "Non", "en-GB": "No", "DE": "Nein"}, {"en-US": "Hi", "de-AT": "Servus"}
    )
    assert sides([write(tmp_path / "a.tmx", memory)], "en", "de") == [("No", "Nein"), ("Hi", "Servus")]


def test_the_source_language_of_the_file_is_the_source(tmp_path: Path) -> None:
    memory = tmx({"de": "allein"}, {"de": "Ja", "en-US": "Yes"}, {"en-US": "No", "de": "Nein"}, srclang="en")
    file = write(tmp_path / "a.tmx", memory)
    assert sides([file]) == [("Yes", "Ja"), ("No", "Nein")]
    assert sides([file], "de", "en") == [("Ja", "Yes"), ("Nein", "No")]


def test_a_language_spelt_in_two_ways_is_one(tmp_path: Path) -> None:
    memory = tmx({"en-US": "Yes", "de": "Ja"}, {"EN-US": "No", "DE": "Nein"})
    assert sides([write(tmp_path / "a.tmx", memory)]) == [("Yes", "Ja"), ("No", "Nein")]


@pytest.mark.parametrize(("source", "target"), [("en", "de"), ("en", ""), ("de", "en"), ("", "en")])
def test_a_unit_with_several_regions_is_bad_alone(tmp_path: Path, source: str, target: str) -> None:
    memory = tmx(
        {"en-US": "Hi", "en-GB": "Hello"}, {"en-US": "Y", "en-GB": "Yes", "de": "Ja"}, {"en-GB": "No", "de": "Nein"}
    )
    file = write(tmp_path / "a.tmx", memory)
    *_, bad, good = read_pairs([file], source=source, target=target)
    assert bad == Bad(file, 3, "several en", "Y")
    assert good == (Pair("No", "Nein", file, 4) if source == "en" else Pair("Nein", "No", file, 4))


def test_units_that_all_have_several_regions(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tmx", tmx({"en-US": "Y", "en-GB": "Yes", "de": "Ja"}))
    error = error_of([file], "en", "de")
    assert error.problem == f"{file}: 'en' may be en-US or en-GB."
    assert error.remedy == "Write the full name, for example en-US."


def test_a_language_that_a_catalogue_does_not_name(tmp_path: Path) -> None:
    file = write(tmp_path / "a.po", 'msgid "Yes"\nmsgstr "Ja"\n')
    assert sides([file]) == sides([file], "en", "de") == sides([file], target="de") == [("Yes", "Ja")]
    assert sides([file], "de", "en") == sides([file], "de") == [("Ja", "Yes")]
    error = error_of([file], "fr", "de")
    assert (error.problem, error.remedy) == (f"{file} has no language 'fr'.", "Available: de, en.")


def test_too_many_languages_are_listed(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tmx", tmx({"en": "Yes", "de": "Ja"}, {"en": "No", "fr": "Non"}))
    for source in ("", "en"):
        error = error_of([file], source)
        assert error.problem == f"{file} holds 3 languages: en, de and fr."
        assert error.remedy == "Say which are meant with --from and --to."


def test_an_unknown_language(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tmx", tmx({"en": "Yes", "deu": "Ja"}))
    error = error_of([file], "en", "de")
    assert (error.problem, error.remedy) == (f"{file} has no language 'de'.", "Did you mean deu?")


def test_one_language_is_no_pair(tmp_path: Path) -> None:
    error = error_of([write(tmp_path / "a.tmx", tmx({"en-US": "Yes", "de": "Ja"}))], "en", "EN")
    assert error.problem == f"{tmp_path}/a.tmx: source and target are the same language, en-US."


def test_languages_that_never_meet(tmp_path: Path) -> None:
    error = error_of(
        [write(tmp_path / "a.tmx", tmx({"en": "Yes", "fr": "Oui"}, {"de": "Ja", "fr": "Oui"}))], "en", "de"
    )
    assert error.problem == f"{tmp_path}/a.tmx: no unit holds both en and de."
    assert error.remedy == "Choose two others with --from and --to."


def test_a_memory_without_units(tmp_path: Path) -> None:
    error = error_of([write(tmp_path / "a.po", 'msgid "Yes"\nmsgstr ""\n')])
    assert error.problem == f"{tmp_path}/a.po: no translated unit is in it."
    assert error.remedy == "Check that it is the translated file, not a template."


def test_what_is_taken_for_a_header_is_said(tmp_path: Path) -> None:
    words, plain, lines = tmp_path / "words.tsv", tmp_path / "plain.tsv", tmp_path / "text.en"
    words.write_text("it\tes\nhouse\tcasa\n")
    plain.write_text("a house\tein Haus\n")
    lines.write_text("a house\n")
    files = [str(file) for file in (words, plain, lines, lines)]
    assert header_columns(files) == [("columns", f"it and es, by the header of {words}")]
    assert header_columns([str(words)], source="es", target="it") == [
        ("columns", f"es and it, by the header of {words}")
    ]
