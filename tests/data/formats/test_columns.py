"""Which column or language a name means."""

import pytest

from regard.data.formats.columns import (
    LANGUAGES,
    asked_column,
    call_unnamed,
    can_choose,
    choose_sides,
    find,
    is_column_name,
    listed,
    match,
    name_text_and_label,
    plain,
    refuse_same,
)
from regard.errors import DataError


def chosen(names: list[str], source: str = "", target: str = "") -> tuple[str, str]:
    return choose_sides("a.tsv", names, source=source, target=target, noun="column")


def test_the_name_itself_comes_before_its_kin() -> None:
    assert match("en", ["en-US", "en", "EN"]) == ["en"]
    assert match("en", ["en-US", "EN", "en-GB"]) == ["EN"]
    assert match("en", ["en-US", "de", "en_GB"]) == ["en-US", "en_GB"]
    assert match("EN_us", ["en-US", "en-GB"]) == ["en-US"]


def test_a_beginning_is_no_region() -> None:
    assert match("e", ["en"]) == []
    assert match("de", ["den", "description"]) == []


def test_a_region_is_not_dropped() -> None:
    assert match("en-US", ["en"]) == []


def test_several_regions_are_an_error() -> None:
    assert find("a.tmx", "en", ["de", "en-US"]) == "en-US"
    assert find("a.tmx", "fr", ["de", "en-US"]) is None
    with pytest.raises(DataError) as caught:
        find("a.tmx", "en", ["en-US", "de", "en-GB"])
    assert caught.value.problem == "a.tmx: 'en' may be en-US or en-GB."
    assert caught.value.remedy == "Write the full name, for example en-US."


def test_two_names_are_taken_in_their_order() -> None:
    assert chosen(["en", "de"]) == ("en", "de")
    assert chosen(["en", "de"], source="de") == ("de", "en")
    assert chosen(["en", "de"], target="en") == ("de", "en")
    assert chosen(["id", "en", "de"], source="de", target="en") == ("de", "en")


def test_more_than_two_names_need_a_choice() -> None:
    with pytest.raises(DataError) as caught:
        chosen(["id", "en", "de"], source="en")
    assert caught.value.problem == "a.tsv holds 3 columns: id, en and de."
    assert caught.value.remedy == "Say which are meant with --from and --to."


def test_one_name_makes_no_pair() -> None:
    with pytest.raises(DataError) as caught:
        chosen(["en"])
    assert caught.value.problem == "a.tsv holds 1 column: en."
    assert caught.value.remedy == "A pair of them is needed."


def test_an_unknown_name_gets_the_near_one() -> None:
    with pytest.raises(DataError) as caught:
        chosen(["english", "german", "id"], source="englisch", target="german")
    assert caught.value.problem == "a.tsv has no column 'englisch'."
    assert caught.value.remedy == "Did you mean english?"
    with pytest.raises(DataError) as caught:
        chosen(["en", "de"], source="fr")
    assert caught.value.remedy == "Available: de, en."


def test_both_sides_must_differ() -> None:
    with pytest.raises(DataError) as caught:
        chosen(["en-US", "de"], source="en", target="en-us")
    assert caught.value.problem == "a.tsv: source and target are the same column, en-US."
    assert caught.value.remedy == "Give --from and --to different ones."


def test_columns_called_source_and_target_are_what_they_are_called() -> None:
    assert chosen(["Target", "source"]) == ("source", "Target")
    assert chosen(["src", "tgt"], source="en", target="de") == ("src", "tgt")
    assert chosen(["src", "trg"], target="de") == ("src", "trg")
    assert chosen(["source", "target"], source="target") == ("target", "source")
    for names, source in ((["source", "target"], "3"), (["source", "target", "id"], "en"), (["source", "de"], "en")):
        with pytest.raises(DataError, match=f"no column '{source}'"):
            chosen(names, source=source, target="de")


