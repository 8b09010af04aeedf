"""The linear layer y = x Wᵀ + b, as `nn.Linear` has it, which says what it does in its model."""

from torch import nn

from regard.parts.initialisation import Role


class Linear(nn.Linear):
    """(…, I) to (…, O). A role says what it does in its model, for first weights that go by it (initialisation.py)."""

    def __init__(self, n_inputs: int, n_outputs: int, *, bias: bool = True, role: Role = "") -> None:
        super().__init__(n_inputs, n_outputs, bias=bias)
        self.role = role
