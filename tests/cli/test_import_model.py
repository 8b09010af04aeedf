"""`regard import`: what it says, and how it refuses."""

import json
from pathlib import Path
from typing import Any

from tests.api.test_import_model import gguf, gpt2


def test_a_folder_becomes_a_run(command: Any, tmp_path: Path) -> None:
    gpt2(tmp_path / "theirs")
    run = tmp_path / "run"
    outcome = command("import", tmp_path / "theirs", "--run", run)
    assert outcome.code == 0
    assert outcome.lines[0].split() == ["run", str(run)]
    assert outcome.lines[1].split() == ["task", "language"]
    assert f"Use it: regard generate {run}" in outcome.err
    assert f"Fine-tune it: regard train language --init {run} --train FILE…" in outcome.err
    shown = command("show", run)
    assert f"imported  GPT2LMHeadModel of {tmp_path / 'theirs'}" in shown.lines
    assert command("runs", tmp_path).lines[1].split()[3] == "imported"
    assert command("generate", run, "The dog", "--max-length", 3).code == 0
    again = command("import", tmp_path / "theirs", "--run", run)
    assert again.code == 1
    assert "is already a run" in again.err


def test_a_gguf_file_becomes_a_run(command: Any, tmp_path: Path) -> None:
    _, draft = gguf(tmp_path / "theirs", "llama2")
    path, run = draft.write(tmp_path / "model.gguf"), tmp_path / "run"
    outcome = command("import", path, "--run", run)
    assert outcome.code == 0
    assert outcome.lines[1].split() == ["task", "language"]
    assert f"imported  LlamaForCausalLM of {path}" in command("show", run).lines
    assert command("generate", run, "The dog", "--max-length", 3).code == 0
    path.write_bytes(path.read_bytes()[:5000])
    outcome = command("import", path, "--run", tmp_path / "other")
    assert outcome.code == 1
    assert outcome.err == (
        f"error: {path} is no GGUF file, or a damaged one: its header does not end within 5,000 bytes.\n"
        "Download it again.\n"
    )


def test_facts_as_json(command: Any, tmp_path: Path) -> None:
    gpt2(tmp_path / "theirs")
    outcome = command("import", tmp_path / "theirs", "--run", tmp_path / "run", "--json")
    found = json.loads(outcome.out)
    assert (found["task"], found["notes"]) == ("language", [])
    assert json.loads(command("show", tmp_path / "run", "--json").out)["state"] == "imported"


def test_what_cannot_be_imported(command: Any, tmp_path: Path) -> None:
    assert command("import", tmp_path).err == (
        "error: An imported model needs a folder of its own.\nName it with --run RUN.\n"
    )
    outcome = command("import", tmp_path / "nothing", "--run", tmp_path / "run")
    assert outcome.code == 1
    assert "and regard downloads nothing." in outcome.err
    assert not (tmp_path / "run").exists()