@pytest.mark.parametrize(
    ("names", "source", "target", "possible"),
    [
        ([], "en", "de", False),
        (["en"], "en", "de", False),
        (["fr", "id"], "en", "de", False),
        (["id", "en-US", "de"], "en", "de", True),
        (["src", "tgt"], "en", "de", True),
        (["en"], "en", "", False),
        (["id", "en", "de"], "", "", True),
    ],
)
def test_whether_there_is_a_choice(names: list[str], source: str, target: str, possible: bool) -> None:
    assert can_choose(names, source=source, target=target) is possible


def test_column_names_that_need_no_asking() -> None:
    assert len(LANGUAGES) == 183
    assert all(is_column_name(name) for name in ("en", "DE", "en-US", "en_gb", "zh-Hant-TW", "es-419", "Source", "tgt"))
    assert not any(is_column_name(name) for name in ("", "En", "xx", "eng", "en-suite", "en US", "Hello", "en-", "1"))


def test_a_language_without_a_name_gets_the_one_that_is_free() -> None:
    assert call_unnamed("target", given=("en", "de"), known="en") == "de"
    assert call_unnamed("target", given=("de", "en"), known="en") == "de"
    assert call_unnamed("target", given=("de", "fr"), known="en") == "fr"
    assert call_unnamed("source", given=("de", "fr"), known="") == "de"
    assert call_unnamed("target", given=("en-US", ""), known="en") == "target"
    assert call_unnamed("target", given=("", ""), known="en") == "target"
    assert call_unnamed("target", given=(), known="en") == "target"


def test_spellings_of_a_column() -> None:
    assert {plain(name) for name in ("Sentence 1", "sentence_1", "sentence-1", " SENTENCE1")} == {"sentence1"}


def test_a_text_and_a_label_are_named() -> None:
    assert name_text_and_label(["id", "Premise", "genre", "gold_label"])
    assert not name_text_and_label(["text", "phrase"])
    assert not name_text_and_label(["label", "phrase"])


def asked(wanted: str, *names: str, may_lack: bool = False) -> str:
    return asked_column("a.csv", wanted, {name: f"cell of {name}" for name in names}, may_lack=may_lack)


def test_a_column_is_asked_for_by_its_name_or_its_number() -> None:
    names = ("id", "Sentence 1", "gold_label", "3")
    assert [asked(one, *names) for one in ("", "id", "GOLD-label", "sentence_1", "2", "3", "4")] == [
        *("", "id", "gold_label", "Sentence 1", "Sentence 1", "3", "3")
    ]
    assert asked("none", *names, may_lack=True) == ""


def test_an_unknown_column_gets_the_near_name() -> None:
    with pytest.raises(DataError) as caught:
        asked("txet", "text", "label")
    assert (caught.value.problem, caught.value.remedy) == ("a.csv has no column 'txet'.", "Did you mean text?")
    with pytest.raises(DataError, match=r"Available: label, text\."):
        asked("3", "text", "label")


def test_without_a_header_the_near_name_may_stand_in_the_first_row() -> None:
    with pytest.raises(DataError, match=r"Did you mean phrase\?"):
        asked_column("a.tsv", "phrases", {"1": "polarity", "2": "phrase"})
    for wanted in ("sentence", "3"):
        with pytest.raises(DataError, match=r"It has no header: count its columns, from 1 to 2\."):
            asked(wanted, "1", "2")


def test_one_column_is_not_two() -> None:
    refuse_same("a.csv", {"--text": "text", "--label": "", "--split-column": ""})
    with pytest.raises(DataError) as caught:
        refuse_same("a.csv", {"--text": "text", "--label": "text"})
    assert caught.value.problem == "a.csv: --text and --label name the same column, 'text'."
    assert caught.value.remedy == "Name different ones."


def test_a_list_of_very_many_names_is_short() -> None:
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed([str(number) for number in range(60_000)]) == f"{', '.join(map(str, range(20)))} and 59,980 more"
