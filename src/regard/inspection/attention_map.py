"""Attention of one text as a picture: a map of what a decoder attended to, or of every layer and head of an encoder."""

from typing import TYPE_CHECKING

from regard.inspection.render import attention_atlas, attention_picture
from regard.tasks.attention import AttentionWeights

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def text_attention_picture(attention: AttentionWeights, *, title: str) -> "Figure":
    """Draw one map where there is one, else a map for each layer and head."""
    draw = attention_picture if attention.weights.ndim == 2 else attention_atlas
    return draw(attention.weights, attention.columns, attention.rows, title=title)
