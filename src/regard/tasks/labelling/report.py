"""What is told of labelled data: in the report before the first step, and beside scores."""

from typing import TYPE_CHECKING

import numpy as np

from regard.data.labelled.dataset import LabelledDataset
from regard.data.labelled.storage import cut_sentence
from regard.data.pipeline.encoding import scored_notes
from regard.models.presets import positions_of
from regard.tasks.labelling.examples import SequenceExamples

if TYPE_CHECKING:
    from regard.tasks.labelling.base import LabellingTask

Facts = tuple[tuple[str, str], ...]  # label and text


def preparation_facts(
    task: "LabellingTask", found: LabelledDataset, train: SequenceExamples, valid: SequenceExamples
) -> Facts:
    """What the report before the first step says of the data, the labels and what of the model depends on them."""
    tokens = "tokens" if task.tokenizer is not None else "vectors"
    facts = [
        ("training", f"{len(train):,} {task.unit}, {int(train.lengths.sum(dtype=np.int64)):,} {tokens}"),
        ("validation", f"{len(valid):,} {task.unit}{', held out' if found.n_held_out else ''}"),
    ]
    if task.tokenizer is None:
        facts.append(("features", f"{task.table.n_features:,} a vector"))
    else:
        facts.append(("vocabulary", f"{task.tokenizer.vocab_size:,} tokens ({task.tokenizer.kind})"))
    facts.append(("batches", train.about_batches()))
    facts += task.label_facts()
    if task.longest < task.config.data.max_length:
        longest = f"{task.longest:,} {tokens}: the model has positions for {positions_of(task.config.model):,}"
        specials = f", {task.n_around} of them for special ones" if task.n_around else ""
        facts.append(("max length", longest + specials))
    if task.word_vectors is not None:
        facts.append(("vectors", task.word_vectors.about("words")))
    return (*facts, *found.notes)


def evaluation_notes(examples: SequenceExamples, longest: int) -> tuple[str, ...]:
    """What a reader of scores should know of the examples: which were left out, and which cut to the `longest` read."""
    corpus, files = examples.corpus, examples.files
    notes = scored_notes(corpus, files)
    cut = cut_sentence(corpus, files, longest)
    return (*notes, f"Cut: {cut}.") if cut else tuple(notes)
