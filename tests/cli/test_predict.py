"""`regard predict`: from arguments, standard input and files; as lines, as columns, as JSON."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.cli import lines as module

GOOD_AND_BAD = b"a good dog\na dull song\n"


# Texts


def test_a_class_and_its_probability(command: Any, classify_run: Path) -> None:
    outcome = command("predict", classify_run, "a good dog", "a dull song")
    assert outcome.code == 0
    assert [line.split("\t")[0] for line in outcome.lines] == ["pos", "neg"]
    assert all(0.5 < float(line.split("\t")[1]) <= 1 for line in outcome.lines)
    assert outcome.err == ""
    assert command("predict", classify_run, stdin=GOOD_AND_BAD).out == outcome.out


def test_the_likeliest_classes(command: Any, classify_run: Path) -> None:
    [line] = command("predict", classify_run, "a good dog", "--top", 2).lines
    first, share, second, other = line.split("\t")
    assert (first, second) == ("pos", "neg")
    assert float(share) + float(other) == pytest.approx(1, abs=1e-3)


def test_lines_come_out_as_they_go_in(command: Any, classify_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = command("predict", classify_run, stdin=GOOD_AND_BAD * 3)
    monkeypatch.setattr(module, "CHUNK", 2)
    assert command("predict", classify_run, stdin=GOOD_AND_BAD * 3).out == whole.out
    with_empty = command("predict", classify_run, stdin=b"a good dog\n\n  \na dull song\n")
    assert [line.split("\t")[0] for line in with_empty.lines] == ["pos", "", "", "neg"]
    found = [json.loads(line) for line in command("predict", classify_run, "--json", stdin=b"\n" + GOOD_AND_BAD).lines]
    assert found[0] == {"line": 1, "text": ""}
    assert [one["line"] for one in found] == [1, 2, 3]


def test_classes_as_json(command: Any, classify_run: Path) -> None:
    found = json.loads(command("predict", classify_run, "a good dog", "--json").out)
    assert (found["line"], found["text"], found["label"], found["cut"]) == (1, "a good dog", "pos", False)
    assert list(found["probabilities"]) == ["pos", "neg"]
    assert found["probabilities"]["pos"] == found["probability"]
    [only] = json.loads(command("predict", classify_run, "a good dog", "--json", "--top", 1).out)["probabilities"]
    assert only == "pos"


def test_a_second_text_is_an_option_or_behind_a_tab(command: Any, pairs_run: Path) -> None:
    given = command("predict", pairs_run, "a dog", "--text-b", "the sun", "--json")
    assert json.loads(given.out)["text_b"] == "the sun"
    read = command("predict", pairs_run, "--json", stdin=b"a dog\tthe sun\n")
    assert read.out == given.out
    other = command("predict", pairs_run, "a dog", "--text-b", "a dog", "--json")
    assert json.loads(read.out)["probabilities"] != json.loads(other.out)["probabilities"]
    three = command("predict", pairs_run, "--on-bad", "stop", stdin=b"a\tb\nb\tc\td\n")
    assert (three.code, three.error) == (
        1,
        [
            r"error: standard input, line 2: one text expected, or two separated by a tab; found 3 columns ('b\tc\td').",
            "Give a table as a file: --data FILE.tsv",
        ],
    )


def test_a_bad_line_is_answered_with_an_empty_one(command: Any, classify_run: Path, pairs_run: Path) -> None:
    for run, stdin in ((classify_run, b"a good dog\ncaf\xe9\na dull song\n"), (pairs_run, b"a\tb\nb\tc\td\nc\td\n")):
        outcome = command("predict", run, stdin=stdin)
        assert (outcome.code, [bool(line) for line in outcome.lines]) == (0, [True, False, True])
        assert outcome.err.startswith("note: answered with an empty line: 1 bad line, ")
        assert "standard input:2 " in outcome.err
    bad = json.loads(command("predict", classify_run, "--json", stdin=b"a good dog\ncaf\xe9\n").lines[1])
    assert bad == {"line": 2, "text": "", "problem": "not UTF-8"}


def test_a_second_text_is_for_runs_that_learnt_from_pairs(command: Any, pairs_run: Path, classify_run: Path) -> None:
    lacking = command("predict", pairs_run, "a dog")
    assert lacking.error[0] == "error: The model learned from pairs of texts, and there is no second text."
    assert lacking.error[1].startswith("Give one to each: --text-b TEXT, or a tab")
    left_over = command("predict", classify_run, "a good dog", "--text-b", "a dull song")
    assert left_over.error == [
        "error: The model learned from single texts, and second ones are given.",
        "Leave them out.",
    ]
    assert (lacking.code, left_over.code) == (2, 2)


def test_a_word_and_its_tag_a_line(command: Any, tag_run: Path) -> None:
    outcome = command("predict", tag_run, stdin=b"Anna Smith visits Oslo\n\nBen often visits Rome\n")
    assert outcome.lines[:5] == ["Anna\tB-PER", "Smith\tI-PER", "visits\tO", "Oslo\tB-LOC", ""]
    assert outcome.lines[5:] == ["", "Ben\tB-PER", "often\tO", "visits\tO", "Rome\tB-LOC", ""]
    found = json.loads(command("predict", tag_run, "Anna visits Oslo", "--json").out)
    assert (found["words"], found["tags"]) == (["Anna", "visits", "Oslo"], ["B-PER", "O", "B-LOC"])
    assert len(found["probabilities"]) == 3


def test_a_number(command: Any, regress_run: Path) -> None:
    high, low = (float(line) for line in command("predict", regress_run, "AAAA", "DDDD").lines)
    assert high > low + 1
    assert json.loads(command("predict", regress_run, "AAAA", "--json").out)["value"] == pytest.approx(high, rel=1e-4)


def test_blanks(command: Any, mask_run: Path, denoise_run: Path) -> None:
    text = "the [MASK] is [MASK] today ."
    [filled] = command("predict", mask_run, text).lines
    assert filled.startswith("the ")
    assert filled.endswith(" today .")
    first, *guesses = command("predict", mask_run, text, "--top", 2).lines
    assert first == filled
    assert [line.split("\t")[0] for line in guesses] == ["1", "1", "2", "2"]
    assert guesses[0].split("\t")[1] == filled.split()[1]
    found = json.loads(command("predict", mask_run, text, "--json", "--top", 2).out)
    assert (found["text"], found["filled"]) == (text, filled)
    assert [len(blank) for blank in found["blanks"]] == [2, 2]
    [written] = command("predict", denoise_run, text).lines
    assert "[MASK]" not in written
    without = command("predict", mask_run, "the dog")
    assert (without.code, without.error[0]) == (2, "error: There is no [MASK] in 'the dog'.")


def test_texts_too_long_are_told(command: Any, classify_run: Path, tag_run: Path) -> None:
    long = "a good dog " * 20
    outcome = command("predict", classify_run, stdin=f"a dog\n{long}\n".encode())
    assert outcome.err == "note: longer than the model reads at once, cut at the end: line 2\n"
    outcome = command("predict", tag_run, long)
    assert outcome.err == "note: longer than the model reads at once, read in parts: line 1\n"
    assert len(outcome.lines) == 61


# Tables


@pytest.fixture
def table() -> Path:
    file = Path("test.csv")
    file.write_text('id,text,label\n7,a good dog,pos\n8,"a dull song",neg\n')
    return file


def test_a_table_comes_out_with_new_columns(command: Any, classify_run: Path, table: Path) -> None:
    table.write_text('id,text,note\n7,a good dog,"x, y"\n8,a dull song,\n')
    outcome = command("predict", classify_run, "--data", "test.csv")
    assert outcome.lines[0] == "id,text,note,prediction,probability"
    assert outcome.lines[1].startswith('7,a good dog,"x, y",pos,0.')
    assert outcome.lines[2].startswith("8,a dull song,,neg,0.")


def test_a_table_with_labels_keeps_them(
    command: Any, classify_run: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK", 1)
    outcome = command("predict", classify_run, "--data", table, "--top", 2, "--output", "out.csv")
    assert outcome.out == ""
    lines = Path("out.csv").read_text().splitlines()
    assert lines[0] == "id,text,label,prediction,probability,prediction_2,probability_2"
    assert [line.split(",")[3] for line in lines[1:]] == ["pos", "neg"]
    assert [line.split(",")[5] for line in lines[1:]] == ["neg", "pos"]


def test_tsv_and_json_lines_stay_what_they_are(command: Any, classify_run: Path, regress_run: Path) -> None:
    Path("a.tsv").write_text("kind\twhat\nx\ta good dog\ny\ta dull song\n")
    outcome = command("predict", classify_run, "--data", "a.tsv", "--text", "what")
    assert outcome.lines[0] == "kind\twhat\tprediction\tprobability"
    assert [line.split("\t")[2] for line in outcome.lines[1:]] == ["pos", "neg"]
    Path("a.jsonl").write_text('{"sequence": "AAAA", "more": [1, 2]}\n{"sequence": "DDDD", "more": null}\n')
    first, second = map(json.loads, command("predict", regress_run, "--data", "a.jsonl").lines)
    assert (first["more"], second["more"]) == ([1, 2], None)
    assert first["prediction"] > second["prediction"]


def test_a_table_as_json(command: Any, classify_run: Path, table: Path) -> None:
    found = [json.loads(line) for line in command("predict", classify_run, "--data", table, "--json").lines]
    assert [(one["line"], one["text"], one["label"]) for one in found] == [
        (2, "a good dog", "pos"),
        (3, "a dull song", "neg"),
    ]


def test_pairs_in_a_table(command: Any, pairs_run: Path) -> None:
    Path("a.csv").write_text("one,two\na dog,the sun\n")
    outcome = command("predict", pairs_run, "--data", "a.csv", "--text", "one", "--text-b", "two", "--json")
    alone = command("predict", pairs_run, "a dog", "--text-b", "the sun", "--json")
    assert outcome.out.replace('"line": 2', '"line": 1') == alone.out


def test_words_in_columns_come_out_with_their_tags(
    command: Any, tag_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK", 1)
    Path("a.conll").write_text("-DOCSTART- O\n\nAnna X\nvisits X\nOslo X\n\n\nBen X\n\n")
    assert command("predict", tag_run, "--data", "a.conll").lines == [
        *("-DOCSTART- O", "", "Anna X B-PER", "visits X O", "Oslo X B-LOC", "", "", "Ben X B-PER", "")
    ]
    Path("b.tsv").write_text("word\ttag\nAnna\tX\nvisits\tX\n")
    assert command("predict", tag_run, "--data", "b.tsv").lines == [
        *("word\ttag\tprediction", "Anna\tX\tB-PER", "visits\tX\tO")
    ]
    Path("c.txt").write_text("Anna\nvisits\nOslo\n")
    assert command("predict", tag_run, "--data", "c.txt").lines == ["Anna\tB-PER", "visits\tO", "Oslo\tB-LOC"]


def test_conllu_keeps_its_comments_and_its_columns(command: Any, tag_run: Path) -> None:
    def line(*cells: str) -> str:
        return "\t".join([*cells, *["_"] * (10 - len(cells))])

    rows = ["# text = Anna visits Oslo", line("1-2", "Annavisits"), line("1", "Anna"), line("2", "visits"), ""]
    Path("a.conllu").write_text("\n".join(rows) + "\n")
    comment, both, anna, visits, end = command("predict", tag_run, "--data", "a.conllu").lines
    assert (comment, end) == (rows[0], "")
    assert both == f"{rows[1]}\t_"
    assert (anna, visits) == (f"{rows[2]}\tB-PER", f"{rows[3]}\tO")
    found = json.loads(command("predict", tag_run, "--data", "a.conllu", "--json").out)
    assert (found["line"], found["words"], found["tags"]) == (3, ["Anna", "visits"], ["B-PER", "O"])


def test_vectors(command: Any, vectors_run: Path) -> None:
    rising = np.stack([0.3 * np.arange(6), np.zeros(6)], axis=-1)
    np.savez("a.npz", first=rising, second=-rising)
    outcome = command("predict", vectors_run, "--data", "a.npz")
    assert [line.split("\t")[:2] for line in outcome.lines] == [["first", "up"], ["second", "down"]]
    found = json.loads(command("predict", vectors_run, "--data", "a.npz", "--json").lines[0])
    assert (found["text"], found["label"]) == ("first", "up")
    text = command("predict", vectors_run, "a dog")
    assert (text.code, text.error) == (
        2,
        [f"error: {vectors_run} was trained on vectors: it reads no text.", "Give a file of vectors: --data FILE.npz"],
    )


def test_a_tag_for_each_vector(command: Any, tmp_path: Path) -> None:
    noise = np.random.default_rng(1).normal(0, 0.1, (30, 6, 1))
    frames = np.tile([1.0, -1.0], 90).reshape(30, 6, 1) + noise
    np.savez("train.npz", vectors=frames, labels=np.where(frames[:, :, 0] > 0, "up", "down"))
    sizes = (
        "model.n_layers=1",
        "model.d_model=4",
        "model.d_state=4",
        "training.learning_rate=0.05",
        "data.valid_size=4",
    )
    sets = [part for one in (*sizes, "training.warmup=0", "runtime.threads=1") for part in ("--set", one)]
    trained = command("train", "tag", "--train", "train.npz", "--model", "birnn", "--steps", 20, "--run", "run", *sets)
    assert trained.code == 0
    assert "1,024 vectors per batch" in trained.err
    assert " vectors/s " in trained.err and "words" not in trained.err
    Path("a.csv").write_text("who,x\nann,1\nann,-1\nbob,1\n")
    outcome = command("predict", "run", "--data", "a.csv", "--text", "who")
    assert outcome.lines == ["ann\t0\tup", "ann\t1\tdown", "bob\t0\tup"]
    found = json.loads(command("predict", "run", "--data", "a.csv", "--text", "who", "--json").lines[0])
    assert (found["line"], found["text"], found["tags"]) == (2, "ann", ["up", "down"])


# Mistakes


def test_too_many_bad_rows_are_an_error_with_their_places(command: Any, classify_run: Path) -> None:
    Path("a.csv").write_text("id,text\n1,a good dog\n2\n")
    outcome = command("predict", classify_run, "--data", "a.csv", "--output", "out.csv")
    assert (outcome.code, outcome.error) == (
        1,
        [
            "error: 1 of 2 rows are bad (50.0%, at most 1% may be): 1 (2 columns expected, 1 found). First: a.csv:3 "
            "(2 columns expected, 1 found) '2'.",
            "Fix the files, or predict the others with --on-bad keep-going.",
        ],
    )
    assert not Path("out.csv").exists()
    unknown = command("predict", classify_run, "--data", "a.csv", "--on-bad", "kep-going")
    assert unknown.code == 2
    alone = command("predict", classify_run, "a dog", "--on-bad", "stop")
    assert (alone.code, alone.error[0]) == (2, "error: --on-bad is for files and standard input.")


def test_each_row_has_a_row_a_bad_one_without_a_prediction(
    command: Any, classify_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK", 2)
    rows = [b"", b"3\n", b'4,"\n",x\n', b"5,M\xfcnchen\n", *(b"6,a good dog %d\n" % number for number in range(3))]
    Path("a.csv").write_bytes(b"id,text\n1\n2, \n" + b"".join(rows))
    outcome = command("predict", classify_run, "--data", "a.csv", "--on-bad", "keep-going")
    assert outcome.code == 0
    heading, *found = (line.split(",") for line in outcome.lines)
    assert heading == ["id", "text", "prediction", "probability"]
    empty = [""] * 4
    assert found[:6] == [empty, ["2", " ", "", ""], empty, empty, empty, empty]
    assert [(one[:3], float(one[3]) > 0.5) for one in found[6:]] == [
        (["6", f"a good dog {number}", "pos"], True) for number in range(3)
    ]
    assert outcome.err.splitlines() == [
        "note: without a prediction: 2 bad rows, 2 columns expected, 1 found: a.csv:2 '1'; a.csv:4 '3'",
        "note: without a prediction: 2 bad rows, 2 columns expected, 3 found: a.csv:5 '4\\t\\n\\tx'; a.csv:6",
        "note: without a prediction: 1 bad row, empty text: a.csv:3 '2'",
        "note: without a prediction: 1 bad row, not UTF-8: a.csv:7 '5,M\\xfcnchen'",
    ]
    by_json = command("predict", classify_run, "--data", "a.csv", "--on-bad", "keep-going", "--json")
    objects = [json.loads(line) for line in by_json.lines]
    assert objects[1] == {"line": 3, "problem": "empty text"}
    assert [one["line"] for one in objects] == list(range(2, 11))


def test_one_bad_row_of_many_does_not_stop(command: Any, classify_run: Path) -> None:
    rows = [{"text": f"a good dog {number}", "id": number} for number in range(100)]
    rows[7]["text"] = ""
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "\n")
    outcome = command("predict", classify_run, "--data", "a.jsonl", "--on-bad", "keep-going")
    found = [json.loads(line) for line in outcome.lines]
    assert found[7] == {"text": "", "id": 7, "prediction": None, "probability": None}
    assert found[100] == {"prediction": None, "probability": None}
    assert found[99]["prediction"] == "pos"
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    outcome = command("predict", classify_run, "--data", "a.jsonl")
    assert (outcome.code, len(outcome.lines)) == (0, 100)
    assert outcome.err == "note: without a prediction: 1 bad row, empty text: a.jsonl:8 '7'\n"


def test_the_words_of_a_bad_sentence_have_no_tags(command: Any, tag_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 1)
    Path("a.conll").write_text("-DOCSTART- O\n\nAnna X\nvisits\nOslo X\n\n# a comment\nBen X\n\nOslo\n")
    outcome = command("predict", tag_run, "--data", "a.conll", "--on-bad", "keep-going")
    assert outcome.lines == [
        *("-DOCSTART- O", "", "Anna X _", "visits\t_", "Oslo X _", "", "# a comment", "Ben X B-PER", "", "Oslo\t_")
    ]


def test_of_a_refused_table_nothing_comes_out(command: Any, classify_run: Path, table: Path) -> None:
    unknown = command("predict", classify_run, "--data", table, "--text", "txt")
    assert (unknown.out, unknown.error) == ("", ["error: test.csv has no column 'txt'.", "Did you mean text?"])
    Path("header.csv").write_text("text,label\n")
    for options in ((), ("--json",)):
        empty = command("predict", classify_run, "--data", "header.csv", *options)
        assert (empty.code, empty.out) == (1, "")
        assert empty.error == ["error: header.csv has no rows.", "Check the step that wrote it."]


def test_a_line_without_a_blank_comes_out_as_it_is(command: Any, mask_run: Path) -> None:
    outcome = command("predict", mask_run, stdin=b"the [MASK] runs\n\nthe dog runs\nthe [MASK]\n")
    assert outcome.code == 0
    assert [line.split()[0] if line else "" for line in outcome.lines] == ["the", "", "the", "the"]
    assert outcome.lines[2] == "the dog runs"
    assert "note: without a [MASK], printed unchanged: line 3" in outcome.err
    alone = command("predict", mask_run, "the dog runs")
    assert alone.code == 2
    assert alone.error[0] == "error: There is no [MASK] in 'the dog runs'."


def test_the_name_of_a_file_gets_a_hint(command: Any, classify_run: Path, table: Path) -> None:
    outcome = command("predict", classify_run, table)
    assert outcome.code == 0
    assert outcome.err == (
        "note: 'test.csv' is read as text, but a file has that name. For its content: --data test.csv for a table, "
        "< test.csv for its lines\n"
    )
    assert command("predict", classify_run, "x" * 5000).code == 0  # too long for the name of a file


@pytest.mark.parametrize("fixture", ["trained", "language_run"])
def test_a_run_of_another_kind_names_its_command(command: Any, fixture: str, request: pytest.FixtureRequest) -> None:
    run = request.getfixturevalue(fixture)
    kind, verb = ("Translator", "translate") if fixture == "trained" else ("LanguageModel", "generate")
    outcome = command("predict", run, "a dog")
    assert outcome.code == 2
    assert outcome.error[0].startswith(f"error: {run} is a {kind}, not a run that regard predict can use: ")
    assert outcome.error[1] == f"Use it with: regard {verb} {run}"


def test_options_that_do_not_go_together(command: Any, classify_run: Path, table: Path) -> None:
    cases = {
        ("a dog", "--data", table): "Inputs come from --data or from the command line, not from both.",
        ("a dog", "--text", "text"): "--text names a column, but there is no table.",
        ("a dog", "--top", 0): "--top must be at least 1, not 0.",
        ("a dog", "--top", 10**9): "--top must be at least 1 and at most 10,000, not 1000000000.",
        ("--data", table, "--output", table): "test.csv is the file that is read.",
        ("a dog", "--output", "none/out"): "none/out cannot be written: No such file or directory.",
    }
    for options, problem in cases.items():
        outcome = command("predict", classify_run, *options)
        assert (outcome.code, outcome.error[0]) == (2, f"error: {problem}")


def test_the_name_of_the_output_may_not_be_of_another_format(command: Any, classify_run: Path, table: Path) -> None:
    outcome = command("predict", classify_run, "--data", table, "--output", "o.jsonl")
    assert (outcome.code, outcome.error) == (
        2,
        [
            "error: test.csv is written in its own format, but o.jsonl has the name of another.",
            "End the name given with --output as test.csv does.",
        ],
    )
    assert command("predict", classify_run, "--data", table, "--output", "o.jsonl", "--json").code == 0


def test_options_that_a_task_does_not_have(command: Any, regress_run: Path, mask_run: Path) -> None:
    top = command("predict", regress_run, "AAAA", "--top", 2)
    assert (top.code, top.error) == (2, ["error: --top does not apply to regress runs.", "Leave it out."])
    data = command("predict", mask_run, "--data", "a.csv")
    assert (data.code, data.error) == (
        2,
        [
            "error: --data does not apply to mask runs.",
            f'Give the inputs themselves: regard predict {mask_run} "… [MASK] …"',
        ],
    )
    second = command("predict", mask_run, "the [MASK]", "--text-b", "x")
    assert (second.code, second.error[1]) == (2, "Leave it out.")


def test_text_is_no_table(command: Any, classify_run: Path) -> None:
    Path("a.txt").write_text("a good dog\n")
    outcome = command("predict", classify_run, "--data", "a.txt")
    assert outcome.code == 2
    assert outcome.error[0].startswith("error: a.txt is no table that columns can be added to")
