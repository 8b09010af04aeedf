"""Names of taps: what each one shows, in a phrase, by the kind of its module and its own name.

docs/taps.md is made of these phrases: a tap of our models without one fails its generation.
"""

import fnmatch

# By pattern of the module's own name and the tap's, numbers left out, as `layers.states`; the first that fits.
PHRASES = {
    "*.tokens": "the token's vector",
    "*.patches": "the patch's vector",
    "*.positions": "the position's vector",
    "*.segments": "the vector of its text",
    "*embedding.sum": "all of them together",
    "*embedding.output": "the sum after the norm",
    "*.bias": "what distance adds to the scores",
    "attention.query": "what the state gives to the scores",
    "attention.key": "what each place of the memory gives to the scores",
    "attention.value": "what each place of the memory gives to the context",
    "*.query": "queries by head",
    "*.key": "keys by head",
    "*.value": "values by head",
    "*.scores": "how well query and key fit, before the mask",
    "*.weights": "attention weights, after mask and softmax",
    "*.heads": "weights times values, by head",
    "*.context": "weights times values",
    "*_attention.output": "what the sublayer adds",
    "feed_forward.output": "what the sublayer adds",
    "*_residual.output": "the residual stream after it",
    "*.hidden": "hidden units, after the activation",
    "layers.states": "the layer's states",
    "*.states": "what was found at each place",
    "*.state": "the state after this step",
    "*.reset_gate": "how much of the old state the candidate reads",
    "*.update_gate": "how much of the old state is kept",
    "*.candidate": "what may be written into the state",
    "*.input_gate": "how much of the candidate is written",
    "*.forget_gate": "how much of the cell is kept",
    "*.output_gate": "how much of the cell is shown",
    "*.cell": "the cell after this step",
    "*.sum": "W[a; x] + b, before the activation",
    "decoder.output": "tanh(W[state; context])",
    "stem.output": "what the first stage reads",
    "block.residual": "what the block found, before the skip joins",
    "block.output": "after the skip and the last activation",
    "shortcut.features": "feature maps of the skip's projection",
    "*.features": "feature maps of a convolution",
    "*.memory": "what the decoder attends to",
    "*.pooled": "one state for the whole sequence",
    "*.logits": "a number for each output, before the softmax",
}
_PLACES = ("N", "M", "L")  # of numbers, as docs/taps.md has them


def tap_phrase(name: str) -> str:
    """What a tap shows, by its public name; empty for one that only a network of the user's own has."""
    module, _, tap = name.rpartition(".")
    kind = next((part for part in reversed(module.split(".")) if not part.isdigit() and part not in _PLACES), "")
    return next((about for pattern, about in PHRASES.items() if fnmatch.fnmatchcase(f"{kind}.{tap}", pattern)), "")
