"""What `regard predict` writes of images: a line each, the file's name first."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from regard.cli.prediction_view import as_json, as_lines
from regard.cli.terminal import Waiting, tell
from regard.cli.translate import chunks
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.api import Run

TASKS = ("image", "caption")


def predict_images(
    loaded: "Run", files: Sequence[str], *, top: int, json: bool, progress: Waiting
) -> Iterator[list[str]]:
    """Yield what is written of the images that are named, or by the lines of standard input, some at a time."""
    from regard.runs import disk

    done = 0
    for lines in chunks(files):
        names = [line for line in lines if line.strip()]
        found = loaded.predict(names, progress=progress.after(done))
        done += len(names)
        if json:
            yield [
                disk.as_json({"image": name, **as_json(one, top=top)}).decode()
                for name, one in zip(names, found, strict=True)
            ]
        else:
            yield [f"{name}\t{line}" for name, one in zip(names, found, strict=True) for line in as_lines(one, top=top)]


def check_image_options(loaded: "Run", *, data: str, second: str) -> None:
    """Refuse options that are about text."""
    for option, value in (("--data", data), ("--second", second)):
        if value:
            raise UsageError(
                f"{option} is for runs over text, and {loaded.reference} reads images.",
                f"Name the images: regard predict {loaded.reference} photo.jpg",
            )


def check_picture(loaded: "Run", files: Sequence[str]) -> None:
    """Refuse a picture of anything but one caption."""
    if loaded.config.task != "caption":
        raise UsageError(
            f"--picture is for runs of caption, and {loaded.reference} is one of {loaded.config.task}.", "Leave it out."
        )
    if len(files) != 1:
        raise UsageError(f"--picture is of one image, and {len(files):,} are named.", "Name one image.")


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
