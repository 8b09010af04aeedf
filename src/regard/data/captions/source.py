"""Captions as a source: tables that are surveyed for the images that they name, before any is opened.

A row is bad by itself, or with its image: one that is not there or cannot be read takes all its captions with it.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

from regard.data.captions.rows import (
    FOLDERS,
    NO_IMAGE,
    PATH_CHARACTERS,
    CaptionColumns,
    Captioned,
    ImagePaths,
    candidates,
    folder_of,
    names_image,
    open_captions,
)
from regard.data.formats.image_folder import ListedImages, shown
from regard.data.formats.rows import Bad, Row, excerpt
from regard.data.formats.splits import check_splits, no_row_of_split
from regard.data.formats.tables import Table, check_tables, rows_of_splits
from regard.data.pipeline.bad_rows import BadRows
from regard.data.pipeline.source import Progress, Source
from regard.errors import DataError


@dataclass(frozen=True, kw_only=True)
class CaptionSource(Source[Captioned]):
    """Tables of captions.

    splits: of which rows are meant where a column says it; where none does, all are of the first; none for all
    """

    noun = "caption"

    splits: tuple[str, ...] = ()
    paths: ImagePaths = field(default_factory=ImagePaths, compare=False, repr=False)

    @cached_property
    def tables(self) -> tuple[Table[CaptionColumns], ...]:
        check_splits(*self.splits)
        check_tables(self.files, "captions")
        return tuple(open_captions(file, self.data) for file in self.files)

    def read(self) -> Iterator[Captioned | Bad]:
        for found in rows_of_splits(self.tables, self.splits):
            yield found if isinstance(found, Bad) else self.paths.captioned(*found)

    def settings(self) -> tuple[object, ...]:
        return self.splits, [table.columns for table in self.tables]

    def key(self, example: Captioned) -> None:
        """It is images that are held out, with all their captions."""

    @property
    def split_column(self) -> str:
        """The column by which the tables are divided into splits; "" if they are not."""
        return next((table.columns.split for table in self.tables if table.columns and table.columns.split), "")

    def named(self) -> set[str]:
        """Return the paths at which the images of all rows, of any split, are looked for."""
        cells = {
            (row.file, row.fields.get(table.columns.image, "").strip())
            for table in self.tables
            for row in table.rows()
            if isinstance(row, Row) and table.columns
        }
        return {path for file, cell in cells if cell for path in candidates(file, cell)}


@dataclass(frozen=True, slots=True)
class Mention:
    """How many good rows name an image, and where the first of them stands."""

    count: int
    file: str
    line: int


@dataclass(frozen=True, kw_only=True)
class CaptionSurvey:
    """What tables of captions hold.

    images:    by split those that good rows name, by their paths and in the order of the rows
    bad_rows:  grows by `leave_out`
    """

    source: CaptionSource
    images: Mapping[str, Mapping[str, Mention]]
    bad_rows: BadRows

    def image_sources(self, split: str) -> dict[str, ListedImages]:
        """Return the images of a split by the table that names them first."""
        members: dict[str, list[str]] = {}
        for place, mention in self.images[split].items():
            member = place.removeprefix(folder_of(mention.file).rstrip("/"))
            members.setdefault(mention.file, []).append(member)
        return {file: ListedImages(root=folder_of(file), members=tuple(own)) for file, own in members.items()}

    def leave_out(self, split: str, bad_images: BadRows) -> None:
        """Take note of images that cannot be used, with all their captions."""
        for bad in (bad for own in bad_images.examples.values() for bad in own):
            mention = self.images[split][bad.place]
            path = excerpt(bad.place, characters=PATH_CHARACTERS)
            reason = f"bad image ({bad.reason})"
            self.bad_rows.add(Bad(mention.file, mention.line, reason, path), count=mention.count)
            self.bad_rows.n_good -= mention.count

    def enforce(self, split: str) -> None:
        """Refuse tables of which too many rows are bad, or, if they are divided, none is good of a split."""
        files, column = self.source.files, self.source.split_column
        if self.bad_rows.reasons or not column:
            try:
                self.bad_rows.enforce(self.source.data.on_bad, files)
            except DataError as error:
                if NO_IMAGE not in self.bad_rows.reasons:
                    raise
                where = f"An image is looked for in the folder of its table, then in {FOLDERS[1]} there."
                raise DataError(error.problem, f"{where} {error.remedy}") from None
        if not self.images[split]:
            raise no_row_of_split(files, column, split)


def survey_captions(source: CaptionSource, progress: Progress) -> CaptionSurvey:
    """Read tables for what they hold; no image is opened."""
    images: dict[str, dict[str, Mention]] = {split: {} for split in source.splits or ("",)}
    bad_rows = BadRows(source.noun)
    for done, caption in enumerate(bad_rows.good(source.read()), start=1):
        own = images[caption.split]
        before = own.get(caption.image, Mention(0, caption.file, caption.line))
        own[caption.image] = Mention(before.count + 1, before.file, before.line)
        if done % source.chunk == 0:
            progress("reading", done)
    return CaptionSurvey(source=source, images=images, bad_rows=bad_rows)


def uncaptioned(*surveys: CaptionSurvey) -> list[str]:
    """Return the image files that lie beside those of some tables, and that no row of any split names."""
    places = {place for one in surveys for own in one.images.values() for place in own}
    if not unnamed(places, places):
        return []
    sources = {one.source.files: one.source for one in surveys}
    return unnamed(places, set().union(*(source.named() for source in sources.values())))


def unnamed(places: Iterable[str], named: Collection[str]) -> list[str]:
    """Return the files that claim to be images, lie in one folder with some of `places`, and are not `named`; in order."""
    found: list[str] = []
    for folder in sorted({place.rpartition("/")[0] for place in places}):
        with suppress(OSError), os.scandir(folder or "/") as entries:  # they are only told of
            found += (
                place
                for entry in entries
                if names_image(entry.name) and not entry.name.startswith(".") and entry.is_file()
                if (place := f"{folder}/{shown(entry.name)}") not in named
            )
    return sorted(found)
