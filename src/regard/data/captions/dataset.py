"""The dataset of captioned images: tables surveyed, images decoded and stored, split, and captions encoded beside them.

An image is on one side of the split with all its captions, and so are equal images. Tables are read as streams, and what
is made of them lies on the disk: memory grows only with the paths of the images. The columns of the two corpora stand in
`images/storage.py` and in `storage.py`.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from regard.config import DataConfig, TokenizerConfig
from regard.data.captions.rows import Captioned
from regard.data.captions.source import CaptionSource, CaptionSurvey, survey_captions, uncaptioned
from regard.data.captions.storage import CaptionEncoding, CaptionSet
from regard.data.formats.image_folder import LARGEST_OWN
from regard.data.formats.splits import not_divided
from regard.data.images.dataset import common_shape, shared_images
from regard.data.images.decoding import ImageShape
from regard.data.images.storage import ImageSet, stored_images
from regard.data.pipeline.dataset import Dataset, Notes, rebuilt, refuse_empty
from regard.data.pipeline.encoding import encode
from regard.data.pipeline.source import Progress, require_training_files
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.vocabulary import case_notes, fitted_tokenizer, given_tokenizer, learned_tokenizer


@dataclass(frozen=True, kw_only=True)
class CaptionDataset(Dataset[CaptionSet]):
    """Training and validation captions with their images; `hashes` are of each table with the images that it names."""

    tokenizer: Tokenizer


@dataclass(frozen=True, kw_only=True, eq=False)
class _Split:
    """The captions of a split that tables name, as far as `rows` says where in `images` their images are, by their paths."""

    survey: CaptionSurvey
    named: str
    images: ImageSet
    rows: Mapping[str, int]


def prepare_captions(
    data: DataConfig,
    tokenizer: TokenizerConfig,
    *,
    given: Tokenizer | None,
    usual: int = LARGEST_OWN,
    progress: Progress,
) -> CaptionDataset:
    """Survey, store the images, split, learn the vocabulary (unless one is given) and encode, or find all that stored.

    usual: what photographs become, where no size is asked for
    """
    require_training_files(data, "Give a table of images and captions with --train.")
    given = given or given_tokenizer(tokenizer)  # before the tables are read, so that a wrong file is known at once
    surveys = _surveys(data, progress)
    for split, own in surveys.items():
        own.enforce(split)  # before the images are decoded, which may take long
    sources = list(surveys["train"].image_sources("train").values())
    shape = common_shape(sources, data, usual)
    stored = {split: _stored(own, split, shape, progress) for split, own in surveys.items()}
    for split, own in surveys.items():
        own.enforce(split)
    splits = stored if "valid" in stored else _held_out(stored["train"], data.valid_size)
    training = {"train": splits["train"]}
    if given is None:
        given = learned_tokenizer(tokenizer, lambda: (one.text for _, one in _captions(training)), progress)
    else:
        given = fitted_tokenizer(tokenizer, given, lambda: ((one.text,) for _, one in _captions(training)))
    encoding = CaptionEncoding(given, data.max_length)
    train, valid = _encoded(splits, encoding, data.valid_size, progress).values()
    for name, captions, judged in (("training", train, True), ("validation", valid, "valid" in stored)):
        refuse_empty(len(captions), name, CaptionSource.noun)
        if judged:
            _refuse_long(captions, data)
    return CaptionDataset(
        train=train,
        valid=valid,
        train_files=train.files,
        valid_files=valid.files,
        tokenizer=given,
        n_held_out=0 if "valid" in stored else len(valid.image_set),
        notes=(*case_notes(tokenizer, {"": given}), *_notes(surveys, train, valid)),
        hashes=_hashes(stored.values()),
    )


def read_captions(
    files: Sequence[str],
    data: DataConfig,
    tokenizer: Tokenizer,
    *,
    shape: ImageShape,
    split: str = "test",
    asked: bool = False,
    progress: Progress,
) -> CaptionSet:
    """Return all good captions of some tables with their images, to be scored; its `left_out` says which rows were bad.

    split:  which rows are meant where a table is divided into splits; "" for all
    asked:  whether somebody asked for the split, so that every table must be divided
    """
    source = CaptionSource(files=tuple(files), data=data, splits=(split,) if split else ())
    whole = [table.file for table in source.tables if table.columns and not table.columns.split]
    if asked and whole:
        raise not_divided(whole[0], split)
    survey = survey_captions(source, progress)
    survey.enforce(split)
    stored = _stored(survey, split, shape, progress)
    survey.enforce(split)
    [found] = _encoded({split: stored}, CaptionEncoding(tokenizer, data.max_length), 0, progress).values()
    _refuse_long(found, data)
    return found


def _refuse_long(captions: CaptionSet, data: DataConfig) -> None:
    if captions.too_long.reasons:
        captions.too_long.enforce(data.on_bad, captions.files)


def _surveys(data: DataConfig, progress: Progress) -> dict[str, CaptionSurvey]:
    """Survey the tables of training, and of validation unless its captions are held out; one survey for both splits."""
    if data.valid:
        given = {"train": data.train, "valid": data.valid}
        sources = {split: CaptionSource(files=files, data=data, splits=(split,)) for split, files in given.items()}
        return {split: survey_captions(source, progress) for split, source in sources.items()}
    both = survey_captions(CaptionSource(files=data.train, data=data, splits=("train", "valid")), progress)
    return {"train": both, "valid": both} if both.images["valid"] else {"train": both}


def _stored(survey: CaptionSurvey, split: str, shape: ImageShape, progress: Progress) -> _Split:
    """Store the images of a split; the survey takes note of those that are bad."""
    images = stored_images(list(survey.image_sources(split).values()), shape, progress)
    survey.leave_out(split, images.bad_images)
    rows = {place: row for row, place in enumerate(images.places(np.arange(len(images))))}
    return _Split(survey=survey, named=split, images=images, rows=rows)


def _held_out(train: _Split, wanted: int) -> dict[str, _Split]:
    """Hold out images for validation, each with all its captions."""
    held_out, _ = train.images.held_out(wanted)
    rows = {
        name: {place: row for place, row in train.rows.items() if held_out[row] == is_held_out}
        for name, is_held_out in (("train", False), ("valid", True))
    }
    return {name: replace(train, rows=own) for name, own in rows.items()}


def _captions(splits: Mapping[str, _Split]) -> Iterator[tuple[str, Captioned]]:
    """Yield the good captions of splits of the same tables, each with the name of its split."""
    source = next(iter(splits.values())).survey.source
    for caption in source.good():
        for name, split in splits.items():
            row = split.rows.get(caption.image) if caption.split == split.named else None
            if row is not None:
                yield name, replace(caption, image_row=row)


def _encoded(
    splits: Mapping[str, _Split], encoding: CaptionEncoding, wanted: int, progress: Progress
) -> dict[str, CaptionSet]:
    """Encode the captions of some splits, those of the same tables in one pass; `wanted` is how many may be held out."""
    found: dict[str, CaptionSet] = {}
    for survey in {id(split.survey): split.survey for split in splits.values()}.values():
        own = {name: split for name, split in splits.items() if split.survey is survey}
        images = [split.images.corpus.facts for split in own.values()]
        key = wanted, [(facts["shape"], facts["fingerprints"]) for facts in images]
        corpora = encode(
            survey.source, partial(_captions, own), encoding, splits=list(own), key=key, texts=True, progress=progress
        )
        for name, split in own.items():
            found[name] = CaptionSet.of(corpora[name], split.images, survey.source.files, survey.bad_rows)
    return found


def _hashes(stored: Iterable[_Split]) -> dict[str, str]:
    """Return a hash of each table and of the images that it names first."""
    found: dict[str, list[str]] = {}
    for split in stored:
        tables = split.survey.image_sources(split.named)
        fingerprints = (fingerprint for _, fingerprint in split.images.corpus.facts["fingerprints"])
        of_images = dict(zip(tables, fingerprints, strict=True))
        for file, own in split.survey.source.hashes.items():
            found.setdefault(file, [own]).append(of_images.get(file, ""))
    return {file: hashlib.sha256(" ".join(hashes).encode()).hexdigest() for file, hashes in found.items()}


def _notes(surveys: Mapping[str, CaptionSurvey], train: CaptionSet, valid: CaptionSet) -> Notes:
    training, validation = surveys["train"], surveys.get("valid")
    columns = training.source.tables[0].columns
    notes = [("columns", columns.sentence())] if columns else []
    notes += rebuilt(*(corpus for own in (train, valid) for corpus in (own.corpus, own.image_set.corpus)))
    if fitted := train.image_set.fitted:
        notes.append(("size", fitted))
    if validation is None and training.source.split_column:
        notes.append(("held out", f"no good row of '{training.source.split_column}' is of validation"))
    notes += [("left out", sentence) for sentence in train.left_out()]
    apart = validation is not None and validation is not training
    of_validation = valid.left_out() if apart else valid.too_long.sentences()
    notes += [("left out", f"of validation, {sentence}") for sentence in of_validation]
    notes += shared_images(train.image_set, valid.image_set)
    if files := uncaptioned(*surveys.values()):
        are = "image beside these is" if len(files) == 1 else "images beside these are"
        notes.append(("note", f"{len(files):,} {are} named by no row, such as {files[0]}"))
    return tuple(notes)
