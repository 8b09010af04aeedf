"""`regard inspect`: what people see of a run at work, and what they are told when it cannot be."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.cli.main import main

TEXT = "a dog runs"


@pytest.fixture
def inspect(capsys: pytest.CaptureFixture[str], trained: Path) -> Any:
    def call(*arguments: object, run: object = None, code: int = 0) -> tuple[str, str]:
        found = main(["inspect", str(run or trained), *map(str, arguments), "--threads", "1"])
        shown = capsys.readouterr()
        assert found == code, shown.err
        return shown.out, shown.err

    return call


def test_one_screen(inspect: Any) -> None:
    out, err = inspect(TEXT)
    assert out.startswith(f"input   {TEXT}\noutput  ")
    assert "reads" in out and "writes" in out and "attends to" in out
    assert "the mean over the heads of decoder." in out
    assert "--atlas --png heads.png" in err and "--checks" in err


def test_what_was_cut_off_is_said(inspect: Any, classify_run: Path) -> None:
    _, err = inspect("a good dog " * 20, run=classify_run)
    assert "note: the input is longer than the model reads at once: cut at the end" in err
    _, err = inspect("a good dog", run=classify_run)
    assert "longer" not in err


def test_a_long_input_is_not_repeated_in_what_could_be_asked_next(inspect: Any) -> None:
    _, err = inspect(" ".join([TEXT] * 12))
    assert " … --walk" in err
    assert TEXT not in err


def test_json_has_the_same_numbers(inspect: Any) -> None:
    out, _ = inspect(TEXT, "--json")
    found = json.loads(out)["overview"]
    assert found["input"] == TEXT
    assert found["steps"][0]["reads"] == "(start)"
    assert all(0 <= step["probability"] <= 1 for step in found["steps"])
    assert found["taps"]["logits"]["axes"] == ["target", "output"]


def test_a_map_as_picture_and_table(inspect: Any, tmp_path: Path) -> None:
    picture, table = tmp_path / "map.png", tmp_path / "map.csv"
    _, err = inspect(TEXT, "--kind", "cross", "--layer", 0, "--head", 0, "--png", picture, "--csv", table)
    assert "--walk" not in err, "how to see more is for those who asked for nothing"
    assert f"drawn: {picture}" in err and picture.stat().st_size > 1000
    rows = table.read_text().splitlines()
    assert rows[0].startswith("position,token,0 ")
    assert abs(sum(map(float, rows[1].split(",")[2:])) - 1) < 1e-5


def test_a_part_of_a_map(inspect: Any, tmp_path: Path) -> None:
    picture, table = tmp_path / "part.png", tmp_path / "part.csv"
    inspect(TEXT, "--png", picture, "--csv", table, "--queries", "1:3", "--keys", ":2")
    assert picture.stat().st_size > 1000
    heading, *rows = table.read_text().splitlines()
    assert [column.split(" ")[0] for column in heading.split(",")] == ["position", "token", "0", "1"]
    assert [row.split(",")[0] for row in rows] == ["1", "2"]


def test_all_heads(inspect: Any, tmp_path: Path) -> None:
    picture = tmp_path / "heads.svg"
    inspect(TEXT, "--atlas", "--kind", "decoder", "--png", picture)
    assert picture.stat().st_size > 1000


def test_a_walk(inspect: Any) -> None:
    out, _ = inspect(TEXT, "--walk", "--query", 0)
    assert out.startswith("source ") and "\ntoken " in out
    assert "target_embedding.sum" in out and "softmax" in out and "what is written there" in out


def test_the_names_and_numbers_of_taps(inspect: Any) -> None:
    out, _ = inspect(TEXT, "--tap", "decoder.*.cross_attention.weights")
    assert out.splitlines()[0].split("  ")[0] == "tap"
    assert "decoder.0.cross_attention.weights  head " in out and "attention weights, after mask and softmax" in out
    out, _ = inspect(TEXT, "--tap", "*", "--json")
    assert {"name": "logits", "axes": ["target", "output"]}.items() <= json.loads(out)["tap"][-1].items()
    assert all(one["about"] for one in json.loads(out)["tap"])
    out, _ = inspect(TEXT, "--tap", "decoder.0.cross_attention.weights", "--json")
    assert json.loads(out)["tap"]["axes"] == ["head", "target", "source"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kind", "crss"], "This model has no crss attention."),
        (["--queries", "1:3"], "--queries chooses a part of one map."),
        (["--png", "a.png", "--atlas", "--keys", "1:3"], "--keys chooses a part of one map."),
        (["--png", "a.png", "--keys", "3:1"], "--keys '3:1' is no range of positions."),
        (["--png", "a.png", "--keys", "99:"], "There are the keys 0 to "),
        (["--kind", "cross", "--layer", "9"], "There are the layers 0 to 0 of cross attention, and no 9."),
        (
            ["--tap", "decoder.0.cross_attention.weight"],
            "There is no tap 'decoder.0.cross_attention.weight' in this trace.",
        ),
        (["--tap", "decoder.9.*"], "No tap of this model matches 'decoder.9.*'."),
        (["--layer", "0"], "--layer chooses an attention map, and none is written."),
        (["--python"], "--python shows the arithmetic of a cell."),
        (["--top", "2"], "--top says how many the logit lens shows."),
        (["--neighbours", "dog"], "--neighbours is about the whole run, and an input is given."),
        (["--lens", "--top", "0"], "The lens shows 1 or more of the likeliest, not 0."),
        (["--contributions", "--query", "99"], "There are the positions 0 to"),
        (["--csv", "/dev/null/map.csv"], "Cannot write /dev/null/map.csv: Not a directory."),
        (["--cell", "decoder.0.cross_attention"], "--cell needs --query."),
        (["--atlas"], "--atlas is a picture, and no file is named for it."),
        (["--ablate", "decoder.0.cross_attention:x"], "'decoder.0.cross_attention:x' does not name heads."),
        (
            ["--ablate", "decoder.0.crossattention"],
            "The model has no sublayer 'decoder.0.crossattention' that could be cut.",
        ),
        (["--ablate", "decoder.0.cross_attention:7"], "decoder.0.cross_attention has the heads 0 to 0, and no head 7."),
        (["--walk", "--query", "99"], "There are the positions 0 to"),
    ],
)
def test_what_cannot_be_is_refused(inspect: Any, tmp_path: Path, arguments: list[str], message: str) -> None:
    picture = ["--png", tmp_path / "map.png"] if "--kind" in arguments else []
    _, err = inspect(TEXT, *arguments, *picture, code=2)
    first, second = err.splitlines()[-2:]
    assert first.startswith(f"error: {message}") and second, "what is wrong, and what to do"


def test_empty_text_and_no_input(inspect: Any) -> None:
    _, err = inspect("  ", code=2)
    assert "error: An empty text has nothing to look into." in err
    _, err = inspect(code=2)
    assert "error: Nothing is given to look at." in err


@pytest.mark.parametrize("option", ["--walk", "--lens", "--labels", "--beam-tree", "--checks", "--contributions"])
def test_every_view_has_text_and_json(inspect: Any, option: str) -> None:
    out, _ = inspect(TEXT, option, "--beam", 2)
    assert out.strip()
    out, _ = inspect(TEXT, option, "--beam", 2, "--json")
    assert len(json.loads(out)) == 2, "the run, and what was asked for"


def test_as_many_of_the_likeliest_as_asked_for(inspect: Any) -> None:
    rows = [inspect(TEXT, "--lens", *top)[0].splitlines()[2] for top in ((), ("--top", 2))]
    assert [row.count(", ") > 0 for row in rows] == [False, True]


def test_one_cell(inspect: Any) -> None:
    where = ("--cell", "decoder.0.cross_attention", "--head", 0, "--query", 0, "--key", 1)
    out, _ = inspect(TEXT, *where)
    assert "softmax" in out or "weight" in out
    program, _ = inspect(TEXT, *where, "--python")
    exec(compile(program, "cell", "exec"), {})
    assert "assert" in program


def test_ablation_and_comparison(inspect: Any, trained: Path) -> None:
    out, _ = inspect(TEXT, "--ablate", "decoder.0.cross_attention:0")
    assert out.startswith("without decoder.0.cross_attention:0\nwrites: ")
    out, _ = inspect(TEXT, "--against", f"{trained}@last")
    assert out.startswith(f"{trained}@last writes: ")


def test_forcing_goes_on_from_a_node(inspect: Any) -> None:
    out, _ = inspect(TEXT, "--beam-tree", "--beam", 2, "--json")
    nodes = json.loads(out)["beam_tree"]["nodes"]
    out, _ = inspect(TEXT, "--beam-tree", "--beam", 2, "--force", nodes[1]["number"])
    assert f"from node {nodes[1]['number']}: " in out
    _, err = inspect(TEXT, "--force", 1, code=2)
    assert "error: --force goes on from a node of the tree." in err


def test_a_run_that_samples_is_searched_with_a_beam_for_its_tree(inspect: Any, language_run: str) -> None:
    out, err = inspect("a dog", "--beam-tree", "--max-length", 4, "--json", run=language_run)
    assert json.loads(out)["beam_tree"]["width"] == 4
    assert "this run samples, which has no tree: searched with a beam of 4 instead (--beam)" in err
    out, err = inspect("a dog", "--beam-tree", "--max-length", 4, "--beam", 2, "--json", run=language_run)
    assert json.loads(out)["beam_tree"]["width"] == 2 and "samples" not in err


def test_a_prompt_stays_in_the_trace_and_is_walked_from(inspect: Any, language_run: str) -> None:
    out, _ = inspect("a dog", "--json", run=language_run)
    steps = json.loads(out)["overview"]["steps"]
    assert "".join(step["reads"] for step in steps).replace("(start)", "").startswith("a dog")
    n_given = sum(step["given"] for step in steps)
    out, _ = inspect("a dog", "--walk", "--json", run=language_run)
    assert json.loads(out)["walk"]["position"] == n_given, "behind the prompt, where the next token is written"


def test_more_is_told_of_what_the_model_has(inspect: Any, image_run: Path) -> None:
    picture = next((image_run.parent / "train").rglob("*.png"))
    _, err = inspect(picture, run=image_run)
    own = [line.split(str(picture))[1].split("#")[0].strip(" '") for line in err.splitlines() if str(picture) in line]
    assert own and "--beam-tree" not in own
    for options in own:
        if "--png" not in options and options != "--page":  # which serves until Ctrl-C
            inspect(picture, *options.replace("'", "").split(), run=image_run)


def test_a_saved_trace_is_read_again(inspect: Any, tmp_path: Path) -> None:
    import regard

    _, err = inspect(TEXT, "--save", tmp_path / "dog.trace")
    assert f"written: {tmp_path / 'dog.trace'}" in err
    assert regard.load_trace(tmp_path / "dog.trace").title == TEXT


def test_importance_goes_on_where_it_was_stopped(inspect: Any, corpus: tuple[str, str], trained: Path) -> None:
    out, _ = inspect("--heads", "--data", *corpus, "--examples", 5)
    assert "decoder.0.cross_attention:0" in out
    [kept] = (trained / "traces").glob("importance-*.jsonl")
    before = kept.read_bytes()
    again, _ = inspect("--heads", "--data", *corpus, "--examples", 5)
    assert (again, kept.read_bytes()) == (out, before)
    _, err = inspect("--heads", code=2)
    assert "error: The importance of heads is measured on a test set." in err


def test_neighbours_of_a_token(inspect: Any) -> None:
    out, _ = inspect("--neighbours", "dog")
    assert out.startswith("token")


def test_a_text_longer_than_the_positions(inspect: Any, classify_run: Path, language_run: str) -> None:
    long = "lovely film " * 400
    out, _ = inspect(long, "--json", run=classify_run)
    assert len(json.loads(out)["overview"]["steps"]) <= 512, "it is cut, as `predict` cuts it"
    _, err = inspect("a dog " * 2000, run=language_run, code=2)
    assert "tokens, and the model reads at most" in err


def test_a_run_without_a_checkpoint(inspect: Any, trained: Path, tmp_path: Path) -> None:
    import shutil

    bare = tmp_path / "bare"
    shutil.copytree(trained, bare)
    shutil.rmtree(bare / "checkpoints")
    _, err = inspect(TEXT, run=bare, code=1)
    assert "checkpoint" in err and "Traceback" not in err


def test_what_a_terminal_would_obey_is_only_shown(inspect: Any) -> None:
    _, err = inspect("a \x1b[31m dog <img src=x onerror=alert(1)>")
    assert "\x1b[31m" not in err
