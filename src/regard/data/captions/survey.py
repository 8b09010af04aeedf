"""What tables of captions hold and what is wrong with them: the images that good rows name, and why other rows are left out.

A row is bad by itself, or with its image: one that is not there or cannot be read takes all its captions with it. Bad rows
are left out and counted; too many of them stop.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from regard.config import DataConfig
from regard.data.captions.images import ListedImages, unnamed
from regard.data.captions.rows import FOLDERS, NO_IMAGE, PATH_CHARACTERS, Captioned, CaptionTable, open_table
from regard.data.formats import Bad
from regard.data.formats.columns import listed
from regard.data.formats.registry import ending_of
from regard.data.formats.rows import excerpt
from regard.data.labelled.rows import SPLITS, TABLES, check_split
from regard.data.pairs.check import content_hash
from regard.data.pipeline.bad_rows import Faults, LeftOut, Progress
from regard.errors import DataError

PROGRESS_EVERY = 1000


@dataclass(frozen=True, slots=True)
class Mention:
    """How many good rows name an image, and where the first of them stands."""

    count: int
    file: str
    line: int


@dataclass(frozen=True, kw_only=True)
class CaptionTables:
    """Tables that were looked through; their good rows can be read as often as needed.

    splits:  which rows are meant, as `CaptionTable.captions` has it
    images:  by split those that good rows name, by their paths and in the order of the rows
    faults:  what is wrong with the other rows; grows by `leave_out`
    hashes:  of the bytes of each table
    """

    tables: tuple[CaptionTable, ...]
    splits: tuple[str, ...]
    images: Mapping[str, Mapping[str, Mention]]
    faults: Faults
    hashes: Mapping[str, str]

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(table.file for table in self.tables)

    @property
    def split(self) -> str:
        """The column by which the tables are divided into splits; "" if they are not."""
        return next((table.columns.split for table in self.tables if table.columns.split), "")

    def captions(self, split: str) -> Iterator[Captioned]:
        """Yield the good rows of a split in their order."""
        for table in self.tables:
            for row in table.captions(self.splits):
                if isinstance(row, Captioned) and row.split == split:
                    yield row

    def sources(self, split: str) -> dict[str, ListedImages]:
        """Return the images of a split by the table that names them first."""
        members: dict[str, list[str]] = {}
        roots = {table.file: table.folder for table in self.tables}
        for place, mention in self.images[split].items():
            member = place.removeprefix(roots[mention.file].rstrip("/"))
            members.setdefault(mention.file, []).append(member)
        return {file: ListedImages(root=roots[file], members=tuple(own)) for file, own in members.items()}

    def contents(self) -> list[str]:
        """What the tables hold, by the hashes of their bytes and the ends of their names, which say how they are read."""
        return [self.hashes[file] + ending_of(file) for file in self.files]

    def leave_out(self, split: str, bad: Mapping[str, str]) -> None:
        """Take note of images that cannot be used: the reasons by their paths."""
        for place, why in bad.items():
            mention = self.images[split][place]
            reason = f"bad image ({why})"
            self.faults.add(Bad(mention.file, mention.line, reason, excerpt(place, characters=PATH_CHARACTERS)))
            self.faults.reasons[reason] += mention.count - 1
            self.faults.n_good -= mention.count

    def enforce(self, split: str, share: float) -> None:
        """Refuse tables of which more than a share is bad, or nothing good; or, if they are divided, nothing of a split."""
        if self.faults.reasons or not self.split:
            self._enforce(share)
        if not self.images[split]:
            spellings = listed([f"'{one}'" for one in SPLITS[split]], last="or")
            raise DataError(
                f"{', '.join(self.files)}: in no good row does the column '{self.split}' say {spellings}.",
                "Give a table with such rows; or rename the column, if splits are not what it says.",
            )

    def _enforce(self, share: float) -> None:
        try:
            self.faults.enforce(share, self.files)
        except DataError as error:
            if NO_IMAGE not in self.faults.reasons:
                raise
            where = f"An image is looked for in the folder of its table, then in {FOLDERS[1]} there."
            raise DataError(error.problem, f"{where} {error.remedy}") from None

    def left_out(self) -> LeftOut:
        """Say which rows were left out and why."""
        return LeftOut.of(self.faults.as_facts(self.files), self.files)


def look_through(files: Sequence[str], data: DataConfig, *, splits: Sequence[str], progress: Progress) -> CaptionTables:
    """Read tables for what they hold; no image is opened.

    splits: train, valid or test, of which rows are meant where a column says it, and of the first where none does; or none
    """
    if not files:
        raise DataError("No file was given.", f"Name one or more tables: {', '.join(TABLES)}.")
    for split in splits:
        check_split(split)
    tables = tuple(open_table(file, data) for file in files)
    hashes = {file: content_hash(file) for file in dict.fromkeys(files)}
    images: dict[str, dict[str, Mention]] = {split: {} for split in splits or ("",)}
    faults = Faults(noun="rows")
    for table in tables:
        for row in table.captions(splits):
            if isinstance(row, Bad):
                faults.add(row)
                continue
            faults.n_good += 1
            own = images[row.split]
            before = own.get(row.image)
            own[row.image] = (
                Mention(before.count + 1, before.file, before.line) if before else Mention(1, row.file, row.line)
            )
            if faults.n_good % PROGRESS_EVERY == 0:
                progress("reading", faults.n_good)
    return CaptionTables(tables=tables, splits=tuple(splits), images=images, faults=faults, hashes=hashes)


def uncaptioned(*all_tables: CaptionTables) -> list[str]:
    """Return the image files that lie beside those of some tables, and that no row of any split names."""
    places = (place for one in all_tables for own in one.images.values() for place in own)
    tables = {table.file: table for one in all_tables for table in one.tables}
    return unnamed(places, set().union(*(table.named() for table in tables.values())))
