"""What `regard predict` writes of images: a line each, the file's name first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from regard.cli.prediction_view import as_json, as_lines
from regard.cli.terminal import Waiting, note, tell
from regard.cli.translate import chunks, one_line
from regard.errors import DataError, UsageError

if TYPE_CHECKING:
    from regard.api import Run
    from regard.config import DecodingConfig
    from regard.data.images.decoding import Pixels
    from regard.tasks.images.caption_generation import Described
    from regard.tasks.images.captioning import CaptioningTask

TASKS = ("image", "caption")


def predict_images(
    loaded: "Run",
    files: Sequence[str],
    *,
    top: int,
    json: bool,
    writing: "DecodingConfig",
    seed: int,
    written: Mapping[str, str],
    unread: list[str],
    progress: Waiting,
) -> Iterator[list[str]]:
    """Yield what is written of the images that are named, or by the lines of standard input, some at a time.

    One of several that cannot be read is told and passed over.
    writing, seed: how captions are searched for
    written: the files that will be written, by the options that name them
    unread: gets a line for each that was passed over
    """
    from regard.runs import disk
    from regard.runtime import mix

    if not all(map(str.strip, files)):
        raise UsageError("The name of an image is empty.", "Name the images: photo.jpg")
    done = 0
    for number, lines in enumerate(chunks(files)):
        named = [line for line in lines if line.strip()]
        refuse_overwriting(named, written)
        images = decoded(loaded, named, alone=len(files) == 1, unread=unread)
        names = [name for name, _ in images]
        found = loaded.predict(
            [pixels for _, pixels in images],
            decoding=writing,
            # Equal images of two chunks are drawn independently too.
            seed=seed if number == 0 else mix(seed, "chunk", number),
            progress=progress.after(done),
        )
        done += len(named)
        if json:
            facts = [as_json(one, top=top) for one in found]
            for own in facts:
                own.pop("cut", None)  # which texts may be, and images never are
            yield [disk.as_json({"image": name, **own}).decode() for name, own in zip(names, facts, strict=True)]
        else:
            yield [
                f"{one_line(name)}\t{line}"
                for name, one in zip(names, found, strict=True)
                for line in as_lines(one, top=top)
            ]


def decoded(loaded: "Run", files: Sequence[str], *, alone: bool, unread: list[str]) -> "list[tuple[str, Pixels]]":
    """Return the images that can be read, each with its pixels; of one that is named alone, its error is the command's."""
    from regard.data.images.decoding import BadImageError
    from regard.tasks.images.image_classification import decode

    found = []
    for file in files:
        try:
            found.append((file, decode(file, loaded.task.table)))
        except BadImageError as error:
            if alone:
                raise
            note(f"{error.problem} It is left out.")
            unread.append(file)
    return found


def refuse_unread(files: Sequence[str]) -> None:
    """End with an error where some images could not be read, all others being answered."""
    if files:
        noun, them = ("image", "it") if len(files) == 1 else ("images", "them")
        raise DataError(f"{len(files):,} {noun} could not be read, as told above.", f"Fix {them}, or leave {them} out.")


def refuse_overwriting(images: Sequence[str], written: Mapping[str, str]) -> None:
    """Refuse to write over an image that is read."""
    for option, file in written.items():
        path = Path(file)
        if file and path.exists() and any(Path(image).exists() and path.samefile(image) for image in images):
            raise UsageError(f"{file} is an image that is read.", f"Name another file with {option}.")


def check_image_options(loaded: "Run", *, data: str, text_b: str) -> None:
    """Refuse options that are about text."""
    for option, value in (("--data", data), ("--text-b", text_b)):
        if value:
            raise UsageError(
                f"{option} is for runs over text, and {loaded.reference} reads images.",
                f"Name the images: regard predict {loaded.reference} photo.jpg",
            )


def check_picture(loaded: "Run", files: Sequence[str], *, picture: str, output: str) -> None:
    """Refuse a picture of anything but a few images that are named, and one in the place of the output."""
    from regard.inspection.image_grid import MAX_IMAGES

    if loaded.config.task not in TASKS:
        raise UsageError(
            f"--picture is for runs over images, and {loaded.reference} is one of {loaded.config.task}.",
            "Leave it out.",
        )
    if not 0 < len(files) <= MAX_IMAGES:
        raise UsageError(f"--picture shows 1 to {MAX_IMAGES} images, and {len(files):,} are named.", "Name that many.")
    if output and Path(output).resolve() == Path(picture).resolve():
        raise UsageError(f"--output and --picture name one file, {picture}.", "Name two.")


def draw_picture(loaded: "Run", files: Sequence[str], picture: str, *, writing: "DecodingConfig", seed: int) -> None:
    """Draw images with what is said of each; of one that is captioned, where the model looked while it wrote."""
    from regard.inspection.image_grid import grid_picture
    from regard.inspection.render import save

    if loaded.config.task == "caption" and len(files) == 1:
        draw_looking(loaded, files[0], picture, writing=writing, seed=seed)
        return
    pixels = [own for _, own in decoded(loaded, files, alone=True, unread=[])]
    found = loaded.predict(pixels, decoding=replace(writing, n_best=1), seed=seed)
    answers = [as_lines(one, top=0)[0].replace("\t", ", ") for one in found]
    save(grid_picture(pixels, answers), picture)
    tell(picture)


def draw_looking(loaded: "Run", file: str, picture: str, *, writing: "DecodingConfig", seed: int) -> None:
    """Draw where a captioner looked in an image while it wrote the best caption."""
    from regard.inspection.attention_overlay import overlay_picture
    from regard.inspection.render import save
    from regard.tasks.images.image_classification import decode

    task = cast("CaptioningTask", loaded.task)
    [found] = cast("list[Described]", loaded.predict([file], decoding=writing, seed=seed))
    looking = task.look(loaded.model, file, found.candidates[0].ids)
    if not looking.words:
        raise UsageError(f"The caption of {file} has no words.", "Train the run longer.")
    pixels = decode(file, task.table)
    save(overlay_picture(pixels, looking.words, looking.weights, title=found.text), picture)
    tell(picture)
