"""What `regard predict` writes of images: a line each, the file's name first."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.prediction_view import as_json, as_lines
from regard.cli.terminal import Waiting, tell
from regard.cli.translate import chunks, one_line
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.api import Run

TASKS = ("image", "caption")


def predict_images(
    loaded: "Run", files: Sequence[str], *, top: int, json: bool, written: Mapping[str, str], progress: Waiting
) -> Iterator[list[str]]:
    """Yield what is written of the images that are named, or by the lines of standard input, some at a time.

    written: the files that will be written, by the options that name them
    """
    from regard.runs import disk

    if not all(map(str.strip, files)):
        raise UsageError("The name of an image is empty.", "Name the images: photo.jpg")
    done = 0
    for lines in chunks(files):
        names = [line for line in lines if line.strip()]
        refuse_overwriting(names, written)
        found = loaded.predict(names, progress=progress.after(done))
        done += len(names)
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


def refuse_overwriting(images: Sequence[str], written: Mapping[str, str]) -> None:
    """Refuse to write over an image that is read."""
    for option, file in written.items():
        path = Path(file)
        if file and path.exists() and any(Path(image).exists() and path.samefile(image) for image in images):
            raise UsageError(f"{file} is an image that is read.", f"Name another file with {option}.")


def check_image_options(loaded: "Run", *, data: str, second: str) -> None:
    """Refuse options that are about text."""
    for option, value in (("--data", data), ("--second", second)):
        if value:
            raise UsageError(
                f"{option} is for runs over text, and {loaded.reference} reads images.",
                f"Name the images: regard predict {loaded.reference} photo.jpg",
            )


def check_picture(loaded: "Run", files: Sequence[str], *, picture: str, output: str) -> None:
    """Refuse a picture of anything but one caption, and one in the place of the output."""
    if loaded.config.task != "caption":
        raise UsageError(
            f"--picture is for runs of caption, and {loaded.reference} is one of {loaded.config.task}.", "Leave it out."
        )
    if len(files) != 1:
        raise UsageError(f"--picture is of one image, and {len(files):,} are named.", "Name one image.")
    if output and Path(output).resolve() == Path(picture).resolve():
        raise UsageError(f"--output and --picture name one file, {picture}.", "Name two.")


def draw_looking(loaded: "Run", file: str, picture: str) -> None:
    """Draw where a captioner looked in an image while it wrote the best caption."""
    from regard.inspection.looking import looking_picture
    from regard.inspection.render import save
    from regard.tasks.image import decode

    [found] = loaded.predict([file])
    looking = loaded.task.look(loaded.model, file, found.candidates[0].ids)  # type: ignore[union-attr]
    if not looking.words:
        raise UsageError(f"The caption of {file} has no words.", "Train the run longer.")
    pixels = decode(file, loaded.task.table)
    save(looking_picture(pixels, looking.words, looking.weights, title=found.text), picture)  # type: ignore[union-attr]
    tell(picture)
