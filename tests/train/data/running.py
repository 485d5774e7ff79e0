"""A build in a process of its own, to be killed: python -m tests.train.data.running DOCS OUT URL."""

import sys
from pathlib import Path

from tests.train.data.made import recipe_for, words
from train.data.build import build
from train.data.inputs import Files
from train.data.model import WriterOptions

if __name__ == "__main__":
    docs, out, url = sys.argv[1:]
    files = Files([(path.stem, path) for path in (Path(docs) / "news.jsonl", Path(docs) / "arxiv.jsonl")])
    writer = WriterOptions(url=url, model="writer", concurrency=1)
    build(files, recipe_for(files), Path(out), writer=writer, embed=words())
