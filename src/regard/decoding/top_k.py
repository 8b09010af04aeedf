"""Top-k of many numbers in two rounds: on a CPU twice as fast as torch's `topk` over large vocabularies."""

import torch
from torch import Tensor

# Among fewer numbers than this the rounds cost more than they save.
MANY = 2**18
# How many rows the table has that a vocabulary is laid out in.
LAYERS = 8


def top_k(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest of each row and where they stand, as `values.topk(k)` does; (R, V) to twice (R, k).

    A row is laid out as a table of 8 by V / 8. Of its columns, those k whose maxima are largest hold the k largest
    numbers: one outside of them would have k maxima above it. So one pass finds the maxima, and sorting is done among
    V / 8 numbers, then among 8 k. Which of equal numbers is taken is left open, as in torch.
    """
    width = values.shape[1] // LAYERS
    if values.device.type != "cpu" or values.numel() < MANY or width < k:
        return values.topk(k, dim=-1)
    table = values[:, : LAYERS * width].unflatten(1, (LAYERS, width))  # (R, 8, V / 8)
    columns = table.amax(dim=1).topk(k, dim=-1).indices  # (R, k)
    places = columns.unsqueeze(1) + torch.arange(0, LAYERS * width, width).view(1, LAYERS, 1)  # (R, 8, k)
    rest = torch.arange(LAYERS * width, values.shape[1]).expand(len(values), -1)  # what the division leaves over
    places = torch.cat((places.flatten(1), rest), dim=1)  # (R, 8 k + rest)
    found, chosen = values.gather(1, places).topk(k, dim=-1)
    return found, places.gather(1, chosen)
