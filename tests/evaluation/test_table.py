"""Tables of results."""

from regard.evaluation.table import Table

TABLE = Table(headings=("class", "F1"), rows=(("dog", "7.25"), ("猫", "100.00"), ("<b>", "")))


def test_words_stand_to_the_left_and_numbers_to_the_right():
    assert TABLE.lines() == ["class      F1", "dog      7.25", "猫     100.00", "<b>"]


def test_combining_characters_take_no_room():
    assert Table(headings=("a",), rows=(("ɐ̃ x",), ("abc",)), left=()).lines() == ["  a", "ɐ̃ x", "abc"]


def test_a_record_per_row():
    assert TABLE.records()[0] == {"class": "dog", "F1": "7.25"}


def test_html_is_escaped():
    html = TABLE._repr_html_()
    assert '<td style="text-align: left">&lt;b&gt;</td>' in html
    assert '<th style="text-align: right">F1</th>' in html
    assert html.count("<tr>") == 4
