"""The guides are true: their Python runs and has types, and their commands run, in order, on tiny data."""

import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from tests.pages import ROOT, arguments, code_blocks, shell_lines

from regard.cli.main import main
from regard.web.server import PageServer
from regard.web.session import Session

GUIDES = sorted(path.name for path in (ROOT / "docs" / "guides").glob("*.md"))
# What makes a run of a guide so small that it takes a second.
SMALL = {
    "translate": "model.n_encoder_layers=1 model.n_decoder_layers=1 model.d_model=16 model.d_ff=32 model.n_heads=2",
    "denoise": "model.n_encoder_layers=1 model.n_decoder_layers=1 model.d_model=16 model.d_ff=32 model.n_heads=2",
    "mask": "model.n_layers=1 model.d_model=16 model.d_ff=32 model.n_heads=2",
    "classify": "model.n_layers=1 model.d_model=16 model.d_ff=32 model.n_heads=2",
    "tag": "model.n_layers=1 model.d_model=16 model.d_ff=32 model.n_heads=2",
    "language": "model.n_layers=1 model.d_model=16 model.n_heads=2",
}
RECURRENT = "model.n_layers=1 model.d_model=8 model.d_state=8"  # in the place of these, for --model birnn
GOOD, BAD = ("lovely", "great", "fine"), ("dull", "poor", "sad")


@pytest.fixture
def folder(tmp_path: Path, corpus: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all files that the guides speak of."""
    for language, file in zip(("en", "de"), corpus, strict=True):
        lines = Path(file).read_text().splitlines(keepends=True)
        for name, own in (("train", lines[:70]), ("val", lines[70:80]), ("test", lines[80:])):
            (tmp_path / f"{name}.{language}").write_text("".join(own))
    words = [(good, bad, n) for n in range(20) for good in GOOD for bad in BAD]
    rows = [f"A {good} film {n}.,good\nA {bad} film {n}.,bad\n" for good, bad, n in words]
    for name, own in (("reviews", rows[20:]), ("test", rows[:20])):
        (tmp_path / f"{name}.csv").write_text("text,label\n" + "".join(own))
    (tmp_path / "text.txt").write_text(
        "".join(f"The {good} dog barks. A {bad} cat runs {n}.\n" for good, bad, n in words)
    )
    tagged = "Anna\tB-PER\nsees\tO\nRome\tB-LOC\n\nBen\tB-PER\nruns\tO\n\n"
    for name in ("train", "dev"):
        (tmp_path / f"{name}.conll").write_text(tagged * 30)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_python(program: str, folder: Path) -> str:
    """What a program prints that runs in a process of its own, where nothing else has been computed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def made_small(tokens: list[str]) -> list[str]:
    """A command with few and small steps, if it trains."""
    steps = {"train": "4", "resume": "6"}.get(tokens[0])
    if steps is None:
        return tokens
    if "--steps" in tokens:
        place = tokens.index("--steps") + 1
        tokens = [*tokens[:place], steps, *tokens[place + 1 :]]
    if tokens[0] == "resume":
        return tokens
    settings = ["runtime.threads=1", "training.save_every_steps=2"]
    settings += [] if "--init" in tokens else (RECURRENT if "birnn" in tokens else SMALL[tokens[1]]).split()
    end = [] if "--steps" in tokens else ["--steps", steps]
    return [*tokens, *end, *(part for setting in settings for part in ("--set", setting))]


def run_commands(page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Run the commands of a page, one after the other."""
    for line in shell_lines(page):
        tokens, read = arguments(line)
        with Path(read or os.devnull).open(encoding="utf-8") as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            assert main(made_small(tokens)) == 0, (line, capsys.readouterr().err)


def test_the_commands_of_translate(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_commands("docs/guides/translate.md", monkeypatch, capsys)
    output = run_python("\n".join(code_blocks("docs/guides/translate.md", "python")), folder)
    assert output.count("\n") == 5


def test_the_commands_of_fine_tune(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_commands("docs/guides/fine-tune.md", monkeypatch, capsys)


def test_the_python_of_fine_tune(folder: Path) -> None:
    program = "\n".join(code_blocks("docs/guides/fine-tune.md", "python"))
    program = program.replace("steps=40", "steps=4, batch_tokens=256").replace("epochs=3", "steps=4")
    output = run_python(program, folder)
    assert "accuracy" in output
    assert output.endswith("(128,)\n")


def test_the_commands_of_exchange(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_commands("docs/guides/exchange.md", monkeypatch, capsys)
    assert sorted(path.name for path in (folder / "out").iterdir()) == [
        *("ctranslate2", "en-de.argosmodel", "gpt2", "onnx", "plain", "small")
    ]


def test_the_commands_of_look_inside(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    served = []

    def serve(session: Session, *, port: int, on_ready: Callable[[str], None]) -> None:
        """Serve until the page was seen, and not until Ctrl-C."""
        server = PageServer(session, port=port)
        thread = Thread(target=server.run)
        thread.start()
        try:
            with urllib.request.urlopen(server.url) as answer:
                served.append((session.names, answer.read()[:15]))
        finally:
            server.stop()
            thread.join()

    monkeypatch.setattr("regard.web.server.serve", serve)
    run_commands("docs/guides/look-inside.md", monkeypatch, capsys)
    assert served == [([name], b"<!doctype html>") for name in ("runs/mine", "runs/watched")]
    for picture in ("heads.png", "head.png", "part.png", "probes.png"):
        assert (folder / picture).stat().st_size > 1_000
    output = run_python("\n".join(code_blocks("docs/guides/look-inside.md", "python")), folder)
    assert output.startswith("('head', 'target', 'source')")
    assert "\nTrue decoder.0.feed_forward\n" in output, "the trace came back, with its lens"


def test_the_vectors(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    make, use = code_blocks("docs/guides/vectors.md", "python")
    make = make.replace("400", "40").replace("100", "10")
    run_python(make, folder)
    run_commands("docs/guides/vectors.md", monkeypatch, capsys)
    assert Path("tags.tsv").read_text().startswith("0\t0\t")
    assert run_python(make + use, folder).startswith("('")


def test_a_network_of_ones_own(folder: Path) -> None:
    program = "\n".join(code_blocks("docs/guides/own-network.md", "python"))
    program = program.replace("\n    steps=300,", "\n    steps=30,").replace(
        "steps=320", "steps=32"
    )  # of the translator
    output = run_python(program, folder)
    assert output.startswith("good\n")
    assert "BLEU" in output


def test_the_guides_have_types(tmp_path: Path) -> None:
    """mypy accepts the obvious programs. Calling an nn.Module gives Any, which strict mypy would not let be returned."""
    files = []
    for guide in GUIDES:
        files.append(tmp_path / f"{Path(guide).stem.replace('-', '_')}.py")
        blocks = code_blocks(f"docs/guides/{guide}", "python")
        files[-1].write_text("\n".join(['# mypy: disable-error-code="no-any-return"', *blocks]))
    command = [sys.executable, "-m", "mypy", *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "MYPYPATH": "src"})
    assert done.returncode == 0, done.stdout


def test_the_tables_of_many_devices_are_what_the_command_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = "docs/guides/scale-plan.md"
    monkeypatch.setattr("regard.training.step_timing.BATCH_SECONDS", 0.05)
    monkeypatch.setattr("regard.training.devices.PEAK_SECONDS", 0.0)
    [tables] = code_blocks(page, "text")
    for line in shell_lines(page):
        assert main(arguments(line)[0]) == 0
        printed = capsys.readouterr().out
        if "--up-to" in line:
            assert printed.endswith(f"\n\n{tables}")
