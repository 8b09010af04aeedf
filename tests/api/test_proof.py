"""What a quantised engine loses on a test set: measured, shown, and refused where it is too much."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from regard.api.proof import Proof, prove
from regard.cli.main import main
from regard.errors import RegardError, UsageError


@pytest.fixture(scope="module")
def run(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(trained, tmp_path_factory.mktemp("proof") / "run"))


@pytest.fixture(scope="module")
def proof(run: Path, corpus: tuple[str, str]) -> Proof:
    return prove(run, corpus, compute_type="int8")


def test_both_engines_are_scored_and_paired(proof: Proof, corpus: tuple[str, str]) -> None:
    n_lines = len(Path(corpus[0]).read_text().splitlines())
    assert 0 < proof.n_identical <= proof.n_sentences == n_lines
    difference = proof.differences["bleu"]
    assert difference.delta == pytest.approx(proof.quantised.scores["bleu"] - proof.full.scores["bleu"])
    assert difference.delta_low is not None and difference.delta_high is not None
    assert difference.delta_low <= difference.delta <= difference.delta_high
    assert proof.most_lost == -difference.delta_low
    assert proof.quantised.size < proof.full.size
    headings, rows = proof.table().headings, proof.table().rows
    assert headings == ("engine", "BLEU", "chrF", "sentences/s", "size")
    assert [row[0] for row in rows] == ["ctranslate2, float32", "ctranslate2, int8", "difference"]
    assert json.loads(json.dumps(proof.to_json()))["identical"] == proof.n_identical


def test_too_large_a_loss_is_refused(proof: Proof) -> None:
    worse = replace(proof.differences["bleu"], delta_low=-0.62)
    lossy = replace(proof, differences={**proof.differences, "bleu": worse})
    lossy.refuse_loss(0.7)
    with pytest.raises(RegardError) as caught:
        lossy.refuse_loss(0.5)
    assert caught.value.problem == "ctranslate2, int8 may lose up to 0.62 BLEU (95 %), and 0.5 are tolerated."


def test_full_precision_needs_no_proof(run: Path, corpus: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match="float32 is what a proof compares with"):
        prove(run, corpus, compute_type="float32")


def test_an_export_is_proven_first(
    run: Path, corpus: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["export", str(run), str(tmp_path / "out"), "--to", "ctranslate2", "--int8", "--prove", *corpus]
    assert main([*command, "--tolerance", "-100"]) == 1
    shown = capsys.readouterr()
    assert "are tolerated." in shown.err
    assert "difference" in shown.out
    assert not list(tmp_path.iterdir())
    assert main([*command, "--tolerance", "100"]) == 0
    assert "difference" in capsys.readouterr().out
    assert (tmp_path / "out" / "model.bin").exists()
    assert main(command) == 2
    assert capsys.readouterr() == ("", f"error: {tmp_path / 'out'} is already there.\nGive a new name.\n")  # at once
    assert main(["export", str(run), str(tmp_path / "other"), "--to", "ctranslate2", "--tolerance", "1"]) == 2
    assert "--tolerance is for --prove." in capsys.readouterr().err


def test_what_cannot_be_written_is_not_proven(
    run: Path, corpus: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Argos' weights are int8 where nobody says otherwise, so that there is something to prove."""
    command = ["export", str(run), str(tmp_path / "out"), "--to", "argos", "--prove", *corpus]
    assert main(command) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error: A package for Argos Translate names its languages")
    assert not list(tmp_path.iterdir())


def test_a_shortlist_is_proven_before_it_is_exported(
    run: Path, corpus: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["export", str(run), str(tmp_path / "out"), "--to", "ctranslate2", "--shortlist", "--prove", *corpus]
    assert main([*command, "--tolerance", "-100"]) == 1
    assert "float32, shortlist may lose up to " in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    assert main([*command, "--tolerance", "100"]) == 0
    assert "ctranslate2, float32, shortlist" in capsys.readouterr().out
    assert (tmp_path / "out" / "vmap.txt").stat().st_size
    assert "use_vmap=True" in (tmp_path / "out" / "README.md").read_text()
