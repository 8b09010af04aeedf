"""`regard predict` of images: a line each, the file's name first; and `regard evaluate` of such runs."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from torch import nn

import regard
from regard.inspection import attention_overlay as overlay
from regard.inspection.attention_overlay import overlay_picture as overlay_of


def photo(image_run: Path, name: str, number: int = 0) -> str:
    return str(image_run.parent / "train" / name / f"{number:03}.png")


def test_a_line_for_each_image(command: Any, image_run: Path) -> None:
    files = [photo(image_run, "standing"), photo(image_run, "lying", 3)]
    outcome = command("predict", image_run, *files)
    assert (outcome.code, outcome.err) == (0, "")
    assert command("predict", image_run, *files, *files).lines == [*outcome.lines, *outcome.lines]
    rows = [line.split("\t") for line in outcome.lines]
    assert [(name, label) for name, label, _ in rows] == [(files[0], "standing"), (files[1], "lying")]
    assert all(0 < float(share) <= 1 for _, _, share in rows)
    names = "".join(f"{file}\n" for file in files)
    assert command("predict", image_run, stdin=names.encode()).out == outcome.out


def test_the_likeliest_classes_and_json(command: Any, image_run: Path) -> None:
    file = photo(image_run, "none")
    [line] = command("predict", image_run, file, "--top", 3).lines
    assert len(line.split("\t")) == 7
    found = json.loads(command("predict", image_run, file, "--json").out)
    assert (found["image"], found["label"]) == (file, "none")
    assert set(found["probabilities"]) == {"lying", "none", "standing"}
    assert "cut" not in found  # of texts alone


def test_a_name_keeps_to_its_line_and_column(command: Any, image_run: Path, tmp_path: Path) -> None:
    odd = tmp_path / "a\tb.png"
    odd.write_bytes(Path(photo(image_run, "none")).read_bytes())
    [line] = command("predict", image_run, odd).lines
    assert line.split("\t")[:2] == [f"{tmp_path}/a b.png", "none"]
    assert json.loads(command("predict", image_run, odd, "--json").out)["image"] == str(odd)


@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_name_is_refused(command: Any, image_run: Path, name: str) -> None:
    outcome = command("predict", image_run, photo(image_run, "none"), name)
    assert outcome.code == 2
    assert outcome.error == ["error: The name of an image is empty.", "Name the images: photo.jpg"]
    lines = command("predict", image_run, stdin=f"\n{photo(image_run, 'none')}\n\n".encode()).lines
    assert len(lines) == 1  # lines that are blank are no names


@pytest.mark.parametrize("option", ["--output", "--picture"])
def test_no_image_that_is_read_is_written_over(command: Any, caption_run: Path, tmp_path: Path, option: str) -> None:
    file = tmp_path / "a.png"
    whole = (caption_run.parent / "images" / "none-000.png").read_bytes()
    file.write_bytes(whole)
    (tmp_path / "link.png").symlink_to(file)
    for written in ("a.png", "link.png"):
        outcome = command("predict", caption_run, file, option, written)
        assert outcome.code == 2
        assert outcome.error == [
            f"error: {written} is an image that is read.",
            f"Name another file with {option}.",
        ]
        assert outcome.out == ""
    named = command("predict", caption_run, "--output", "a.png", stdin=f"{file}\n".encode())
    assert named.error[0] == "error: a.png is an image that is read."
    assert file.read_bytes() == whole


def test_a_picture_and_the_output_are_two_files(command: Any, caption_run: Path) -> None:
    file = caption_run.parent / "images" / "none-000.png"
    outcome = command("predict", caption_run, file, "--output", "x.png", "--picture", "x.png")
    assert outcome.code == 2
    assert outcome.error == ["error: --output and --picture both name x.png.", "Give them different names."]


def test_what_is_about_text_is_refused(command: Any, image_run: Path) -> None:
    for options in (["--data", "x.csv"], ["--text-b", "a"]):
        outcome = command("predict", image_run, *(["x.png"] if "--text-b" in options else []), *options)
        assert outcome.code == 2
        assert outcome.error[0] == f"error: {options[0]} does not apply to image runs."
    missing = command("predict", image_run, "nowhere.png")
    assert missing.code == 1
    assert missing.error == [
        "error: nowhere.png: the image cannot be opened (No such file or directory).",
        "Check its name and its permissions.",
    ]


def test_evaluate_shows_the_confusion_and_the_blocks(command: Any, image_run: Path, tmp_path: Path) -> None:
    data = str(image_run.parent / "train")
    outcome = command("evaluate", image_run, "--data", data, "--blocks", "--output", tmp_path / "out.tsv")
    assert outcome.code == 0
    assert any(line.startswith("accuracy") for line in outcome.lines)
    assert any("expected \\ predicted" in line for line in outcome.lines)
    assert any(line.startswith("stage.0.block.1") for line in outcome.lines)
    whole = next(line.split()[1] for line in outcome.lines if line.startswith("accuracy"))
    assert any(line.split() == ["nothing", whole] for line in outcome.lines)
    assert "Blocks not ablated, because they change the shape: stage.1.block.0." in outcome.out + outcome.err
    rows = [line.split("\t") for line in (tmp_path / "out.tsv").read_text().splitlines()]
    assert len(rows) == 60
    assert all(Path(place).parent.name == gold for place, gold, _, _ in rows)
    found = json.loads(command("evaluate", image_run, "--data", data, "--blocks", "--json").out)
    assert found["images"] == 60
    assert {one["name"] for one in found["blocks"]} == {"stage.0.block.0", "stage.0.block.1"}


def test_evaluate_refuses_what_is_not_about_images(command: Any, image_run: Path, classify_run: Path) -> None:
    data = str(image_run.parent / "train")
    named = command("evaluate", image_run, "--data", data, "--text", "x")
    assert named.error[0] == "error: --text does not apply to image runs."
    source = command("evaluate", image_run, "--data", data, "--from", "x")
    assert source.error == ["error: --from does not apply to image runs.", "Leave it out."]
    blocks = command("evaluate", classify_run, "--data", data, "--blocks")
    assert blocks.error[0] == "error: --blocks does not apply to classify runs."


def test_no_image_of_the_test_set_is_written_over(command: Any, image_run: Path, tmp_path: Path) -> None:
    data = tmp_path / "test"
    shutil.copytree(image_run.parent / "train", data)
    file = data / "none" / "000.png"
    whole = file.read_bytes()
    outcome = command("evaluate", image_run, "--data", "test", "--output", "test/none/000.png")
    assert outcome.code == 2
    assert outcome.error == ["error: test/none/000.png is inside the test set.", "Name another file with --output."]
    assert file.read_bytes() == whole


def test_blocks_of_a_network_without_them(command: Any, image_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = regard.load(image_run)
    loaded._network = nn.Linear(1, 1)
    monkeypatch.setattr("regard.cli.evaluate.load_runs", lambda runs, **settings: [loaded])
    outcome = command("evaluate", image_run, "--data", image_run.parent / "train", "--blocks")
    assert outcome.code == 2
    assert outcome.error[0] == "error: Block ablation needs a ResNet, and the model of this run is a Linear."


def test_the_commands_that_come_next_name_a_photo(command: Any, image_run: Path, tmp_path: Path) -> None:
    settings = ["--set", "model.n_blocks=[1]", "--set", "model.width=4", "--steps", "1"]
    data = str(image_run.parent / "train")
    outcome = command("train", "image", "--train", data, "--model", "resnet-20", "--run", tmp_path / "r", *settings)
    assert outcome.code == 0, outcome.err
    assert f"regard predict {tmp_path / 'r'} photo.jpg" in outcome.out + outcome.err


def test_a_caption_for_each_image_and_a_picture_of_one(command: Any, caption_run: Path, tmp_path: Path) -> None:
    files = [str(caption_run.parent / "images" / f"{name}-000.png") for name in ("lying", "standing")]
    outcome = command("predict", caption_run, *files)
    assert outcome.code == 0
    rows = [line.split("\t") for line in outcome.lines]
    assert [name for name, _ in rows] == files
    assert [text.split()[-1] for _, text in rows] == ["lie", "stand"]
    found = json.loads(command("predict", caption_run, files[0], "--json").out)
    assert (found["image"], found["caption"]) == tuple(rows[0])
    drawn = command("predict", caption_run, files[0], "--picture", tmp_path / "x.png")
    assert drawn.out == "\t".join(rows[0]) + "\n"
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    two = command("predict", caption_run, *files, "--picture", tmp_path / "y.png")
    assert two.lines == ["\t".join(row) for row in rows]
    assert (tmp_path / "y.png").read_bytes().startswith(b"\x89PNG")


def test_captions_are_searched_for_as_is_asked(command: Any, caption_run: Path, classify_run: Path) -> None:
    file = str(caption_run.parent / "images" / "lying-000.png")
    rows = [line.split("\t") for line in command("predict", caption_run, file, "--beam", 3, "--n-best", 3).lines]
    assert [name for name, *_ in rows] == [file] * 3
    scores = [float(score) for _, score, _ in rows]
    assert scores == sorted(scores, reverse=True)
    found = json.loads(command("predict", caption_run, file, "--max-length", 2, "--json").out)
    assert [len(one["tokens"]) for one in found["candidates"]] == [2]
    drawn = [
        command("predict", caption_run, file, "--sample", "--temperature", 5.0, "--seed", seed).out
        for seed in (1, 1, 2, 3)
    ]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) > 1
    refused = command("predict", classify_run, "a text", "--beam", 2)
    assert refused.error == ["error: --beam does not apply to classify runs.", "Leave it out."]


def test_a_picture_of_images_that_are_named(command: Any, image_run: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jpg").write_text("no image")
    good, bad, drawn = photo(image_run, "none"), str(tmp_path / "bad.jpg"), tmp_path / "x.png"
    assert command("predict", image_run, good, bad, "--picture", drawn).code == 1
    assert drawn.read_bytes().startswith(b"\x89PNG")  # of the one that could be read
    drawn.unlink()
    assert command("predict", image_run, bad, bad, "--picture", drawn).code == 1
    assert not drawn.exists()
    many = command("predict", image_run, *[good] * 61, "--picture", drawn)
    assert many.error == ["error: --picture shows 1 to 60 images, not 61.", "Name that many images."]


def test_a_picture_of_one_image_shows_attention_where_there_is_any(
    command: Any, image_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"model.preset": "vit-tiny", "model.n_layers": 2, "model.n_heads": 2, "model.d_model": 8}
    others = {"model.d_ff": 8, "training.steps": 1, "training.batch_images": 4, "runtime.threads": 1}
    data = {"data.valid_size": 12, "training.warmup": 0}
    regard.train(
        "image", train=str(image_run.parent / "train"), run=tmp_path / "vit", settings={**settings, **others, **data}
    )
    titles: list[list[str]] = []
    monkeypatch.setattr(
        overlay, "overlay_picture", lambda *args, **more: titles.append(list(args[1])) or overlay_of(*args, **more)
    )
    drawn = command("predict", tmp_path / "vit", photo(image_run, "none"), "--picture", tmp_path / "x.png")
    assert (drawn.code, drawn.err) == (0, f"drawn: {tmp_path}/x.png\n")
    assert titles == [["layer 0", "layer 1"]]
    assert command("predict", image_run, photo(image_run, "none"), "--picture", tmp_path / "y.png").code == 0
    assert len(titles) == 1, "a residual network has no attention"


def test_evaluate_scores_captions(command: Any, caption_run: Path, tmp_path: Path) -> None:
    table = str(caption_run.parent / "images" / "captions.tsv")
    outcome = command("evaluate", caption_run, "--data", table, "--beam", 2, "--output", tmp_path / "out.txt")
    assert outcome.code == 0, outcome.err
    assert any(line.startswith("BLEU") and "nrefs:2" in line for line in outcome.lines)
    rows = [line.split("\t") for line in (tmp_path / "out.txt").read_text().splitlines()]
    assert len(rows) == 60
    assert all(Path(place).exists() and text for place, text in rows)


def test_one_bad_image_of_several_is_told_and_passed_over(command: Any, image_run: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jpg").write_text("no image")
    files = [photo(image_run, "lying"), str(tmp_path / "bad.jpg"), photo(image_run, "none")]
    outcome = command("predict", image_run, *files, "--output", tmp_path / "out.tsv")
    assert outcome.code == 1
    assert f"{files[1]}: no image of a known kind" in outcome.err
    assert outcome.error == ["error: 1 image could not be read; see the notes above.", "Fix it, or leave it out."]
    written = [line.split("\t")[0] for line in (tmp_path / "out.tsv").read_text().splitlines()]
    assert written == [files[0], files[2]]


def test_the_picture_shows_the_best_of_the_samples_that_are_printed(command: Any, caption_run: Path) -> None:
    image = next((caption_run.parent / "images").glob("lying-*.png"))
    sampling = ("--sample", "--temperature", 3, "--n-best", 3)
    outcome = command("predict", caption_run, image, *sampling, "--picture", "a.svg")
    scores, captions = zip(*(line.split("\t")[1:] for line in outcome.lines), strict=True)
    assert list(map(float, scores)) == sorted(map(float, scores), reverse=True)
    assert len(set(captions)) == 3
    drawn = Path("a.svg").read_text()
    assert f"<!-- {captions[0]} -->" in drawn
    assert not any(f"<!-- {caption} -->" in drawn for caption in captions[1:])
