"""A trained reader, ready to answer: its network, its words and its classes, in one folder of two files."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from agent.errors import CheckpointError
from agent.files.foreign import WHOLE_BYTES, read_text
from train.reader.pages import Classes, ReaderPage, ReaderShape, Sheet, Span, lay_out
from train.reader.words import FIRST_NAME, NAMES, NUMBER, PAD, ReaderVocabulary

CHANNELS: Final = 14
"""What attention knows of two words; see `relations`."""
_NEVER: Final = -1e4


@dataclass(frozen=True)
class ReaderRows:
    """A batch, each tensor [rows, words] and padded with PAD."""

    ids: Tensor
    kinds: Tensor
    segments: Tensor
    keys: Tensor
    values: Tensor

    @property
    def real(self) -> Tensor:
        return self.ids != PAD


class ReaderModel(nn.Module):
    """An encoder that looks at question and pages at once and points at the answer's two ends.

    Unlike the policy it writes nothing, reads both ways, knows no order of pages, and has no pieces of words. It sees
    in its attention which words are the same, which numbers are larger and what stands beside what (relative attention:
    Shaw et al., 2018), so unseen names cost it nothing. Answers that are in no page (counts, "I do not know") are
    classes.
    """

    def __init__(self, *, words: int, classes: int, width: int, layers: int, heads: int, inner: int) -> None:
        """Build it with new weights.

        Args:
            words: size of the vocabulary.
            classes: answers that need no page.
            width: of a word's vector.
            layers: how often each word looks at the others.
            heads: of attention; divides `width`.
            inner: width inside a feed-forward block.
        """
        super().__init__()
        self.heads = heads
        self.words = nn.Embedding(words, width, padding_idx=PAD)
        self.kinds = nn.Embedding(3, width)
        self.value = nn.Linear(1, width, bias=False)
        self.bias = nn.Linear(CHANNELS, layers * heads, bias=False)
        self.layers = nn.ModuleList(Layer(width, heads, inner) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.ends = nn.Linear(width, 2)
        self.classes = nn.Linear(2 * width, classes)
        nn.init.normal_(self.words.weight, std=0.5)
        nn.init.normal_(self.bias.weight, std=2.0)

    def forward(self, rows: ReaderRows) -> tuple[Tensor, Tensor]:
        """Log-probabilities of where the answer starts and ends: [rows, words + classes] each.

        The last columns are the classes; for those, start and end are the same column.
        """
        real = rows.real
        x = self.words(rows.ids) + self.kinds(rows.kinds) + self.value(rows.values.unsqueeze(-1))
        bias = self.bias(relations(rows)).permute(0, 3, 1, 2)
        bias = bias.masked_fill(~real[:, None, None, :], _NEVER)
        for layer, own_bias in zip(self.layers, bias.split(self.heads, dim=1), strict=True):
            x = layer(x, own_bias)
        x = self.norm(x)
        ends = self.ends(x).masked_fill(~real.unsqueeze(-1), _NEVER)
        known = self.classes(self._summary(x, rows))
        start = torch.cat((ends[..., 0], known), dim=1)
        end = torch.cat((ends[..., 1], known), dim=1)
        return functional.log_softmax(start.float(), dim=1), functional.log_softmax(end.float(), dim=1)

    def _summary(self, x: Tensor, rows: ReaderRows) -> Tensor:
        """Of the question its mean, of everything its largest: [rows, 2 width]."""
        question = ((rows.segments == 0) & rows.real).unsqueeze(-1)
        mean = (x * question).sum(1) / question.sum(1).clamp(min=1)
        largest = x.masked_fill(~rows.real.unsqueeze(-1), _NEVER).amax(1)
        return torch.cat((mean, largest), dim=1)


class Layer(nn.Module):
    def __init__(self, width: int, heads: int, inner: int) -> None:
        """One round of attention and one feed-forward block, each after a norm and added to what was there."""
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(width)
        self.asks = nn.Linear(width, 3 * width, bias=False)
        self.gives = nn.Linear(width, width, bias=False)
        self.between = nn.LayerNorm(width)
        self.opens = nn.Linear(width, inner)
        self.closes = nn.Linear(inner, width)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        """From [rows, words, width] to the same; `bias` is [rows, heads, words, words]."""
        rows, words, width = x.shape
        projected = self.asks(self.before(x)).view(rows, words, 3, self.heads, width // self.heads)
        query, key, value = projected.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-1, -2) * (width // self.heads) ** -0.5 + bias
        seen = (scores.softmax(-1) @ value).transpose(1, 2).reshape(rows, words, width)
        x = x + self.gives(seen)
        return x + self.closes(functional.gelu(self.opens(self.between(x))))


def relations(rows: ReaderRows) -> Tensor:
    """What attention knows of each word i and each word j: zeros and ones of [rows, words, words, CHANNELS]."""
    keys, segments = rows.keys, rows.segments
    number = rows.ids == NUMBER
    name = (rows.ids >= FIRST_NAME) & (rows.ids < FIRST_NAME + NAMES)
    same = (keys[:, :, None] == keys[:, None, :]) & (keys[:, :, None] > 0)
    together = (segments[:, :, None] == segments[:, None, :]) & rows.real[:, None, :]
    apart = _distance(keys.shape[1], keys.device)
    values = rows.values
    numbers = number[:, :, None] & number[:, None, :]
    channels = (
        same & name[:, :, None],
        same & ~name[:, :, None],
        _same_pair(same),
        together & (apart == -1),
        together & (apart == 1),
        together & (apart < -1) & (apart >= -4),
        together & (apart > 1) & (apart <= 4),
        together,
        together & (rows.kinds == 1)[:, None, :],
        (segments == 0)[:, None, :] & rows.real[:, None, :] & ~together,
        numbers & (values[:, :, None] > values[:, None, :]),
        numbers & (values[:, :, None] < values[:, None, :]),
        (apart == 0).expand_as(same),
        same & (segments == 0)[:, None, :],
    )
    return torch.stack(channels, dim=-1).float()


def _distance(words: int, device: torch.device) -> Tensor:
    """How far word j stands after word i: [1, words, words]."""
    places = torch.arange(words, device=device)
    return (places[None, :] - places[:, None]).unsqueeze(0)


def _same_pair(same: Tensor) -> Tensor:
    """Whether two words are the same, and so are those before or after both: two words of one name."""
    before = functional.pad(same[:, :-1, :-1], (1, 0, 1, 0))
    after = functional.pad(same[:, 1:, 1:], (0, 1, 0, 1))
    return same & (before | after)


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
