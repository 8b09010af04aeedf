import os
import subprocess
from pathlib import Path

import pytest

from regard.errors import RunError, UsageError
from regard.runs.folder import Reference, RunFolder, find_runs


def make_run(path: Path) -> RunFolder:
    path.mkdir(parents=True)
    run = RunFolder(path)
    run.config_file.touch()
    return run


@pytest.mark.parametrize(
    ("text", "path", "selector"),
    [
        ("runs/m30k", "runs/m30k", None),
        ("runs/m30k@best", "runs/m30k", "best"),
        ("runs/m30k@last", "runs/m30k", "last"),
        ("runs/m30k@average", "runs/m30k", "average"),
        ("runs/m30k@400", "runs/m30k", 400),
        ("runs/m30k@00000400", "runs/m30k", 400),
        ("me@home/m30k", "me@home/m30k", None),
        ("me@home/m30k@0", "me@home/m30k", 0),
    ],
)
def test_a_reference_is_a_path_and_a_selector(text: str, path: str, selector: object) -> None:
    assert Reference.parse(text) == Reference(Path(path), selector)  # type: ignore[arg-type]


def test_a_reference_reads_as_it_was_written() -> None:
    for text in ("runs/m30k", "runs/m30k@best", "runs/m30k@400"):
        assert str(Reference.parse(text)) == text


def test_a_folder_may_have_an_at_sign_in_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "m30k@home"
    folder.mkdir()
    assert Reference.parse(str(folder)) == Reference(folder)
    assert Reference.parse(f"{folder}@best") == Reference(folder, "best")


@pytest.mark.parametrize(
    ("text", "problem", "remedy"),
    [
        (
            "runs/m30k@bst",
            "'@bst' in 'runs/m30k@bst' names no checkpoint: a step's number, best, last or average is expected.",
            "Did you mean best?",
        ),
        (
            "runs/m30k@-4",
            "'@-4' in 'runs/m30k@-4' names no checkpoint: a step's number, best, last or average is expected.",
            "Available: average, best, last.",
        ),
        (
            "runs/m30k@",
            "'@' in 'runs/m30k@' names no checkpoint: a step's number, best, last or average is expected.",
            "Available: average, best, last.",
        ),
        ("@400", "'@400' names no run.", "Write the folder first: RUN@400"),
        ("@", "'@' names no run.", "Write the folder first: RUN@best"),
    ],
)
def test_a_wrong_reference_gets_the_near_name(text: str, problem: str, remedy: str) -> None:
    with pytest.raises(UsageError) as caught:
        Reference.parse(text)
    assert (caught.value.problem, caught.value.remedy) == (problem, remedy)


def test_each_thing_has_its_place() -> None:
    run = RunFolder(Path("runs/m30k"))
    places = [run.config_file, run.task_file, run.vocabulary, run.metrics_file, run.card_file]
    places += [run.lock_file, run.traces, run.checkpoints]
    names = "config.toml task.json vocabulary metrics.jsonl README.md lock traces checkpoints"
    assert [str(place) for place in places] == [f"runs/m30k/{name}" for name in names.split()]


def test_a_run_is_opened_once_it_has_a_config(tmp_path: Path) -> None:
    run = RunFolder.create(str(tmp_path / "deep" / "m30k"))
    with pytest.raises(RunError, match=r"has no config\.toml"):
        RunFolder.open(run.path)
    run.config_file.touch()
    assert RunFolder.open(str(run.path)) == run


def test_a_new_run_is_named_before_it_is_made(tmp_path: Path) -> None:
    assert RunFolder.new(tmp_path / "r").path == tmp_path / "r"
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_not_created_twice(run: RunFolder) -> None:
    with pytest.raises(RunError) as caught:
        RunFolder.create(run.path)
    assert caught.value.problem == f"{run.path} is already a run."
    assert caught.value.remedy == f"Resume it: regard resume {run.path}. Or name another folder with --run."


def test_a_creation_that_was_killed_can_be_repeated(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "m30k")
    run.lock_file.touch()
    (run.path / ".tmp-new-config.toml-7").touch()
    assert RunFolder.create(run.path) == run


def test_a_folder_with_other_things_does_not_become_a_run(tmp_path: Path) -> None:
    for name in "abcd":
        (tmp_path / f"{name}.txt").touch()
    with pytest.raises(RunError) as caught:
        RunFolder.create(tmp_path)
    assert caught.value.problem == f"{tmp_path} contains other files: a.txt, b.txt, c.txt, …."
    assert caught.value.remedy == "A run needs a folder of its own: name another with --run."
    assert not (tmp_path / "checkpoints").exists()


def test_a_file_in_the_way_of_a_new_run(tmp_path: Path) -> None:
    (tmp_path / "m30k").touch()
    with pytest.raises(RunError) as caught:
        RunFolder.create(tmp_path / "m30k")
    assert caught.value.problem == f"The folder {tmp_path}/m30k cannot be made: Not a directory."
    assert caught.value.remedy == "Name another folder with --run."


def test_a_missing_run_names_the_near_one(tmp_path: Path) -> None:
    make_run(tmp_path / "m30k")
    make_run(tmp_path / "demo")
    with pytest.raises(RunError) as caught:
        RunFolder.open(tmp_path / "m3k")
    assert caught.value.problem == f"{tmp_path}/m3k is not a run: there is no such folder."
    assert caught.value.remedy == f"Did you mean {tmp_path}/m30k?"
    with pytest.raises(RunError) as caught:
        RunFolder.open(tmp_path / "xyz")
    assert caught.value.remedy == f"Available: {tmp_path}/demo, {tmp_path}/m30k."


