"""Images and captions, from tables to training and validation: decoded and encoded once, screened, held out, stored.

An image is on one side with all its captions, and so are equal images. Tables are read as streams, and what is made of
them lies on the disk: memory grows only with the paths of the images. The columns of the two corpora stand in
`stored_images.py` and `stored_captions.py`.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from regard.config import DataConfig, TokenizerConfig
from regard.data.captions.storage import CaptionSet, CaptionSide, stored_captions
from regard.data.captions.survey import CaptionTables, look_through, uncaptioned
from regard.data.formats.image_folder import LARGEST_OWN
from regard.data.images.decoding import ImageShape, suited
from regard.data.images.storage import stored_images
from regard.data.pairs.check import BAD_SHARE
from regard.data.pipeline.bad_rows import Progress, allowed_share
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.vocabulary import given_tokenizer, tokenizer_for
from regard.errors import DataError


@dataclass(frozen=True, kw_only=True)
class CaptionData:
    """Training and validation captions with their images, and what was seen on the way."""

    train: CaptionSet
    valid: CaptionSet
    tokenizer: Tokenizer
    shape: ImageShape
    mean: tuple[float, ...]  # of each channel of the training images, of pixels from 0 to 1
    deviation: tuple[float, ...]  # likewise
    n_held_out: int  # images; 0 where there was validation data
    told: tuple[tuple[str, str], ...]  # decisions that a person should know of, label and text
    hashes: Mapping[str, str]  # of each table, with the images that it names
    train_files: tuple[str, ...]
    valid_files: tuple[str, ...]


def prepare_captions(
    data: DataConfig,
    tokenizer: TokenizerConfig,
    *,
    given: Tokenizer | None,
    usual: int = LARGEST_OWN,
    progress: Progress,
) -> CaptionData:
    """Read, screen, hold out, learn the vocabulary (unless one is given) and store images and captions, or find them.

    usual: what photographs become, where no size is asked for
    """
    given = given or given_tokenizer(tokenizer)  # before the tables are read, so that a wrong file is known at once
    share = allowed_share(data.on_bad)
    tables = _tables(data, progress)
    for split, own in tables.items():
        own.enforce(split, share)  # before the images are decoded, which may take long
    shape = _shape(tables["train"], data, usual)
    sides = {split: _side(own, split, shape, progress) for split, own in tables.items()}
    for split, own in tables.items():
        own.enforce(split, share)
    if "valid" not in sides:
        sides["train"], sides["valid"] = _split(sides["train"], data.valid_size)
    if given is None:
        progress("learning the vocabulary", 0)
        given = tokenizer_for(tokenizer, sides["train"].texts)
    train, valid = (
        stored_captions(sides[split], given, max_length=data.max_length, progress=progress)
        for split in ("train", "valid")
    )
    for name, captions in (("training", train), ("validation", valid)):
        if not len(captions):
            raise DataError(f"No caption is left for {name}.", "Give more captions, or validation tables with --valid.")
        if name == "training" or "valid" in tables:
            _refuse_long(captions, data)
    mean, deviation = train.image_set.statistics()
    return CaptionData(
        train=train,
        valid=valid,
        tokenizer=given,
        shape=shape,
        mean=mean,
        deviation=deviation,
        n_held_out=0 if "valid" in tables else valid.n_images,
        told=_told(tables, train, valid),
        hashes=_hashes((own, sides[split].fingerprints()) for split, own in tables.items()),
        train_files=train.files,
        valid_files=valid.files,
    )


def read_captions(
    files: Sequence[str],
    data: DataConfig,
    tokenizer: Tokenizer,
    *,
    shape: ImageShape,
    split: str = "test",
    progress: Progress,
) -> CaptionSet:
    """Return all good captions of some tables with their images, to be scored; its `faults` say which rows were bad.

    split: which rows are meant where a table is divided into splits; "" for all
    """
    share = allowed_share(data.on_bad)
    tables = look_through(files, data, splits=(split,) if split else (), progress=progress)
    tables.enforce(split, share)
    side = _side(tables, split, shape, progress)
    tables.enforce(split, share)
    found = stored_captions(side, tokenizer, max_length=data.max_length, progress=progress)
    _refuse_long(found, data)
    return found


def caption_hashes(data: DataConfig) -> dict[str, str]:
    """Return the hashes that `prepare_captions` returns of the same data; no image is decoded."""
    tables = _tables(data, lambda what, done: None)
    return _hashes(
        (own, {file: images.fingerprint() for file, images in own.sources(split).items()})
        for split, own in tables.items()
    )


def _tables(data: DataConfig, progress: Progress) -> dict[str, CaptionTables]:
    """Return the tables of training, and of validation unless its captions are held out; one if it holds both splits."""
    if not data.train:
        raise DataError("There is nothing to train on.", "Give a table of images and captions with --train.")
    if data.valid:
        given = {"train": data.train, "valid": data.valid}
        return {split: look_through(files, data, splits=(split,), progress=progress) for split, files in given.items()}
    both = look_through(data.train, data, splits=("train", "valid"), progress=progress)
    return {"train": both, "valid": both} if both.images["valid"] else {"train": both}


def _shape(tables: CaptionTables, data: DataConfig, usual: int) -> ImageShape:
    """Return what all images become: as asked, else as it suits those of the first table, in colours if any has them."""
    if data.image_size and data.channels:
        return ImageShape(data.image_size, data.channels)
    own = [images.own_shape() for images in tables.sources("train").values()]
    return ImageShape(
        data.image_size or suited(own[0].size, usual), data.channels or max(shape.channels for shape in own)
    )


def _side(tables: CaptionTables, split: str, shape: ImageShape, progress: Progress) -> CaptionSide:
    """Store the images of a split; the tables take note of those that are bad."""
    images = stored_images(list(tables.sources(split).values()), shape, progress)
    tables.leave_out(split, images.faults.by_place())
    rows = {place: row for row, place in enumerate(images.places(np.arange(len(images))))}
    return CaptionSide(tables=tables, split=split, images=images, rows=rows)


def _split(side: CaptionSide, wanted: int) -> tuple[CaptionSide, CaptionSide]:
    """Hold out images for validation, each with all its captions; return the others, and these."""
    held_out = side.images.held_out(wanted)

    def of(held: bool) -> CaptionSide:
        rows = {place: row for place, row in side.rows.items() if held_out[row] == held}
        return replace(side, rows=rows, kept=f"{'' if held else 'not '}held out, of {wanted}")

    return of(False), of(True)


def _refuse_long(captions: CaptionSet, data: DataConfig) -> None:
    """Refuse captions of which too many have too many tokens."""
    n_long = sum(captions.too_long.reasons.values())
    total = len(captions) + n_long
    if n_long > allowed_share(data.on_bad) * total:
        [(first, *_)] = captions.too_long.examples.values()
        raise DataError(
            f"{n_long:,} of {total:,} captions are longer than {data.max_length:,} tokens, the first at "
            f"{first.file}:{first.line}; at most {BAD_SHARE:.0%} may be.",
            "Raise data.max_length, shorten them, or use --on-bad keep-going.",
        )


def _hashes(all_tables: Iterable[tuple[CaptionTables, Mapping[str, str]]]) -> dict[str, str]:
    """Return a hash of each table and of the images that it names first, whose fingerprints are given by table."""
    found: dict[str, list[str]] = {}
    for tables, fingerprints in all_tables:
        for file, own in tables.hashes.items():
            found.setdefault(file, [own]).append(fingerprints.get(file, ""))
    return {file: hashlib.sha256(" ".join(hashes).encode()).hexdigest() for file, hashes in found.items()}


def _told(tables: Mapping[str, CaptionTables], train: CaptionSet, valid: CaptionSet) -> tuple[tuple[str, str], ...]:
    """What the report before the first step says of decisions that were taken."""
    training, validation = tables["train"], tables.get("valid")
    told = [("columns", training.tables[0].columns.sentence())]
    if fitted := train.image_set.fitted:
        told.append(("size", fitted))
    if validation is None and training.split:
        told.append(("held out", f"no good row of '{training.split}' is of validation"))
    told += [("left out", sentence) for sentence in train.faults.sentences()]
    apart = validation is not None and validation is not training
    of_validation = valid.faults if apart else valid.too_long
    told += [("left out", f"of validation, {sentence}") for sentence in of_validation.sentences()]
    if shared := int(np.isin(valid.image_set.content_hashes(), train.image_set.content_hashes()).sum()):
        told.append(("note", f"{shared:,} of {valid.n_images:,} validation images stand in training too"))
    if files := uncaptioned(*tables.values()):
        are = "image beside these is" if len(files) == 1 else "images beside these are"
        told.append(("note", f"{len(files):,} {are} named by no row, such as {files[0]}"))
    return tuple(told)
