"""What reads files that others may have written, each with a small valid file: every format, every file of a run."""

import base64
import contextlib
import csv
import dataclasses
import gzip
import hashlib
import io
import json
import shutil
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from tests.golden.run import BY_NAME, settings_of, write_data

import regard
from regard.cli.main import run as run_command
from regard.config import DataConfig
from regard.data.captions.source import CaptionSource, survey_captions
from regard.data.documents.rows import read_documents
from regard.data.formats.conll import read_tagged
from regard.data.formats.registry import read_rows
from regard.data.formats.tiktoken import KNOWN, read_tiktoken
from regard.data.formats.vector_sequences import read_vector_sequences
from regard.data.formats.word2vec import read_vectors
from regard.data.images.decoding import ImageShape, own_shape, read_image
from regard.data.images.sources import find_images
from regard.data.labelled.rows import read_labelled
from regard.data.pairs.rows import read_pairs
from regard.data.pipeline.corpus import TEXT, Corpus, CorpusWriter
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import learn
from regard.runs.folder import BASELINE
from regard.training.events import Updated
from regard.training.run import resume

Read = Callable[[Path], object]


@dataclass(frozen=True)
class Reader:
    """A reader: the name and the content of a valid file, and the ways in which that is read, one mutant each in turn.

    folder:  what else lies around the file: a folder, copied for each mutant
    zipped:  whether it may be packed with gzip
    sealed:  whether the checkpoint's manifest is to vouch for every other mutant, so that not its hash alone refuses it
    """

    name: str
    file: str
    content: bytes
    ways: tuple[Read, ...]
    folder: Path | None = None
    zipped: bool = False
    sealed: bool = False

    def path(self, folder: Path, number: int) -> Path:
        """Where a mutant of this number lies."""
        return folder / (self.file + ".gz" if self.packed(number) else self.file)

    def packed(self, number: int) -> bool:
        return self.zipped and number % 5 == 4

    def original(self, number: int) -> bytes:
        """What is damaged: the content, or that of its archive."""
        return gzip.compress(self.content, mtime=0) if self.packed(number) and number % 2 else self.content

    def place(self, mutant: bytes, number: int, folder: Path) -> Path:
        """Write a mutant and what it needs around it; return its path."""
        if self.folder:
            shutil.rmtree(folder)
            shutil.copytree(self.folder, folder)
        path = self.path(folder, number)
        path.write_bytes(gzip.compress(mutant, 1) if self.packed(number) and not number % 2 else mutant)
        if self.sealed and number % 2:
            seal(path)
        return path

    def read(self, path: Path, number: int) -> None:
        self.ways[number // 2 % len(self.ways)](path)


def seal(path: Path) -> None:
    """Write the size and the hash of a file into the manifest beside it."""
    manifest = path.with_name("manifest.json")
    content, kept = path.read_bytes(), json.loads(manifest.read_bytes())
    kept["files"][path.name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    manifest.write_text(json.dumps(kept))


def drain(items: Iterable[object]) -> int:
    return sum(1 for _ in items)


# -- formats -----------------------------------------------------------------------------------------------------------

PAIRS = [("Hello, you", "Hallo du"), ('She said "no"', "Nein\nsagte sie"), ("1,5 kg", "1,5 kg"), ("it", "es")] * 6
SINGLE = [pair for pair in PAIRS if "\n" not in pair[1]]
NUMBERED = range(10)
TMX = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><header srclang="en" datatype="x"/><body>\n'
    + "".join(
        f'<tu><tuv xml:lang="en"><seg>Hello <ph>x</ph>{number}</seg></tuv>\n'
        f'<tuv xml:lang="de"><seg>Hallo &amp; {number}</seg></tuv></tu>\n'
        for number in NUMBERED
    )
    + "</body></tmx>"
)
XLIFF = (
    '<?xml version="1.0"?>\n<xliff version="1.2"><file source-language="en" target-language="de"><body>\n'
    + "".join(
        f'<trans-unit id="{number}"><source>Hello {number}</source>\n<target state="final">Hallo</target></trans-unit>\n'
        for number in NUMBERED
    )
    + "</body></file></xliff>"
)
PO = (
    'msgid ""\nmsgstr ""\n"Language: de\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
    + "".join(f'#: a.c:{number}\nmsgid "Hello {number}"\nmsgstr "Hallo {number}"\n\n' for number in NUMBERED)
    + 'msgid "one"\nmsgid_plural "many"\nmsgstr[0] "eins"\nmsgstr[1] "viele"\n'
)
CONLL = "-DOCSTART- -X- O\n\n" + "John NNP B-PER\nlives VBZ O\nin IN O\nNew NNP B-LOC\nYork NNP I-LOC\n\n" * 6
LABELLED = "text,label,split\r\n" + "".join(
    f'"good, film {number}",pos,train\r\nbad film {number},neg,test\r\n' for number in NUMBERED
)
VECTOR_ROWS = "who,x,y,mood\n" + "".join(f"s{row // 4},{row},0.5,{row // 4}\n" for row in range(20))
WORD2VEC = "5 3\n" + "".join(f"word{number} 0.1 -2 3e-1\n" for number in range(5))
CAPTIONS = "image,caption\n" + "".join(f"a{number % 3}.png,a dog {number}\n" for number in range(9))


def pair_ways(**columns: str) -> tuple[Read, ...]:
    """Return the ways in which a file of pairs is read."""
    return (
        lambda path: drain(read_rows(str(path))),
        lambda path: drain(read_pairs([path])),
        lambda path: drain(read_pairs([path], source="en", target="de")),
        lambda path: drain(read_documents([path], **columns)),
    )


def row_readers() -> Iterable[Reader]:
    """Yield the readers of rows: pairs, documents and tables."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerows([("en", "de"), *PAIRS])
    tsv = "en\tde\n" + "".join(f"{source}\t{target}\n" for source, target in SINGLE)
    jsonl = "".join(json.dumps({"en": source, "de": target}) + "\n" for source, target in PAIRS)
    table = pa.table({"en": [pair[0] for pair in PAIRS], "de": [pair[1] for pair in PAIRS]})
    parquet = io.BytesIO()
    pq.write_table(table, parquet)
    contents = {"csv": buffer.getvalue(), "tsv": tsv, "jsonl": jsonl, "tmx": TMX, "xlf": XLIFF, "po": PO}
    for ending, content in contents.items():
        yield Reader(ending, f"rows.{ending}", content.encode(), pair_ways(column="en"), zipped=True)
    yield Reader("parquet", "rows.parquet", parquet.getvalue(), pair_ways(column="en"))
    text = "".join(f"{source}\n" for source, _ in SINGLE).encode()
    ways: tuple[Read, ...] = (
        lambda path: drain(read_rows(str(path))),
        lambda path: drain(read_pairs([path, path])),
        lambda path: drain(read_documents([path], separator="it")),
    )
    yield Reader("text", "rows.txt", text, ways, zipped=True)
    ways = (
        lambda path: drain(read_labelled([str(path)], DataConfig())),
        lambda path: drain(read_labelled([str(path)], DataConfig(split_column="split"), splits=("train",))),
    )
    yield Reader("labelled csv", "rows.csv", LABELLED.encode(), ways, zipped=True)
    ways = (lambda path: drain(read_tagged([str(path)], DataConfig())),)
    yield Reader("conll", "rows.conll", CONLL.encode(), ways, zipped=True)
    ways = (lambda path: survey_captions(CaptionSource(files=(str(path),), data=DataConfig()), lambda *_: None),)
    yield Reader("captions", "rows.csv", CAPTIONS.encode(), ways)


def array_readers() -> Iterable[Reader]:
    """Yield the readers of vectors and of images in arrays."""
    vectors = np.arange(60.0).reshape(5, 4, 3)
    content = npz(vectors=vectors, lengths=np.array([1, 2, 3, 4, 4]), labels=np.arange(5))
    ways: tuple[Read, ...] = (lambda path: drain(read_vector_sequences(path, constants=("labels",))),)
    yield Reader("vectors npz", "vectors.npz", content, ways)
    content = npz(a=vectors[0], b=vectors[1], compress=False)
    yield Reader("sequences npz", "vectors.npz", content, (lambda path: drain(read_vector_sequences(path)),))
    ways = (lambda path: drain(read_vector_sequences(path, group="who", constants=("mood",))),)
    yield Reader("vectors csv", "vectors.csv", VECTOR_ROWS.encode(), ways, zipped=True)
    yield Reader("word2vec", "words.txt", WORD2VEC.encode(), (read_word_vectors,), zipped=True)
    pixels = np.random.default_rng(1).integers(0, 255, (6, 8, 8, 3), dtype=np.uint8)
    images = npz(x_train=pixels, y_train=np.array(["a", "b"] * 3))
    yield Reader("images npz", "images.npz", images, (lambda path: read_images(path),))
    idx = b"\0\0\x08\x03" + struct.pack(">3I", 6, 8, 8) + pixels[..., 0].tobytes()
    labels = b"\0\0\x08\x01" + struct.pack(">I", 6) + bytes([0, 1] * 3)
    images_file, labels_file = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
    ways = (partial(read_beside, labels_file, labels),)
    yield Reader("idx images", images_file, idx, ways)
    ways = (partial(read_beside, images_file, idx),)
    yield Reader("idx labels", labels_file, labels, ways)


def npz(*, compress: bool = True, **arrays: Any) -> bytes:
    buffer = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(buffer, **arrays)
    return buffer.getvalue()


def read_word_vectors(path: Path) -> None:
    read_vectors(path, {f"word{number}": number for number in range(9)})


def read_images(*paths: Path) -> None:
    for source in find_images(list(map(str, paths)), split="train"):
        drain(source.images(source.own_shape()))


def read_beside(name: str, content: bytes, path: Path) -> None:
    """Read an IDX file together with the one that belongs to it."""
    other = path.with_name(name)
    other.write_bytes(content)
    read_images(path, other)


def image_readers() -> Iterable[Reader]:
    """Yield the readers of image files, one for each kind."""
    pixels = np.random.default_rng(2).integers(0, 255, (24, 20, 3), dtype=np.uint8)
    turned = Image.Exif()
    turned[0x112] = 6
    options = {"JPEG": {"exif": turned}, "PNG": {"exif": turned}, "TIFF": {"compression": "tiff_lzw", "exif": turned}}
    endings = {"JPEG": "jpg", "PNG": "png", "GIF": "gif", "TIFF": "tif", "WEBP": "webp", "BMP": "bmp", "PPM": "ppm"}
    for kind, ending in endings.items():
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, kind, **options.get(kind, {}))
        ways: tuple[Read, ...] = (
            lambda path: read_image(path, own_shape(path)),
            lambda path: read_image(path, ImageShape(8, 3)),
            lambda path: read_image(path, ImageShape(8, 1)),
        )
        yield Reader(ending, f"image.{ending}", buffer.getvalue(), ways)


def vocabulary_readers() -> Iterable[Reader]:
    """Yield the readers of vocabularies."""
    ranks = [*(bytes([byte]) for byte in range(256)), b"th", b"the"]
    tiktoken = b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(ranks))
    known = [dataclasses.replace(one, n_ranks=len(ranks)) for one in KNOWN[-1:]]
    ways: tuple[Read, ...] = (lambda path: read_tiktoken(path, known=known).encode_batch(["Hello, you"]),)
    yield Reader("tiktoken", "vocabulary.tiktoken", tiktoken, ways, zipped=True)
    texts = [source for source, _ in PAIRS] * 20
    for kind in ("unigram", "bpe", "words", "bytes", "characters"):
        content = learn(texts, kind=kind, vocab_size=300).to_json().encode()
        ways = (lambda path: Tokenizer.load(path).encode_batch(["Hello, you", "xyz"]),)
        yield Reader(f"vocabulary {kind}", "vocabulary.json", content, ways)


# -- runs --------------------------------------------------------------------------------------------------------------

LAST = "checkpoints/step-00000004"
TRAINED = {"translate": "translate-accumulate-ema", "classify": "classify-bert", "image": "image-resnet"}


def train_runs(folder: Path) -> dict[str, Path]:
    """Train a tiny run of three tasks; return their folders by name."""
    write_data(folder / "data")
    runs = {}
    for name in TRAINED.values():
        golden = BY_NAME[name]
        settings = {**settings_of(golden, folder / "data"), "training.steps": 4, "training.validate_every": 2}
        settings |= {"training.ema": 0.8, "training.average": 2}
        files = [str(folder / "data" / file) for file in golden.files]
        path = folder / golden.task / "run"
        regard.train(golden.task, train=files, run=path, model=golden.model, settings=settings, progress=False)
        runs[golden.task] = path
    return runs


def run_readers(folder: Path) -> Iterable[Reader]:
    """Yield the readers of every file of a run, of a text's vocabulary, labels and images, and of the cache."""
    runs = train_runs(folder)
    image = next((folder / "data" / "images").rglob("*.png"))
    use: dict[str, Callable[[str], object]] = {
        "translate": lambda run: load(run).translate("the dog runs", beam=1),
        "classify": lambda run: load(run).predict("the dog runs"),
        "image": lambda run: load(run).predict(str(image)),
    }
    files = {
        "translate": [
            "config.toml",
            "task.json",
            "metrics.jsonl",
            "vocabulary/shared.json",
            f"{LAST}/manifest.json",
            f"{LAST}/state.json",
            f"{LAST}/model.safetensors",
            f"{LAST}/optimizer.safetensors",
            f"{LAST}/ema.safetensors",
            "checkpoints/average-00000004/model.safetensors",
        ],
        "classify": ["vocabulary/labels.json"],
        "image": ["config.toml", "vocabulary/images.json"],
    }
    for task, names in files.items():
        for name in names:
            # The checkpoint itself where it is damaged: a run would take another.
            part = "@4" if name.startswith(LAST) else "@average" if "average" in name else ""
            ways = tuple(partial(in_run, name, way) for way in (partial(use_with, use[task], part), go_on, show))
            sealed = name.startswith("checkpoints/") and not name.endswith("manifest.json")
            label = name.removeprefix("checkpoints/").replace("-00000004", "")
            content = (runs[task] / name).read_bytes()
            yield Reader(f"{task}: {label}", name, content, ways, runs[task], sealed=sealed)
    tests = {task: [str(folder / "data" / file) for file in BY_NAME[name].files] for task, name in TRAINED.items()}
    for task, run in runs.items():
        content = (run / BASELINE).read_bytes()
        ways = tuple(partial(in_run, BASELINE, way) for way in (partial(score, tests[task]), go_on))
        yield Reader(f"{task}: {BASELINE}", BASELINE, content, ways, run)
    corpus = folder / "corpus"
    with CorpusWriter(corpus) as writer:
        writer.add(ids=300, text=TEXT)
        for number, (source, _) in enumerate(PAIRS):
            writer.append(ids=[number, 7], text=source)
    for name in ("index.json", "ids.values", "text.offsets"):
        yield Reader(f"cache: {name}", name, (corpus / name).read_bytes(), (open_corpus,), corpus)


def load(run: str) -> Any:
    return regard.load(run, device="cpu", threads=1)


def use_with(use: Callable[[str], object], part: str, run: Path) -> None:
    use(f"{run}{part}")


def score(files: list[str], run: Path) -> None:
    load(str(run)).evaluate(files)


def in_run(file: str, way: Read, path: Path) -> None:
    way(path.parents[file.count("/")])


def go_on(run: Path) -> None:
    """Resume a run up to the first update, if there is still one."""
    for event in resume(run, settings={"training.steps": 5}):
        if isinstance(event, Updated):
            return


def show(run: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        run_command(["show", str(run)])


def open_corpus(path: Path) -> None:
    corpus = Corpus.open(path.parent)
    for row in range(len(corpus)):
        if corpus.ragged["text"].text(row) != PAIRS[row][0]:
            raise ValueError(f"row {row} of a damaged corpus was taken for whole")


def all_readers(folder: Path, *, group: str = "") -> Mapping[str, Reader]:
    """Return all readers by name, or one group of them: formats, runs. `folder` is for what they need."""
    readers: list[Reader] = []
    if group != "runs":
        readers += [*row_readers(), *array_readers(), *image_readers(), *vocabulary_readers()]
    if group != "formats":
        readers += run_readers(folder)
    return {reader.name: reader for reader in readers}
