"""What the tasks share that say one thing of a whole sequence, classify and regress: how what is given is answered."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from regard.errors import UsageError
from regard.tasks.labelling.base import SequenceTask
from regard.tasks.labelling.examples import Outputs, SequenceExamples
from regard.tasks.labelling.inputs import Inputs, text_inputs, vector_inputs

Answer = TypeVar("Answer")


class WholeSequenceTask(SequenceTask, Generic[Answer]):
    """A task that says one thing of each sequence."""

    n_specials = 3  # <start> text <end> second <end>

    @abstractmethod
    def said(self, output: Outputs, *, cut: bool) -> Answer:
        """What an output (n_outputs,) says of a sequence, of which the end was perhaps `cut`."""

    def predict(
        self,
        model: Any,
        inputs: Inputs,
        texts_b: Sequence[str] = (),
        *,
        progress: Callable[[int], None] | None = None,
    ) -> list[Answer]:
        """Answer each text, or each sequence of vectors (T, F), in their order.

        texts_b: the second text of each, empty where there is none.
        """
        if self.tokenizer is None:
            sequences, cut = vector_inputs(inputs, texts_b, n_features=self.table.n_features, longest=self.longest)
        else:
            self._check_pairs(len(inputs), any(texts_b))
            sequences, cut = text_inputs(inputs, texts_b, self.tokenizer, longest=self.longest)
        outputs = self.read_sequences(model, sequences, progress=progress)
        return [self.said(output, cut=was_cut) for output, was_cut in zip(outputs, cut, strict=True)]

    def _check_pairs(self, n_texts: int, are_pairs: bool) -> None:
        """Refuse second texts where the model has never seen any, and single texts where it has seen pairs only."""
        if not n_texts or are_pairs == self.table.pairs:
            return
        if are_pairs:
            raise UsageError("The model learned from single texts, and second ones are given.", "Leave them out.")
        raise UsageError(
            "The model learned from pairs of texts, and there is no second text.",
            "Give one to each: --text-b TEXT, or a tab and the text behind a line of standard input; in Python texts_b=[…].",
        )

    def answers(self, examples: SequenceExamples, outputs: Sequence[Outputs]) -> list[Answer]:
        cut = examples.corpus.numbers["cut"].tolist()
        return [self.said(output, cut=bool(was_cut)) for output, was_cut in zip(outputs, cut, strict=True)]
