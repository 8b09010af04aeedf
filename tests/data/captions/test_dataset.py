"""Images and captions for training and validation: every image once with all its captions, on one side, decoded once."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from regard.config import DataConfig, TokenizerConfig
from regard.data.captions.dataset import CaptionDataset, prepare_captions, read_captions
from regard.data.captions.storage import CaptionSet
from regard.data.formats import image_folder
from regard.data.images.decoding import ImageShape
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import learn
from regard.errors import DataError, UsageError

WORDS = ["the", "a", "dog", "cat", "man", "house", "tree", "sees", "finds", "runs", "red", "big", "old", "and", "under"]
Rows = Sequence[tuple[str, ...]]


def quiet(what: str, done: int) -> None:
    pass


def save(path: Path, *, seed: int, size: tuple[int, int] = (4, 4), mode: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).convert(mode).save(path, format="PNG")


def sentence(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(2, 9))).capitalize() + "."


def captioned(folder: Path, count: int, *, each: int = 2, seed: int = 0) -> Rows:
    """Write so many images, no two alike, and return rows of an image and a caption, those of an image apart."""
    chance = random.Random(seed)
    for number in range(count):
        save(folder / f"images/{seed + number:04}.png", seed=seed + number)
    return [(f"{seed + number:04}.png", sentence(chance)) for _ in range(each) for number in range(count)]


def table(path: Path, rows: Rows, header: str = "image\tcaption") -> str:
    lines = [header.split("\t"), *rows] if header else rows
    path.write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def prepare(*train: str, given: Tokenizer | None = None, kind: str = "characters", **settings: Any) -> CaptionDataset:
    config = TokenizerConfig(kind=kind, vocab_size=400)
    return prepare_captions(DataConfig(train=train, **settings), config, given=given, progress=quiet)


def fault(*train: str, **settings: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        prepare(*train, **settings)
    return caught.value


def written(captions: CaptionSet) -> dict[str, list[str]]:
    """The captions of each image by its name."""
    places = captions.image_set.places(np.arange(len(captions.image_set)))
    return {Path(place).name: captions.captions_of(number) for number, place in enumerate(places)}


def places_of(captions: CaptionSet) -> list[str]:
    """Where each caption stands, as FILE:LINE."""
    files, lines = (captions.corpus.numbers[name].tolist() for name in ("file", "line"))
    return [f"{captions.files[file]}:{line}" for file, line in zip(files, lines, strict=True)]


def by_image(rows: Rows) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for image, caption in rows:
        found.setdefault(image, []).append(caption)
    return found


def noted(data: CaptionDataset, label: str) -> list[str]:
    return [text for what, text in data.notes if what == label]


# -- what stands in the two sets ----------------------------------------------------------------------------------------


def test_every_image_is_stored_once_with_all_its_captions(tmp_path: Path) -> None:
    rows = captioned(tmp_path, 40, each=3)
    file = table(tmp_path / "t.tsv", rows)
    data = prepare(file)
    assert (len(data.train.image_set), len(data.valid.image_set), data.n_held_out) == (36, 4, 4)
    assert (len(data.train), len(data.valid)) == (108, 12)
    assert {**written(data.train), **written(data.valid)} == by_image(rows)
    assert len(data.train.image_set.corpus) == 40
    assert data.train.image_set.shape == ImageShape(4, 3)
    assert (data.train_files, data.valid_files, list(data.hashes)) == ((file,), (file,), [file])
    assert data.notes == (("columns", "image 'image', caption 'caption'"),)


@pytest.mark.parametrize("side", ["train", "valid"])
def test_a_caption_belongs_to_its_image(tmp_path: Path, side: str) -> None:
    rows = captioned(tmp_path, 30)
    data = prepare(table(tmp_path / "t.tsv", rows))
    captions: CaptionSet = getattr(data, side)
    assert captions.image_of.shape == (len(captions),)
    assert set(captions.image_of.tolist()) == set(range(len(captions.image_set)))
    for index, place in enumerate(places_of(captions)):
        file, _, line = place.rpartition(":")
        image, caption = rows[int(line) - 2]
        assert (file, data.tokenizer.decode(captions.ids[index].tolist())) == (f"{tmp_path}/t.tsv", caption)
        number = captions.image_of[index]
        assert caption in captions.captions_of(int(number))
        assert captions.image_set.places([number]) == [f"{tmp_path}/images/{image}"]
        assert (captions.image_set.images([number])[0] == np.asarray(Image.open(tmp_path / "images" / image))).all()


def test_images_and_captions_are_views_of_maps_until_they_are_asked_for(tmp_path: Path) -> None:
    data = prepare(table(tmp_path / "t.tsv", captioned(tmp_path, 30)))
    for base in (data.train.image_set.corpus.ragged["image"].values, data.train.ids.values):
        while base.base is not None and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap)
    batch = data.train.image_set.images([3, 0, 3])
    assert (batch.shape, batch.dtype) == ((3, 4, 4, 3), np.uint8)
    assert (batch[0] == batch[2]).all()


def test_the_mean_and_the_deviation_count_each_training_image_once(tmp_path: Path) -> None:
    rows = captioned(tmp_path, 20)
    data = prepare(table(tmp_path / "t.tsv", [*rows, *([rows[0]] * 50)]))
    pixels = data.train.image_set.images(np.arange(len(data.train.image_set))) / 255
    mean, deviation = data.train.image_set.statistics()
    np.testing.assert_allclose(mean, pixels.mean((0, 1, 2)), rtol=1e-12)
    np.testing.assert_allclose(deviation, pixels.std((0, 1, 2)), rtol=1e-12)


def test_spellings_of_a_path_are_one_image(tmp_path: Path) -> None:
    rows = captioned(tmp_path, 20, each=1)
    again = [(f"images/{name}", "again") for name, _ in rows] + [(f"./x/../{name}", "once more") for name, _ in rows]
    data = prepare(table(tmp_path / "t.tsv", [*rows, *again]))
    assert len(data.train.image_set.corpus) == 20
    assert all(len(captions) == 3 for captions in written(data.train).values())


def test_tables_may_share_images(tmp_path: Path) -> None:
    rows = captioned(tmp_path, 20)
    one, other = table(tmp_path / "a.tsv", rows[:25]), table(tmp_path / "b.tsv", rows[15:])
    data = prepare(one, other)
    assert len(data.train.image_set.corpus) == 20
    assert set(data.hashes) == {one, other}
    places = places_of(data.train)
    assert {place.rpartition(":")[0] for place in places} == {one, other}
    assert data.hashes == prepare(one, other).hashes


def test_tables_of_several_folders(tmp_path: Path) -> None:
    rows = [captioned(tmp_path / name, 20, seed=seed) for name, seed in (("a", 0), ("b", 100))]
    data = prepare(*(table(tmp_path / name / "t.tsv", own) for name, own in zip("ab", rows, strict=True)))
    assert {**written(data.train), **written(data.valid)} == by_image([*rows[0], *rows[1]])


# -- holding out --------------------------------------------------------------------------------------------------------


def test_equal_images_fall_on_one_side(tmp_path: Path) -> None:
    rows = list(captioned(tmp_path, 40))
    for number in range(40):
        content = (tmp_path / f"images/{number:04}.png").read_bytes()
        (tmp_path / f"images/copy{number:04}.png").write_bytes(content)
        rows.append((f"copy{number:04}.png", "The same."))
    data = prepare(table(tmp_path / "t.tsv", rows))
    train, valid = ({name.removeprefix("copy") for name in written(side)} for side in (data.train, data.valid))
    assert not train & valid
    assert len(data.valid.image_set) == 8
    assert noted(data, "note") == []


def test_how_many_are_held_out_and_that_order_does_not_matter(tmp_path: Path) -> None:
    rows = captioned(tmp_path, 40)
    one = prepare(table(tmp_path / "a.tsv", rows), valid_size=7)
    other = prepare(table(tmp_path / "b.tsv", rows[::-1]), valid_size=7)
    assert (len(one.valid.image_set), one.n_held_out, len(one.valid)) == (7, 7, 14)
    assert set(written(one.valid)) == set(written(other.valid))
    error = fault(table(tmp_path / "a.tsv", rows), valid_size=40)
    assert error.problem == "data.valid_size asks for 40 images, and there are 40."


def test_the_vocabulary_is_learnt_from_training_captions_alone(tmp_path: Path) -> None:
    rows = captioned(tmp_path, 30)
    file = table(tmp_path / "t.tsv", rows)
    held_out = set(written(prepare(file).valid))
    marked = [(image, "Ω." if image in held_out else caption) for image, caption in rows]
    data = prepare(table(tmp_path / "t.tsv", marked))
    assert "Ω" not in data.tokenizer.vocabulary
    assert set(written(data.valid)) == held_out


def test_a_vocabulary_that_is_given(tmp_path: Path) -> None:
    given = learn(["Words of another corpus."], kind="bytes", vocab_size=400)
    data = prepare(table(tmp_path / "t.tsv", captioned(tmp_path, 20)), given=given)
    assert data.tokenizer is given
    assert given.decode(data.train.ids[0].tolist()) in data.train.captions_of(int(data.train.image_of[0]))


# -- validation -----------------------------------------------------------------------------------------------------------


def divided(folder: Path, counts: Mapping[str, int]) -> Rows:
    rows: list[tuple[str, ...]] = []
    for number, (part, count) in enumerate(counts.items()):
        rows += [(part, *row) for row in captioned(folder, count, seed=1000 * number)]
    return rows


@pytest.mark.parametrize("header", ["split\timage\tcaption", ""])
def test_splits_of_a_table(tmp_path: Path, header: str) -> None:
    rows = divided(tmp_path, {"train": 30, "val": 5, "test": 4})
    file = table(tmp_path / "t.tsv", rows, header)
    data = prepare(file)
    assert (len(data.train.image_set), len(data.valid.image_set), data.n_held_out) == (30, 5, 0)
    assert data.valid_files == (file,)
    assert set(written(data.valid)) == {f"{number:04}.png" for number in range(1000, 1005)}
    names = ("split", "image", "caption") if header else ("1", "2", "3")
    assert data.notes == (("columns", f"image '{names[1]}', caption '{names[2]}', split '{names[0]}'"),)
    test = read_captions([file], DataConfig(), data.tokenizer, shape=data.train.image_set.shape, progress=quiet)
    assert (len(test.image_set), len(test), test.captions_of(0)) == (4, 8, by_image([r[1:] for r in rows])["2000.png"])
    everything = read_captions(
        [file], DataConfig(), data.tokenizer, shape=data.train.image_set.shape, split="", progress=quiet
    )
    assert len(everything.image_set) == 39


def test_a_split_that_is_not_there(tmp_path: Path) -> None:
    file = table(tmp_path / "t.tsv", divided(tmp_path, {"train": 30, "test": 4}), "split\timage\tcaption")
    data = prepare(file)
    assert (len(data.train.image_set), data.n_held_out) == (27, 3)
    assert noted(data, "held out") == ["no good row of 'split' is of validation"]
    with pytest.raises(DataError) as caught:
        read_captions(
            [file], DataConfig(), data.tokenizer, shape=data.train.image_set.shape, split="valid", progress=quiet
        )
    assert caught.value.problem == (
        f"{file}: in no good row does the column 'split' say 'valid', 'val', 'dev', 'validation' or 'development'."
    )
    with pytest.raises(UsageError, match="The split must be train, valid or test, not 'tset'"):
        read_captions(
            [file], DataConfig(), data.tokenizer, shape=data.train.image_set.shape, split="tset", progress=quiet
        )
    error = fault(table(tmp_path / "t.tsv", divided(tmp_path, {"test": 4}), "split\timage\tcaption"))
    assert error.problem == f"{tmp_path}/t.tsv: in no good row does the column 'split' say 'train' or 'training'."


def test_given_validation_tables(tmp_path: Path) -> None:
    train, other = captioned(tmp_path / "a", 20), captioned(tmp_path / "b", 5, seed=70)
    train_file, valid_file = table(tmp_path / "a/t.tsv", train), table(tmp_path / "b/v.tsv", other)
    data = prepare(train_file, valid=(valid_file,))
    assert (len(data.train.image_set), len(data.valid.image_set), data.n_held_out) == (20, 5, 0)
    assert (data.train_files, data.valid_files) == ((train_file,), (valid_file,))
    assert written(data.valid) == by_image(other)
    assert set(data.hashes) == {train_file, valid_file}
    assert noted(data, "note") == []


def test_validation_images_that_stand_in_training_too(tmp_path: Path) -> None:
    rows = captioned(tmp_path, 20)
    (tmp_path / "images/copy.png").write_bytes((tmp_path / "images/0003.png").read_bytes())
    valid = table(tmp_path / "v.tsv", [rows[0], ("copy.png", "A copy.")])
    data = prepare(table(tmp_path / "t.tsv", rows), valid=(valid,))
    assert noted(data, "note") == ["2 of 2 validation images stand in training too"]


def test_images_without_captions_are_told(tmp_path: Path) -> None:
    rows = divided(tmp_path, {"train": 20, "val": 5, "test": 4})
    file = table(tmp_path / "t.tsv", rows, "split\timage\tcaption")
    assert noted(prepare(file), "note") == []
    save(tmp_path / "images/lonely.png", seed=7)
    lonely = f"{tmp_path}/images/lonely.png"
    assert noted(prepare(file), "note") == [f"1 image beside these is named by no row, such as {lonely}"]
    save(tmp_path / "images/alone.png", seed=8)
    alone = f"{tmp_path}/images/alone.png"
    assert noted(prepare(file), "note") == [f"2 images beside these are named by no row, such as {alone}"]
    assert prepare(file).hashes == prepare(file).hashes


# -- sizes --------------------------------------------------------------------------------------------------------------


def test_the_size_and_the_colours_that_suit(tmp_path: Path) -> None:
    rows = list(captioned(tmp_path, 30))
    save(tmp_path / "images/wide.png", seed=99, size=(9, 6))
    data = prepare(table(tmp_path / "t.tsv", [*rows, ("wide.png", "A wide one.")]))
    assert data.train.image_set.shape == ImageShape(4, 3)
    assert noted(data, "size") == [
        "1 of 31 images have another size: the shorter side is scaled to 4 pixels, and the centre kept"
    ]
    assert prepare(f"{tmp_path}/t.tsv", image_size=6, channels=1).train.image_set.images([0]).shape == (1, 6, 6, 1)
    assert prepare(f"{tmp_path}/t.tsv", image_size=8).train.image_set.shape == ImageShape(8, 3)
    for number in range(30):
        save(tmp_path / f"images/{number:04}.png", seed=number, mode="L")
    assert prepare(table(tmp_path / "grey.tsv", rows)).train.image_set.shape == ImageShape(4, 1)


# -- bad input ----------------------------------------------------------------------------------------------------------


def test_a_bad_image_takes_its_captions_with_it(tmp_path: Path) -> None:
    rows = captioned(tmp_path, 120)
    whole = (tmp_path / "images/0017.png").read_bytes()
    (tmp_path / "images/0017.png").write_bytes(whole[:50])
    data = prepare(table(tmp_path / "t.tsv", rows))
    assert {**written(data.train), **written(data.valid)} == {
        k: v for k, v in by_image(rows).items() if k != "0017.png"
    }
    [left_out] = noted(data, "left out")
    place = f"{tmp_path}/t.tsv:19 '{tmp_path}/images/0017.png'"
    assert left_out in {f"2 bad captions, bad image ({why}): {place}" for why in ("truncated", "damaged", "no image")}
    assert data.train.left_out() == [left_out]


def test_too_many_bad_images(tmp_path: Path) -> None:
    rows = captioned(tmp_path, 40)
    for number in (3, 4):
        (tmp_path / f"images/{number:04}.png").write_bytes(b"nothing")
    file = table(tmp_path / "t.tsv", rows)
    error = fault(file)
    assert error.problem == (
        "4 of 80 captions are bad (5.0%, at most 1% may be): 4 bad image (no image). "
        f"First: {file}:5 (bad image (no image)) '{tmp_path}/images/0003.png'."
    )
    data = prepare(file, on_bad="keep-going")
    assert len(data.train.image_set) + len(data.valid.image_set) == 38


def test_huge_images_are_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [*captioned(tmp_path, 40), ("huge.png", "A huge one.")]
    save(tmp_path / "images/huge.png", seed=5, size=(40, 40))
    monkeypatch.setattr("regard.data.images.decoding.MAX_PIXELS", 1000)
    data = prepare(table(tmp_path / "t.tsv", rows), on_bad="keep-going")
    assert noted(data, "left out") == [
        f"1 bad caption, bad image (too large): {tmp_path}/t.tsv:82 '{tmp_path}/images/huge.png'"
    ]


def test_missing_images(tmp_path: Path) -> None:
    rows = captioned(tmp_path, 40)
    (tmp_path / "images/0003.png").unlink()
    file = table(tmp_path / "t.tsv", rows)
    error = fault(file)
    assert error.problem == (
        "2 of 80 captions are bad (2.5%, at most 1% may be): 2 no such image. "
        f"First: {file}:5 (no such image) '{tmp_path}/0003.png'."
    )
    assert error.remedy == (
        "An image is looked for in the folder of its table, then in images/ there. "
        "Fix the files, or leave the bad captions out with --on-bad keep-going."
    )
    data = prepare(file, on_bad="keep-going")
    place = f"{tmp_path}/0003.png"
    assert noted(data, "left out") == [f"2 bad captions, no such image: {file}:5 '{place}'; {file}:45 '{place}'"]


def test_bad_rows_are_known_before_an_image_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def decoded(*args: object) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr(image_folder, "read_and_measure", decoded)
    file = table(tmp_path / "t.tsv", [*captioned(tmp_path, 20), ("none.png", "None.")])
    assert fault(file).problem.startswith("1 of 41 captions are bad")


def test_a_path_that_leaves_the_folder(tmp_path: Path) -> None:
    save(tmp_path / "secret.png", seed=1)
    rows = [*captioned(tmp_path / "a", 20), ("../secret.png", "A secret.")]
    file = table(tmp_path / "a/t.tsv", rows)
    error = fault(file, on_bad="keep-going")
    assert error.problem == f"{file}:42: the image '../secret.png' lies outside of the folder of the table."


def test_tables_without_anything(tmp_path: Path) -> None:
    file = table(tmp_path / "t.tsv", [])
    assert fault(file).problem == f"{file}: no captions were found."
    (tmp_path / "l.tsv").write_bytes("image\tcaption\n0.png\tgrün\n".encode("latin1"))
    error = fault(f"{tmp_path}/l.tsv")
    assert error.problem.startswith("1 of 1 captions are bad (100.0%, at most 1% may be): 1 not UTF-8.")
    assert error.remedy == "Convert them to UTF-8 (iconv -f latin1 -t utf-8 OLD > NEW)."
    with pytest.raises(DataError, match=r"^No file was given\.\nName one or more tables: \.csv"):
        read_captions(
            [], DataConfig(), learn(["x"], kind="bytes", vocab_size=400), shape=ImageShape(4, 3), progress=quiet
        )


def test_no_image_can_be_read(tmp_path: Path) -> None:
    rows = captioned(tmp_path, 3)
    for image, _ in rows:
        (tmp_path / "images" / image).write_bytes(b"nothing")
    file = table(tmp_path / "t.tsv", rows)
    assert fault(file).problem.startswith(f"{tmp_path}/images/0000.png: neither this nor any other")
    error = fault(file, image_size=4, channels=3, on_bad="keep-going")
    assert error.problem.startswith("6 of 6 captions are bad (100.0%, at most 100% may be): 6 bad image (no image).")
    assert error.remedy == "Fix the files."


def test_rows_of_both_splits_are_told_once(tmp_path: Path) -> None:
    rows = [*divided(tmp_path, {"train": 20, "val": 5}), ("later", "0000.png", "Later.")]
    file = table(tmp_path / "t.tsv", rows, "split\timage\tcaption")
    data = prepare(file, on_bad="keep-going")
    assert noted(data, "left out") == [f"1 bad caption, unknown split: {file}:52 'later'"]


def test_long_captions_are_left_out(tmp_path: Path) -> None:
    rows = [*captioned(tmp_path, 120), ("0000.png", "long " * 30)]
    save(tmp_path / "images/long.png", seed=999)
    file = table(tmp_path / "t.tsv", [*rows, ("long.png", "longer " * 30)])
    data = prepare(file, max_length=100)
    long = [f"{file}:242 '{('long ' * 30).strip()[:60]}…'", f"{file}:243 '{('longer ' * 30).strip()[:60]}…'"]
    sentences = noted(data, "left out")
    assert all("longer than 100 tokens" in one for one in sentences)
    assert all(any(place in one for one in sentences) for place in long)
    assert "long.png" not in {**written(data.train), **written(data.valid)}
    assert {**written(data.train), **written(data.valid)} == by_image(captioned(tmp_path, 120))
    assert max(data.train.ids.lengths.max(), data.valid.ids.lengths.max()) <= 100
    error = fault(file, max_length=20)
    assert " captions are bad (62.4%, at most 1% may be): " in error.problem
    assert f" longer than 20 tokens. First: {file}:" in error.problem
    assert error.remedy.startswith("Raise data.max_length, shorten them, or ")
    with pytest.raises(DataError, match=r"^No caption is left for training\."):
        prepare(file, max_length=1, on_bad="keep-going")


# -- the cache, and what a run goes on with -----------------------------------------------------------------------------


def test_images_are_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = captioned(tmp_path / "here", 20)
    (tmp_path / "here/images/0003.png").write_bytes(b"nothing")
    first = prepare(table(tmp_path / "here/t.tsv", rows), on_bad="keep-going")

    def decoded(*args: object) -> None:
        raise AssertionError("decoded again")

    monkeypatch.setattr(image_folder, "read_and_measure", decoded)
    (tmp_path / "here").rename(tmp_path / "there")
    file = f"{tmp_path}/there/t.tsv"
    again = prepare(file, on_bad="keep-going")
    assert again.hashes == {file: first.hashes[f"{tmp_path}/here/t.tsv"]}
    assert written(again.valid) == written(first.valid)
    assert again.valid.files == (file,)
    assert noted(again, "left out") == [
        f"2 bad captions, bad image (no image): {file}:5 '{tmp_path}/there/images/0003.png'"
    ]
    # Other captions of the same images are encoded, and no image is decoded for that.
    other = prepare(table(tmp_path / "there/t.tsv", [(image, "Other.") for image, _ in rows]), on_bad="keep-going")
    assert {one for captions in written(other.train).values() for one in captions} == {"Other."}
    save(tmp_path / "there/images/0003.png", seed=4321)
    with pytest.raises(AssertionError, match="decoded again"):
        prepare(file)


@pytest.mark.parametrize("how", ["held out", "divided", "given"])
def test_hashes_are_of_tables_and_their_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    rows = divided(tmp_path, {"train": 30, "val": 5, "test": 4})
    if how == "divided":
        settings: dict[str, Any] = {"train": (table(tmp_path / "t.tsv", rows, "split\timage\tcaption"),)}
    else:
        settings = {"train": (table(tmp_path / "t.tsv", [row[1:] for row in rows if row[0] == "train"]),)}
    if how == "given":
        settings["valid"] = (table(tmp_path / "v.tsv", [row[1:] for row in rows if row[0] == "val"]),)
    data = DataConfig(**settings)
    hashes = prepare(*data.train, valid=data.valid).hashes

    def decoded(*args: object) -> None:
        raise AssertionError("decoded")

    with monkeypatch.context() as patch:
        patch.setattr(image_folder, "read_and_measure", decoded)
        assert prepare(*data.train, valid=data.valid).hashes == hashes
    valid_file = data.valid[0] if data.valid else data.train[0]
    changes = [
        ("0007.png", data.train[0]),
        *([] if how == "held out" else [("1002.png", valid_file)]),
    ]
    for image, changed in changes:
        before = (tmp_path / "images" / image).read_bytes()
        save(tmp_path / "images" / image, seed=12345)
        now = prepare(*data.train, valid=data.valid).hashes
        assert {file for file in hashes if now[file] != hashes[file]} == {changed}
        (tmp_path / "images" / image).write_bytes(before)
    assert prepare(*data.train, valid=data.valid).hashes == hashes
    with Path(data.train[0]).open("a") as file:
        file.write("\n")
    again = prepare(*data.train, valid=data.valid, on_bad="keep-going")
    assert again.hashes[data.train[0]] != hashes[data.train[0]]


def test_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    file = table(tmp_path / "t.tsv", captioned(tmp_path, 40, seed=300))
    stored = []
    for threads in (1, 5):
        monkeypatch.setenv("REGARD_CACHE", str(tmp_path / f"cache{threads}"))
        monkeypatch.setattr(image_folder, "cores", lambda threads=threads: threads)
        data = prepare(file, kind="bpe")
        corpora = (data.train.corpus, data.valid.corpus, data.train.image_set.corpus)
        stored.append([{path.name: path.read_bytes() for path in corpus.folder.iterdir()} for corpus in corpora])
    assert stored[0] == stored[1]
