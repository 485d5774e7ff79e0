"""Published question sets, read as they are published: `read_dataset(path)` recognises which one a file is."""

from train.evaluation.datasets.base import Paragraph, passage_id
from train.evaluation.datasets.reading import Dataset, read_dataset, write_corpus, write_questions
from train.evaluation.datasets.registry import FORMATS, Format

__all__ = [
    "FORMATS",
    "Dataset",
    "Format",
    "Paragraph",
    "passage_id",
    "read_dataset",
    "write_corpus",
    "write_questions",
]