def test_a_folder_that_is_no_run_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError) as caught:
        RunFolder.open(tmp_path / "empty")
    assert caught.value.problem == f"{tmp_path}/empty is not a run: it has no config.toml."
    assert caught.value.remedy == f"Train one with: regard train translate --train SOURCE TARGET --run {tmp_path}/empty"


def test_a_folder_of_runs_names_them(tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "a")
    make_run(tmp_path / "runs" / "b")
    with pytest.raises(RunError) as caught:
        RunFolder.open(tmp_path / "runs")
    assert caught.value.remedy == f"There are runs in it: {tmp_path}/runs/a, {tmp_path}/runs/b."


def test_a_file_of_a_run_points_to_its_run(run: RunFolder) -> None:
    with pytest.raises(RunError) as caught:
        RunFolder.open(run.config_file)
    assert caught.value.problem == f"{run.config_file} is not a run: it is a file, and a run is a folder."
    assert caught.value.remedy == f"Did you mean {run.path}?"


def test_the_task_comes_back(run: RunFolder) -> None:
    task = {"labels": ["schön", "hässlich"], "mean": 0.1 + 0.2}
    run.write_task(task)
    assert run.read_task() == task


def test_a_missing_or_damaged_task_file(run: RunFolder) -> None:
    remedy = f"Copy the run again as a whole, or repeat it: regard train {run.config_file} --run ANOTHER"
    with pytest.raises(RunError) as caught:
        run.read_task()
    assert (caught.value.problem, caught.value.remedy) == (f"{run.path} is incomplete: it has no task.json.", remedy)
    run.task_file.write_text('{"labels": [')
    with pytest.raises(RunError) as caught:
        run.read_task()
    assert caught.value.problem == f"{run.task_file} is damaged: Expecting value: line 1 column 13 (char 12)."
    assert caught.value.remedy == remedy
    run.task_file.write_text("[]")
    with pytest.raises(RunError) as caught:
        run.read_task()
    assert caught.value.problem == f"{run.task_file} is damaged: expected a table."


def test_runs_are_found_under_a_folder(tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "b")
    make_run(tmp_path / "runs" / "b" / "nested")
    make_run(tmp_path / "runs" / "seeds" / "1")
    make_run(tmp_path / "runs" / ".hidden")
    make_run(tmp_path / "elsewhere" / "a")
    (tmp_path / "runs" / "a").symlink_to(tmp_path / "elsewhere" / "a")
    (tmp_path / "runs" / "loop").symlink_to(tmp_path / "runs")
    found = [str(run.path.relative_to(tmp_path)) for run in find_runs(tmp_path / "runs")]
    assert found == ["runs/a", "runs/b", "runs/seeds/1"]
    assert find_runs(tmp_path / "runs" / "b") == [RunFolder(tmp_path / "runs" / "b")]
    assert find_runs(tmp_path / "nothing") == []


@pytest.mark.parametrize("left", ["metrics.jsonl", "checkpoints/step-00000004/state.json"])
def test_what_is_left_of_a_run_is_no_place_for_a_new_one(tmp_path: Path, left: str) -> None:
    (tmp_path / left).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / left).touch()
    with pytest.raises(RunError) as caught:
        RunFolder.new(tmp_path)
    assert caught.value.problem == f"{tmp_path} has the remains of a run without its config.toml."
    assert caught.value.remedy == "Restore that file, or name another folder with --run."


@pytest.mark.parametrize("name", ["checkpoints", "vocabulary", "tensorboard"])
def test_a_run_whose_folders_lie_elsewhere_is_refused(run: RunFolder, tmp_path: Path, name: str) -> None:
    folder = run.path / name
    if folder.exists():
        folder.rmdir()
    (tmp_path / "outside").mkdir()
    folder.symlink_to(tmp_path / "outside")
    with pytest.raises(RunError) as caught:
        RunFolder.open(run.path)
    assert caught.value.problem == f"{folder} is a link, and a run has its files in its own folder."
    run.config_file.unlink()
    with pytest.raises(RunError, match="is a link"):
        RunFolder.new(run.path)


def test_a_run_that_is_named_by_a_link_is_a_run(run: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(run.path)
    assert RunFolder.open(tmp_path / "link").read_config().task == "translate"


@pytest.mark.parametrize("content", ["[]", "3", "[" * 100_000, '{"files": [1]}', "9" * 5_000, "\0"])
def test_a_task_file_that_is_none(run: RunFolder, content: str) -> None:
    run.task_file.write_text(content)
    with pytest.raises(RunError, match="is damaged: "):
        run.read_task()


def test_a_task_file_that_is_a_pipe(run: RunFolder) -> None:
    os.mkfifo(run.task_file)
    with pytest.raises(RunError) as caught:
        run.read_task()
    assert caught.value.problem == f"{run.task_file} cannot be read: it is a pipe, not a file."


def test_runs_are_found_beside_folders_deeper_than_the_stack(run: RunFolder, tmp_path: Path) -> None:
    deepest = tmp_path / "runs" / "a"
    for _ in range(5):
        deepest = deepest.joinpath(*"a" * 250)
        deepest.mkdir(parents=True)
    assert find_runs(tmp_path) == [run]
    subprocess.run(["rm", "-rf", tmp_path / "runs" / "a"], check=True)  # which pytest cannot
