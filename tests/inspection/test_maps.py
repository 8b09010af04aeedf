"""Maps of attention: what their rows stand for."""

from dataclasses import replace

from tests.inspection.families import traced

from regard.inspection import maps


def test_a_row_that_writes_a_blank_shows_it() -> None:
    trace = traced("gpt")
    trace.reading = replace(trace.reading, outputs=lambda id: "\n" if id == trace.reading.writes[0] else " x ")
    assert maps.row_labels(trace, "decoder.0.self_attention")[0].endswith(" → ⏎")
