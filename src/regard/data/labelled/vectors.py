"""Labelled sequences of vectors: NPZ files with an array of labels, or a CSV with a column of them.

The label's column is `data.label` (in an NPZ `labels` by default), the one that tells the sequences of a CSV apart is
`data.text`. What a sequence is stands in `vector_sequences.py`.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regard.config import DataConfig, TokenizerConfig
from regard.data.formats.columns import LABELS, called, cannot_tell
from regard.data.formats.delimited import read_csv
from regard.data.formats.files import check_files
from regard.data.formats.rows import Bad, excerpt
from regard.data.formats.splits import check_splits, no_row_of_split, split_of
from regard.data.formats.vector_sequences import Vectors, read_vector_sequences
from regard.errors import DataError

KIND = "vectors"  # tokenizer.kind of tables whose rows are vectors, not texts
ARRAY = "labels"  # of an NPZ
_NAMES = tuple(name for name in LABELS if name not in ("y", "value"))  # which of a vector's numbers may be called too


@dataclass(frozen=True, eq=False, slots=True)
class LabelledVectors:
    """Vectors (T, features), their label ("" where none is asked for), and their place (in an NPZ their number, from 1).

    split:  that which a column or an array says they are of
    tags:   in the place of a label, one for each vector; each stands on a line of `lines`
    """

    vectors: Vectors
    label: str
    name: str
    file: str
    line: int
    split: str = ""
    tags: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        return self.tags or (self.label,)

    @property
    def texts(self) -> tuple[str, ...]:
        return ()

    @property
    def key(self) -> str:
        """What decides whether it is held out: equal sequences fall on one side."""
        return hashlib.sha256(self.vectors.tobytes()).hexdigest()


def are_vectors(files: Sequence[str], tokenizer: TokenizerConfig) -> bool:
    """Whether files hold vectors: an NPZ always does, a CSV where `tokenizer.kind` says so."""
    return tokenizer.kind == KIND or any(file.lower().removesuffix(".gz").endswith(".npz") for file in files)


def read_labelled_vectors(
    files: Sequence[str], data: DataConfig, *, splits: Sequence[str] = (), labelled: bool = True, tagged: bool = False
) -> Iterator[LabelledVectors | Bad]:
    """Yield the sequences of files in their order, all of one width.

    splits:    train, valid or test keep the sequences of which the column `data.split_column` says so; none keep all
    labelled:  whether each needs a label
    tagged:    whether labels are those of single vectors
    """
    check_splits(*splits)
    names = check_files(files, "Name one or more files of vectors: .npz, .csv.")
    return _read(names, data, splits if data.split_column else (), labelled, tagged)


def _read(
    files: Sequence[str], data: DataConfig, splits: Sequence[str], labelled: bool, tagged: bool
) -> Iterator[LabelledVectors | Bad]:
    width, found = 0, False
    for file in files:
        label = data.label or _label_of(file, data, labelled)
        constants = tuple(name for name in ("" if tagged else label, data.split_column) if name)
        tags, may_lack = label if tagged else "", not labelled and not splits
        for one in read_vector_sequences(file, group=data.text, constants=constants, tags=tags, may_lack=may_lack):
            features = one.vectors.shape[1]
            width = width or features
            if features != width:
                raise DataError(
                    f"{file}: its vectors have {features} features, those of the files before {width}.",
                    "Give all files the same features.",
                )
            split = split_of(one.fields[data.split_column]) if splits else ""
            if splits and not split:
                yield Bad(file, one.line, "unknown split", excerpt(one.fields[data.split_column]))
            if splits and split not in splits:
                continue
            found = True
            own = one.fields.get(label, "").strip()
            said = tuple(map(str.strip, one.tags))
            if labelled and tagged and not all(said):
                yield Bad(file, one.lines[said.index("")], "empty tag", excerpt(one.name))
            elif labelled and not tagged and not own:
                yield Bad(file, one.line, "empty label", excerpt(one.name))
            else:
                yield LabelledVectors(one.vectors, own, one.name, file, one.line, split, said, one.lines)
    if splits and not found:
        raise no_row_of_split(files, data.split_column, splits[0])


def _label_of(file: str, data: DataConfig, labelled: bool) -> str:
    """Return the name under which a file has its labels, "" if it needs none and no name tells."""
    if not file.lower().removesuffix(".gz").endswith(".csv"):
        return ARRAY
    first = next((row for row in read_csv(file) if not isinstance(row, Bad)), None)
    names = [] if first is None else [name for name in first.fields if name not in (data.text, data.split_column)]
    found = called(names, _NAMES)
    if not found and labelled and names:
        raise cannot_tell(file, dict.fromkeys(names, ""), {"label": "--label"})
    return found
