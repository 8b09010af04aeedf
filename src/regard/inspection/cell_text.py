"""An attention cell as text: term by term for a terminal of 100 columns, and as a Python program that recomputes it.

Tokens are anybody's text: in a terminal control characters become visible escapes, and in the program they stand only inside
string literals.
"""

from typing import TYPE_CHECKING

import numpy as np

from regard.inspection.attention_replay import Numbers

if TYPE_CHECKING:
    from regard.inspection.cell import Cell

_WIDTH, _NUMBER, _NAME = 98, 9, 18  # columns of a line, of a number with its space, of what stands before them


def cell_lines(cell: "Cell") -> list[str]:
    """The terms of a cell in the order in which they are computed."""
    where = f"{cell.attention}, head {cell.head}"
    lines = [
        f"{where}: query {cell.query} attends to key {cell.key} with weight {_short(cell.weight)}",
        _line(f"query {cell.query}", _query_text(cell)),
        _line(f"key {cell.key}", shown_token(cell.attends_to)),
        "",
        f"score: {cell.formula.text} ({cell.formula.kind})",
        _vector("query", cell.query_vector),
        _vector("key", cell.key_vector),
        *(_vector(name, np.asarray(own)) for name, own in cell.formula.constants().items()),
        _vector("summands", cell.summands),
        _line("sum", _short(cell.sum)),
        _line("· scale", _short(cell.scale)),
    ]
    if cell.bias is not None:
        lines.append(_line("+ bias", f"{_short(cell.bias)}   by the distance of the two positions"))
    lines += [
        _line("= score", _beside(cell.score, cell.recorded_score)),
        _line("mask", "hides this key from this query: its weight is 0" if cell.hidden else "hides nothing here"),
        "",
        f"weight: softmax over {_count(int(cell.visible.sum()), 'visible key')} of {len(cell.visible)}; "
        "the largest score is taken off first, against overflow",
        _line("largest score", _short(cell.largest)),
        _vector("exp(score - …)", cell.exponentials),
        _line("denominator", f"{_short(cell.denominator)}   their sum"),
        _line("weight", _softmax_text(cell)),
        "",
        "head: Σ weight · value over all keys",
        _vector("value", cell.values[cell.key]),
        _vector("weight · value", cell.weighted_value),
        _vector("Σ over keys", cell.head_output),
        _vector("recorded", cell.recorded_head_output),
    ]
    if cell.added is not None and cell.output_slice is not None:
        n_outputs, width = cell.output_slice.shape
        begin = cell.head * width
        lines += [
            "",
            f"output projection: its columns {begin} to {begin + width - 1}, of {n_outputs} numbers each, are this head's",
            _vector("the head adds", cell.added),
        ]
    if cell.sublayer_output is not None:
        lines.append(_vector("sublayer gives", cell.sublayer_output))
    if cell.residual is not None:
        lines.append(_vector("residual stream", cell.residual))
    compared = f"largest difference from what was recorded: {cell.error:.1e}"
    return [*lines, "", compared, *(f"note: {note}" for note in cell.notes)]


def _query_text(cell: "Cell") -> str:
    reads = shown_token(cell.reads)
    return f"reads {reads}, writes {shown_token(cell.writes)}" if cell.writes else reads


def _softmax_text(cell: "Cell") -> str:
    if cell.hidden:
        return _beside(cell.weight, cell.recorded_weight)
    fraction = f"{_short(float(cell.exponentials[cell.key]))} / {_short(cell.denominator)}"
    return f"{fraction} = {_beside(cell.weight, cell.recorded_weight)}"


def _beside(computed: float, recorded: float) -> str:
    return f"{_short(computed)}   recorded {_short(recorded)}"


def _line(name: str, text: str) -> str:
    return f"  {name:<{_NAME - 2}}{text}"


def _vector(name: str, numbers: Numbers) -> str:
    """As many numbers as the line has room for, and how many there are."""
    room = (_WIDTH - _NAME) // _NUMBER
    if len(numbers) <= room:
        return _line(name, "".join(f"{_short(float(one)):<{_NUMBER}}" for one in numbers).rstrip())
    shown = "".join(f"{_short(float(one)):<{_NUMBER}}" for one in numbers[: room - 1])
    return _line(name, f"{shown}… ({len(numbers)})")


def _short(number: float) -> str:
    """A number of at most eight columns."""
    if number == 0:
        return "0"
    text = f"{number:.4f}" if 1e-3 <= abs(number) < 100 else f"{number:.2e}"
    return text if len(text) <= _NUMBER - 1 else f"{number:.1e}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + "s" * (number != 1)


def shown_token(token: str, *, longest: int = 24) -> str:
    """A token as a word that a terminal only shows: without white space around it, control characters escaped."""
    token = token.strip() or token
    beginning = token[:longest] + "…" * (len(token) > longest)
    text = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in beginning)
    return text if text.strip() else f"'{text}'"


def cell_program(cell: "Cell") -> str:
    """Python that computes the weight and the head's output from literal numbers, and asserts what was recorded."""
    constants = [f"{name} = numpy.array({_literal(np.asarray(own))})" for name, own in cell.formula.constants().items()]
    where = f"{cell.attention}, head {cell.head}, query {cell.query}, key {cell.key}"
    lines = [
        f"# One attention weight: {where}",
        "import numpy",
        "",
        f"query = numpy.array({_literal(cell.query_vector)})  # {cell.reads!a}",
        "keys = numpy.array([",
        *(f"    {_literal(row)},  # {label!a}" for row, label in zip(cell.keys, cell.key_labels, strict=True)),
        "])",
        f"values = numpy.array([{', '.join(map(_literal, cell.values))}])",
        f"visible = numpy.array({cell.visible.tolist()})  # what no mask hides",
        *constants,
        f"scale = {cell.scale!r}",
        f"bias = {'0.0' if cell.biases is None else f'numpy.array({_literal(cell.biases)})'}",
        "",
        f"scores = numpy.array([({cell.formula.code}).sum() for key in keys]) * scale + bias",
        "largest = max(scores[visible], default=0.0)",
        "exponentials = numpy.exp(numpy.where(visible, scores, -numpy.inf) - largest)",
        "weights = exponentials / (exponentials.sum() or 1.0)",
        "head = weights @ values",
        "",
        f'print("weight", weights[{cell.key}])',
        'print("head", head)',
    ]
    if "weight" in cell.compared:
        lines.append(f"assert abs(weights[{cell.key}] - {_exact(cell.recorded_weight)}) <= {cell.tolerance!r}")
    if "head output" in cell.compared:
        recorded = cell.recorded_head_output
        bound = f"{cell.tolerance!r} * max(1.0, numpy.abs(recorded).max())"
        lines.append(f"recorded = numpy.array({_literal(recorded)})")
        lines.append(f"assert numpy.abs(head - recorded).max() <= {bound}")
    return "\n".join([*lines, ""])


def _literal(numbers: Numbers) -> str:
    return "[" + ", ".join(_exact(float(one)) for one in numbers) + "]"


def _exact(number: float) -> str:
    """A literal of the same float32."""
    if not np.isfinite(number):
        return "numpy.nan" if np.isnan(number) else "numpy.inf" if number > 0 else "-numpy.inf"
    return repr(float(str(np.float32(number))))
