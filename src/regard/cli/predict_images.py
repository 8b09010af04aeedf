"""What `regard predict` prints for images, one line each, the file name first; and the pictures that it draws."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli.lines import Lines, Predictor, Shown
from regard.cli.outputs import is_one_of, refuse_picture
from regard.cli.terminal import note, tell
from regard.errors import DataError, UsageError

if TYPE_CHECKING:
    from regard.tasks.results import Result


class ImagePredictions:
    """The predictions for images. Of several, those that cannot be read are noted, and are an error at the end.

    output, picture: files that will be written, and so may be none that is read
    """

    def __init__(self, predict: Predictor, show: Shown, *, output: str, picture: str) -> None:
        self.predict = predict
        self.show = show
        self.picture = picture
        self._written = {"--output": output, "--picture": picture}
        self._drawn: list[Any] = []
        self._n_unread = 0

    def lines(self, files: Sequence[str]) -> Iterator[list[str]]:
        """Yield what is printed for the images that are named, or by the lines of standard input, some at a time."""
        if not all(map(str.strip, files)):
            raise UsageError("The name of an image is empty.", "Name the images: photo.jpg")
        for lines in Lines(files, on_bad="" if files else "stop"):
            names = [line for line in lines if line.strip()]
            self._refuse_overwriting(names)
            shown: list[str] = []
            for one in self.predict.one(names):
                if one.problem:
                    note(f"{one.problem} It is skipped.")
                    self._n_unread += 1
                    continue
                shown += self.show(one)
                if self.picture:
                    self._drawn.append(one)
            yield shown

    def finish(self) -> None:
        """Draw the picture, if one is asked for; then end with an error where images could not be read."""
        if self._drawn:
            self._draw()
        if self._n_unread:
            noun, them = ("image", "it") if self._n_unread == 1 else ("images", "them")
            raise DataError(
                f"{self._n_unread:,} {noun} could not be read; see the notes above.",
                f"Fix {them}, or leave {them} out.",
            )

    def _draw(self) -> None:
        """Draw the images with their predictions; of one alone, where the model attended to, if it has attention."""
        from regard.inspection.image_grid import grid_picture
        from regard.inspection.render import save

        run = self.predict.run
        figure = attention_overlay(run, self._drawn[0]) if len(self._drawn) == 1 else None
        if figure is None:
            pixels = [run.task.table.decode(one.image) for one in self._drawn]
            figure = grid_picture(pixels, list(map(caption_of, self._drawn)))
        tell(f"drawn: {save(figure, self.picture)}")

    def _refuse_overwriting(self, images: Sequence[str]) -> None:
        for option, file in self._written.items():
            if file and is_one_of(file, images):
                raise UsageError(f"{file} is an image that is read.", f"Name another file with {option}.")


def caption_of(result: "Result") -> str:
    """What stands below an image in a grid: what is printed for it, without its name."""
    _, *cells = result.lines()[0].split("\t")
    return ", ".join(cells)


def attention_overlay(run: Any, result: Any) -> Any:
    """Draw where a model attended in an image: while it wrote each word of a caption, or in each layer of a classifier.

    None for a classifier without attention.
    """
    from regard.inspection.attention_overlay import overlay_picture

    if run.spec.generates:
        maps, title = run.task.attention_maps(run.model, result.image, result.outputs[0].ids), result.text
        if not maps.words:
            raise UsageError(f"The caption of {result.image} has no words.", "Train the run longer.")
    else:
        maps, title = run.task.attention_maps(run.model, result.image), caption_of(result)
        if not maps.words:
            return None
    return overlay_picture(run.task.table.decode(result.image), maps.words, maps.weights, title=title)


def check_picture(files: Sequence[str], *, picture: str, output: str) -> None:
    """Refuse a picture of anything but a few images that are named, and one in the place of the output."""
    from regard.inspection.image_grid import MAX_IMAGES

    refuse_picture(picture)
    if not 0 < len(files) <= MAX_IMAGES:
        raise UsageError(f"--picture shows 1 to {MAX_IMAGES} images, not {len(files):,}.", "Name that many images.")
    if output and Path(output).resolve() == Path(picture).resolve():
        raise UsageError(f"--output and --picture both name {picture}.", "Give them different names.")
