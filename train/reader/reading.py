"""A trained reader, ready to answer: its network, its words and its classes, in one folder of two files."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from agent.errors import CheckpointError
from agent.files.foreign import WHOLE_BYTES, read_text
from train.reader.model import ReaderModel, ReaderRows
from train.reader.pages import Classes, ReaderPage, ReaderShape, Sheet, Span, lay_out
from train.reader.words import PAD, ReaderVocabulary

MOST_ANSWER_WORDS: Final = 10
_WEIGHTS: Final = "reader.safetensors"
_CARD: Final = "reader.json"


def to_rows(sheets: Sequence[Sheet], vocabulary: ReaderVocabulary, rng: random.Random | None = None) -> ReaderRows:
    """Pad sheets to one batch. Names get ids from `rng`; without it, each sheet always gets the same ones."""
    longest = max(len(sheet.words) for sheet in sheets)

    def padded(columns: Sequence[Sequence[float]], kind: torch.dtype) -> Tensor:
        return torch.tensor([[*column, *[0] * (longest - len(column))] for column in columns], dtype=kind)

    return ReaderRows(
        ids=padded([sheet.ids(vocabulary, rng or random.Random(0)) for sheet in sheets], torch.long),
        kinds=padded([sheet.kinds for sheet in sheets], torch.long),
        segments=padded([sheet.segments for sheet in sheets], torch.long),
        keys=padded([sheet.keys for sheet in sheets], torch.long),
        values=padded([sheet.values for sheet in sheets], torch.float32),
    )


class TrainedReader:
    """Answers a question from pages, or from nothing. The same question and pages give the same answer."""

    def __init__(
        self, model: ReaderModel, vocabulary: ReaderVocabulary, classes: Classes, shape: ReaderShape, *, name: str
    ) -> None:
        self.model = model.eval()
        self.vocabulary, self.classes, self.shape, self.name = vocabulary, classes, shape, name

    @classmethod
    def load(cls, folder: Path) -> "TrainedReader":
        """Read a folder that `save` wrote.

        Raises:
            CheckpointError: it holds no reader, or a damaged one.
        """
        try:
            card = json.loads(read_text(folder / _CARD, most=WHOLE_BYTES))
            shape = ReaderShape.model_validate(card["shape"])
            vocabulary, classes = ReaderVocabulary(card["words"]), Classes(tuple(card["classes"]))
            model = make_reader(shape, vocabulary, classes)
            model.load_state_dict({name: tensor.float() for name, tensor in load_file(folder / _WEIGHTS).items()})
        except Exception as error:  # files of strangers fail in many ways
            raise CheckpointError(
                f"{folder} has no usable reader ({error}); train one with cairn train reader"
            ) from error
        return cls(model, vocabulary, classes, shape, name=card["name"])

    def save(self, folder: Path) -> Path:
        """Write weights (as float16) and words."""
        folder.mkdir(parents=True, exist_ok=True)
        weights = {name: tensor.detach().half().contiguous() for name, tensor in self.model.state_dict().items()}
        save_file(weights, folder / _WEIGHTS)
        card = {
            "name": self.name,
            "parameters": self.parameters,
            "shape": self.shape.model_dump(),
            "classes": self.classes.answers,
            "words": self.vocabulary.words,
        }
        (folder / _CARD).write_text(json.dumps(card, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
        return folder

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())

    def answer(self, question: str, pages: Sequence[ReaderPage]) -> str:
        """The most likely answer; it may be a class, such as "I do not know."."""
        sheet = lay_out(question, pages, most_words=self.shape.most_words)
        return self.answers([sheet])[0]

    @torch.no_grad()
    def answers(self, sheets: Sequence[Sheet]) -> list[str]:
        """The same of several."""
        start, end = self.model(to_rows(sheets, self.vocabulary))
        longest = max(len(sheet.words) for sheet in sheets)
        return [self._best(sheet, start[n], end[n], longest) for n, sheet in enumerate(sheets)]

    def _best(self, sheet: Sheet, start: Tensor, end: Tensor, longest: int) -> str:
        known = start[longest:] + end[longest:]
        pair = start[:longest, None] + end[None, :longest]
        texts = torch.tensor(sheet.text_of)
        size = len(sheet.words)
        allowed = torch.zeros_like(pair, dtype=torch.bool)
        allowed[:size, :size] = texts[:, None] == texts[None, :]
        allowed &= torch.ones_like(allowed).triu() & torch.ones_like(allowed).tril(MOST_ANSWER_WORDS - 1)
        pair = pair.masked_fill(~allowed, -torch.inf)
        place = int(pair.argmax())
        if float(pair.flatten()[place]) < float(known.max()):
            return self.classes.answers[int(known.argmax())]
        return sheet.written(Span(place // longest, place % longest))


def make_reader(shape: ReaderShape, vocabulary: ReaderVocabulary, classes: Classes) -> ReaderModel:
    """A network with random weights."""
    return ReaderModel(
        words=len(vocabulary),
        classes=len(classes.answers),
        width=shape.width,
        layers=shape.layers,
        heads=shape.heads,
        inner=shape.inner,
    )


assert PAD == 0, "rows are padded with zeros"
