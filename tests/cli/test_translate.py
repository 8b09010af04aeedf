import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from regard.cli import lines as module
from regard.tasks.translation.task import TranslationTask

OURS = ("--engine", "torch")  # without a line about the engine


def test_texts_become_lines(command: Any, trained: Path) -> None:
    outcome = command("translate", trained, "the dog runs", "a red house", *OURS)
    assert outcome.code == 0
    assert len(outcome.lines) == 2
    assert outcome.err == ""


def test_standard_input_stays_aligned(command: Any, trained: Path) -> None:
    # A byte order mark, a Windows line end, an empty line, a line separator that is none, no end of the last line.
    text = "\ufeffthe dog runs\r\n\nthe cat\u2028sees\na tree"
    outcome = command("translate", trained, stdin=text.encode())
    assert outcome.code == 0
    lines = outcome.out.split("\n")
    assert len(lines) == 5
    assert (lines[1], lines[4]) == ("", "")
    alone = command("translate", trained, "the dog runs")
    assert lines[0] == alone.lines[0]


def test_chunks_change_nothing(command: Any, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"the dog runs\na cat\nthe red tree\nman\nold house\n"
    whole = command("translate", trained, "--json", stdin=text)
    monkeypatch.setattr(module, "CHUNK", 2)
    chunked = command("translate", trained, "--json", stdin=text)
    assert [json.loads(line)["line"] for line in chunked.lines] == [1, 2, 3, 4, 5]
    for one, other in zip(whole.lines, chunked.lines, strict=True):
        best, again = (json.loads(line)["translations"][0] for line in (one, other))
        assert best["text"] == again["text"]


def test_equal_lines_of_two_chunks_are_drawn_independently(
    command: Any, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK", 2)
    flags = ("--sample", "--temperature", 5, "--seed", 4)
    outcome = command("translate", trained, *flags, stdin=b"the dog runs\na\nthe dog runs\na\n")
    assert outcome.lines[0] != outcome.lines[2]
    assert outcome.out == command("translate", trained, *flags, stdin=b"the dog runs\na\nthe dog runs\na\n").out


def test_nothing_in_nothing_out(command: Any, trained: Path) -> None:
    outcome = command("translate", trained, *OURS, stdin=b"")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


def test_a_line_in_another_encoding_is_answered_with_an_empty_one(command: Any, trained: Path) -> None:
    first, _, last = command("translate", trained, *OURS, stdin=b"a dog\n\nthe man\n").lines
    outcome = command("translate", trained, *OURS, stdin=b"a dog\na caf\xe9\nthe man\n")
    assert (outcome.code, outcome.lines) == (0, [first, "", last])
    assert outcome.err == (
        r"note: answered with an empty line: 1 bad line, not UTF-8: standard input:2 'a caf\xe9'" + "\n"
    )
    bad = json.loads(command("translate", trained, "--json", stdin=b"a dog\na caf\xe9\n").lines[1])
    assert (bad["line"], bad["problem"], bad["translations"][0]["text"]) == (2, "not UTF-8", "")


def test_other_encodings_stop_where_that_is_asked_for(command: Any, trained: Path) -> None:
    outcome = command("translate", trained, "--on-bad", "stop", stdin=b"a dog\na caf\xe9\nthe man\n")
    assert (outcome.code, len(outcome.lines)) == (1, 1)
    assert outcome.error == [
        r"error: standard input, line 2: not UTF-8 ('a caf\xe9').",
        "Text in UTF-8 is expected; iconv converts other encodings: iconv -f latin1 -t utf-8",
    ]
    mixed = command("translate", trained, "--on-bad", "stop", stdin="ä\n".encode() + b"a caf\xe9\n")
    assert mixed.error[1] == "Write that line again: others before it are in UTF-8."
    unknown = command("translate", trained, "--on-bad", "kep-going", stdin=b"a dog\n")
    assert (unknown.code, unknown.error[1]) == (2, "Did you mean keep-going?")
    given = command("translate", trained, "a dog", "--on-bad", "stop")
    assert (given.code, given.error[0]) == (2, "error: --on-bad is for files and standard input.")


def test_input_in_another_encoding_altogether_is_an_error(command: Any, trained: Path) -> None:
    outcome = command("translate", trained, stdin="à\né\n".encode("latin1"))
    assert (outcome.code, outcome.out) == (1, "\n\n")
    assert outcome.error[0] == (
        r"error: No line can be read: 2 bad lines, not UTF-8: standard input:1 '\xe0'; standard input:2 '\xe9'."
    )
    assert outcome.error[1].startswith("Text in UTF-8 is expected; iconv")


def test_a_run_of_another_task_is_refused_before_anything_is_read(
    command: Any, trained: Path, language_run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "waiting_lines", lambda *args, **kwargs: pytest.fail("standard input was read"))
    for runs in ((language_run,), (trained, "--with", language_run)):
        outcome = command("translate", *runs)
        assert outcome.code == 2
        assert outcome.error == [
            f"error: {language_run} is a LanguageModel, not a Translator: it was trained for the task 'language'.",
            f"Use it with: regard generate {language_run}",
        ]


def test_the_n_best_have_a_line_each(command: Any, trained: Path) -> None:
    outcome = command("translate", trained, "--n-best", 3, "--beam", 4, "the dog runs", "a tree")
    rows = [line.split("\t") for line in outcome.lines]
    assert [row[0] for row in rows] == ["1", "1", "1", "2", "2", "2"]
    scores = [float(row[1]) for row in rows]
    assert scores[:3] == sorted(scores[:3], reverse=True)
    assert len({row[2] for row in rows[:3]}) == 3


def test_alignments_follow_a_tab(command: Any, trained: Path) -> None:
    outcome = command("translate", trained, "--align", "the dog runs")
    text, alignment = outcome.lines[0].split("\t")
    links = [tuple(map(int, link.split("-"))) for link in alignment.split()]
    assert links == sorted(links)
    assert {target for _, target in links} <= set(range(len(text.split())))
    assert {source for source, _ in links} <= {0, 1, 2}


def test_json_has_all_that_is_known(command: Any, trained: Path) -> None:
    outcome = command("translate", trained, "--n-best", 2, "--align", "--json", "the dog runs")
    [found] = [json.loads(line) for line in outcome.lines]
    assert (found["line"], found["source"], found["parts"]) == (1, "the dog runs", 1)
    best, second = found["translations"]
    assert best["score"] >= second["score"]
    assert "".join(best["tokens"]).strip() == best["text"]
    assert len(best["log_probs"]) in (len(best["tokens"]), len(best["tokens"]) + 1)  # the end token's, if it came
    assert set(best["alignment"][0]) == {"source", "target", "score"}
    assert "alignment" not in json.loads(command("translate", trained, "--json", "a").out)["translations"][0]


def test_rules(command: Any, trained: Path) -> None:
    free = command("translate", trained, "the dog runs").lines[0]
    first = free.split()[0]
    banned = command("translate", trained, "--ban", first, "the dog runs").lines[0]
    assert first not in banned.split()
    begun = command("translate", trained, "--prefix", "Baum", "the dog runs").lines[0]
    assert begun.startswith("Baum")
    long = command("translate", trained, "--min-length", 12, "--max-length", 12, "--json", "the dog runs").out
    assert len(json.loads(long)["translations"][0]["tokens"]) == 12


def test_an_ensemble_votes(command: Any, trained: Path, own_run: Path) -> None:
    alone = command("translate", trained, "--json", "the dog runs")
    doubled = command("translate", trained, "--with", own_run, "--json", "the dog runs")
    best, again = (json.loads(one.out)["translations"][0] for one in (alone, doubled))
    assert best["text"] == again["text"]
    assert best["score"] == pytest.approx(again["score"], abs=1e-4)


def test_long_lines_are_told(command: Any, trained: Path) -> None:
    long = ". ".join(["the dog runs and sees the old man"] * 40)
    outcome = command("translate", trained, "--beam", 1, "--max-length", 5, "a dog", long, *OURS)
    assert len(outcome.lines) == 2
    assert outcome.err == "note: longer than the model reads at once, translated in parts: line 2\n"


def test_at_a_keyboard_each_line_is_answered_at_once(
    command: Any, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Keyboard(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    sizes: list[int] = []
    ordinary = TranslationTask.predict

    def watched(self: TranslationTask, model: Any, inputs: Any, options: Any) -> Any:
        sizes.append(len(inputs))
        return ordinary(self, model, inputs, options)

    monkeypatch.setattr(TranslationTask, "predict", watched)
    monkeypatch.setattr(io, "TextIOWrapper", Keyboard)
    outcome = command("translate", trained, *OURS, stdin=b"a dog\na cat\n")
    assert sys.stdin.isatty()
    assert sizes == [1, 1]
    assert outcome.err == "Type one sentence per line; Ctrl-D ends.\n"


def test_a_damaged_checkpoint_is_skipped_and_told(command: Any, own_run: Path) -> None:
    for name in ("average-00000120", "step-00000120"):
        (own_run / "checkpoints" / name / "model.safetensors").write_bytes(b"x")
    outcome = command("translate", own_run, "a dog")
    assert (outcome.code, len(outcome.lines)) == (0, 1)
    assert outcome.err.startswith("note: average-00000120 is skipped. The checkpoint is damaged: ")


@pytest.mark.parametrize(
    ("reference", "code", "problem", "remedy"),
    [
        ("runs/onw", 1, "runs/onw is not a run: there is no such folder.", "Did you mean runs/own?"),
        ("runs", 1, "runs is not a run: it has no config.toml.", "There are runs in it: runs/own."),
        ("runs/own@77", 1, "runs/own has no checkpoint of step 77.", "There is one of: 40, 80, 120."),
        (
            "runs/own@bst",
            2,
            "'@bst' in 'runs/own@bst' names no checkpoint: a step's number, best, last or average is expected.",
            "Did you mean best?",
        ),
    ],
)
def test_runs_that_are_none(command: Any, own_run: Path, reference: str, code: int, problem: str, remedy: str) -> None:
    outcome = command("translate", reference, "a dog")
    assert (outcome.code, outcome.err.splitlines()) == (code, [f"error: {problem}", remedy])


def test_a_damaged_checkpoint_asked_for_by_its_step(command: Any, own_run: Path) -> None:
    file = own_run / "checkpoints" / "step-00000040" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    outcome = command("translate", f"{own_run}@40", "a dog")
    assert outcome.code == 1
    assert outcome.error[0].startswith("error: The checkpoint is damaged: ")
    assert outcome.error[1] == f"Use another: {own_run}@last is the newest intact one."


def test_more_hypotheses_than_the_beam_has(command: Any, trained: Path) -> None:
    outcome = command("translate", trained, "--n-best", 9, "a dog")
    assert outcome.code == 2
    assert outcome.error[0] == "error: A beam of width 5 returns 1 to 5 hypotheses, but 9 were asked for."


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("--temperature", "nan", "--sample"), "--temperature must be a finite number, not nan."),
        (("--min-length", "-4"), "--min-length must be at least 0, not -4."),
        (("--n-best", "0"), "--n-best must be at least 1, not 0."),
        (("--beam", "100000"), "--beam must be at least 1 and at most 1,000, not 100000."),
        (("--length-penalty", "1000"), "--length-penalty must be at least -10 and at most 10, not 1000.0."),
        (("--repetition-penalty", "0"), "--repetition-penalty must be above 0, not 0.0."),
    ],
)
def test_numbers_out_of_their_range(command: Any, trained: Path, flags: tuple[str, ...], problem: str) -> None:
    outcome = command("translate", trained, *flags, "a dog")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.error == [f"error: {problem}", f"Correct {flags[0]} and run the command again."]


def test_the_option_says_how_many_threads_use_a_run(command: Any, trained: Path) -> None:
    import torch

    before = torch.get_num_threads()
    try:
        assert command("translate", trained, "--threads", 2, "a dog").code == 0
        assert torch.get_num_threads() == 2
        assert command("translate", trained, "a dog").code == 0
        assert torch.get_num_threads() == 1  # those of the machine
    finally:
        torch.set_num_threads(before)
    refused = command("translate", trained, "--threads", 10**6, "a dog")
    assert refused.error[0] == "error: --threads must be at least 0 and at most 1,024, not 1000000."


def test_an_empty_line_keeps_the_columns_of_the_n_best(command: Any, trained: Path) -> None:
    outcome = command("translate", trained, "--n-best", 2, stdin=b"a dog\n\n")
    assert [line.count("\t") for line in outcome.lines] == [2, 2, 2]
    assert outcome.lines[2] == "2\t0.0000\t"


def test_an_option_wins_over_the_runs_own_setting(command: Any, own_run: Path) -> None:
    config = own_run / "config.toml"
    config.write_text(config.read_text().replace("n_best = 1", "n_best = 2"))
    assert len(command("translate", own_run, "a dog").lines) == 2
    assert len(command("translate", own_run, "a dog", "--n-best", 1).lines) == 1
