"""What an exporter is given of a run: its network, its tokenizers, its labels, its model card. Nothing of files."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from regard.data.text.tokenizer import Tokenizer
from regard.exchange.image_preprocessing import ImagePreprocessing
from regard.models.model_config import ModelConfig


@dataclass(frozen=True, kw_only=True)
class Exportable:
    """A trained run, without the run folder.

    task:            by its name in `tasks/spec.py`
    config, weights: the network, as `state_dict` has it
    source, target:  the tokenizers of what is read and written, one and the same but for some translators; None for images
                     and vectors
    labels:          of a classifier or tagger, in their order
    longest:         the most tokens, or vectors, of an example that are read, special ones not counted; None for as many as
                     the network has positions for
    unit:            what number a similarity of 0 stands for, and how much more one of 1
    pooling:         of texts that are compared, what of its states is a text's vector: mean, or class for the first
    normalised:      whether that vector is divided by its length
    image:           how pixels are prepared
    card:            the model card, in Markdown
    """

    task: str
    config: ModelConfig
    weights: Mapping[str, Tensor]
    source: Tokenizer | None = None
    target: Tokenizer | None = None
    labels: tuple[str, ...] = ()
    longest: int | None = None
    unit: tuple[float, float] = (0.0, 1.0)
    pooling: str = "mean"
    normalised: bool = False
    image: ImagePreprocessing | None = None
    card: str = ""

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        """The tokenizers by side, or one for all text under the empty name; none where nothing is read as text."""
        if self.source is None or self.target is None:
            return {}
        return {"": self.source} if self.source is self.target else {"source": self.source, "target": self.target}

    @property
    def tokenizer_files(self) -> dict[str, str]:
        """The text of a tokenizer.json for each, by its name in a folder."""
        return {f"{side}_tokenizer.json".lstrip("_"): one.to_json() for side, one in self.tokenizers.items()}
