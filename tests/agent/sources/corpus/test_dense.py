"""The dense part of an index: what it finds, what it keeps, what a kill leaves, and what it refuses."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from agent.errors import CorpusError
from agent.sources.corpus import dense
from agent.sources.corpus.ann import Ann, recall
from agent.sources.corpus.dense import CHUNK, DenseIndex, build_dense, discard, read_dense_card
from agent.sources.corpus.libraries import need
from agent.sources.corpus.vectors import VectorLog, exact_vectors, key_of
from tests.agent.sources.corpus.encoding import MINILM, WordEncoder, needs_faiss, needs_model, tiny_encoder

pytestmark = needs_faiss
ROOT = Path(__file__).parents[4]


def passages(count: int) -> list[tuple[str, str]]:
    return [(f"Title {n}", f"about thing{n % 50} and matter{n} of place{n % 7}") for n in range(count)]


def best(folder: Path, encoder: WordEncoder, query: str, limit: int = 3) -> list[int]:
    return [row for row, _ in DenseIndex(folder).search(encoder.encode_queries([query]), limit)[0]]


def test_a_passage_is_found_by_its_row(tmp_path: Path):
    encoder = WordEncoder()
    card = build_dense(passages(300), tmp_path / "dense", count=300, encoder=encoder)
    assert best(tmp_path / "dense", encoder, "Title 217\nabout thing17 matter217", 1) == [217]
    assert (card.passages, card.encoded, card.dim, card.index.kind) == (300, 300, 32, "flat")
    assert card.bytes == sum(p.stat().st_size for p in (tmp_path / "dense").iterdir() if p.name != "card.json")
    assert read_dense_card(tmp_path / "dense") == card


def test_passages_that_an_older_index_knows_keep_their_vector_wherever_they_stand_now(tmp_path: Path):
    old, new = passages(300), [*passages(310)[305:], *reversed(passages(300)[50:])]
    build_dense(old, tmp_path / "old", count=300, encoder=WordEncoder())
    encoder = WordEncoder()
    card = build_dense(new, tmp_path / "new", count=255, encoder=encoder, older=tmp_path / "old")
    assert card.encoded == len(encoder.encoded) == 5
    fresh = WordEncoder().encode_passages([dense.passage_text(*passage) for passage in new])
    assert np.allclose(exact_vectors(tmp_path / "new"), fresh)


@pytest.mark.parametrize("other", [WordEncoder(fingerprint="words-2"), WordEncoder(passage_prefix="passage: ")])
def test_an_older_index_of_another_model_gives_nothing(tmp_path: Path, other: WordEncoder):
    build_dense(passages(20), tmp_path / "old", count=20, encoder=WordEncoder())
    card = build_dense(passages(20), tmp_path / "new", count=20, encoder=other, older=tmp_path / "old")
    assert card.encoded == 20


def test_equal_passages_are_encoded_once(tmp_path: Path):
    encoder = WordEncoder()
    build_dense([("T", "same"), ("T", "other"), ("T", "same")], tmp_path / "dense", count=3, encoder=encoder)
    assert sorted(encoder.encoded) == ["T\nother", "T\nsame"]
    assert best(tmp_path / "dense", encoder, "T same") == [0, 2, 1]


KILLED = """
import sys
from pathlib import Path
from agent.sources.corpus.dense import CHUNK, build_dense
from tests.agent.sources.corpus.encoding import WordEncoder
from tests.agent.sources.corpus.test_dense import passages

class Stuck(WordEncoder):
    def encode_passages(self, passages):
        if len(self.encoded) >= 2 * CHUNK:
            print("stuck", flush=True)
            sys.stdin.read()
        return super().encode_passages(passages)

folder = Path(sys.argv[1])
build_dense(passages(4 * CHUNK), folder / "dense", count=4 * CHUNK, encoder=Stuck(), log=folder / "log")
"""


def test_a_build_after_a_killed_one_goes_on_where_that_was(tmp_path: Path):
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"stuck\n"
        child.kill()
    assert not (tmp_path / "dense" / "card.json").exists()
    with (next((tmp_path / "log").glob("*.vectors"))).open("ab") as torn:
        torn.write(b"half a vector")
    encoder = WordEncoder()
    count = 4 * CHUNK
    card = build_dense(passages(count), tmp_path / "dense", count=count, encoder=encoder, log=tmp_path / "log")
    assert card.encoded == len(encoder.encoded) == 2 * CHUNK
    whole = WordEncoder().encode_passages([dense.passage_text(*passage) for passage in passages(count)])
    assert np.allclose(exact_vectors(tmp_path / "dense"), whole)
    discard(tmp_path / "log")
    assert not (tmp_path / "log").exists()


def test_the_log_of_another_model_is_dropped(tmp_path: Path):
    ones = np.ones((1, 4), np.float32)
    with VectorLog(tmp_path, model="a", dim=4) as log:
        log.add([key_of("x")], ones)
    with VectorLog(tmp_path, model="a", dim=4) as log:
        assert np.array_equal(log.get(key_of("x")), ones[0])
    with VectorLog(tmp_path, model="b", dim=4) as log:
        assert key_of("x") not in log
    with VectorLog(tmp_path, model="a", dim=4) as log:
        assert len(log) == 0


@pytest.mark.parametrize("kind", ["hnsw", "ivf-sq8", "ivf-pq"])
def test_the_recall_on_the_card_is_the_recall_of_another_measurement(tmp_path: Path, kind: dense.Kind):
    encoder = WordEncoder()
    reported = list[tuple[int, int]]()
    card = build_dense(
        passages(3000),
        tmp_path / "dense",
        count=3000,
        encoder=encoder,
        kind=kind,
        progress=lambda done, total: reported.append((done, total)),
    )
    probes = [" ".join(text.split()[:12]) for _, text in passages(3000)[::15]]
    assert len(probes) == card.probes == 200
    opened = Ann.open(tmp_path / "dense", card.index)
    assert recall(opened, encoder.encode_queries(probes)) == pytest.approx(card.recall_10, abs=1e-4)
    assert card.recall_10 >= 0.9
    assert reported[-1] == (3000, 3000)
    assert [done for done, _ in reported] == sorted(done for done, _ in reported)


def test_queries_of_another_model_are_refused(tmp_path: Path):
    build_dense(passages(5), tmp_path / "dense", count=5, encoder=WordEncoder())
    index = DenseIndex(tmp_path / "dense")
    index.refuse_other(WordEncoder())
    with pytest.raises(CorpusError, match=r"was built with the model words, .*build the index again"):
        index.refuse_other(WordEncoder(fingerprint="words-2"))


@needs_model
def test_an_index_loads_the_model_that_built_it_and_refuses_one_of_the_same_name(tmp_path: Path):
    from agent.sources.corpus.encoder import Encoder

    folder = tiny_encoder(tmp_path / "model")
    encoder = Encoder.load(folder, query_prefix="ask: ")
    build_dense(passages(5), tmp_path / "dense", count=5, encoder=encoder)
    index = DenseIndex(tmp_path / "dense")
    again = index.encoder()
    assert (again.fingerprint, again.query_prefix) == (encoder.fingerprint, "ask: ")
    with pytest.raises(CorpusError, match="which is not the one"):
        index.encoder(MINILM)
    tiny_encoder(folder, seed=1)
    with pytest.raises(CorpusError, match="which is not the one"):
        index.encoder()


@pytest.mark.parametrize("count", [9, 11])
def test_a_wrong_count_of_passages_is_an_error(tmp_path: Path, count: int):
    with pytest.raises(CorpusError, match=f"{count}"):
        build_dense(passages(10), tmp_path / "dense", count=count, encoder=WordEncoder())


def damage_card(folder: Path) -> None:
    (folder / "card.json").write_text("{}", encoding="utf-8")


def damage_vectors(folder: Path) -> None:
    (folder / "vectors.npy").write_bytes(b"nothing")


def other_vectors(folder: Path) -> None:
    np.save(folder / "vectors.npy", np.zeros((3, 32), np.float32))


def other_count(folder: Path) -> None:
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    (folder / "card.json").write_text(json.dumps(card | {"passages": 11}), encoding="utf-8")


@pytest.mark.parametrize("damage", [damage_card, damage_vectors, other_vectors, other_count])
def test_a_damaged_part_is_refused_with_the_fix_and_gives_nothing_to_the_next_build(tmp_path: Path, damage: object):
    build_dense(passages(10), tmp_path / "dense", count=10, encoder=WordEncoder())
    assert callable(damage)
    damage(tmp_path / "dense")
    with pytest.raises(CorpusError, match="again"):
        DenseIndex(tmp_path / "dense")
    card = build_dense(passages(10), tmp_path / "new", count=10, encoder=WordEncoder(), older=tmp_path / "dense")
    assert card.encoded == (0 if damage is other_count else 10)


def test_each_worker_searches_with_its_share_of_the_cores(tmp_path: Path):
    build_dense(passages(5), tmp_path / "dense", count=5, encoder=WordEncoder())
    index, faiss, shares = DenseIndex(tmp_path / "dense"), need("faiss"), list[int]()
    before = faiss.omp_get_max_threads()

    def worker() -> None:
        index.share_cores(10_000)
        shares.append(faiss.omp_get_max_threads())

    thread = Thread(target=worker)
    thread.start()
    thread.join()
    assert shares == [1]
    assert faiss.omp_get_max_threads() == before, "no other threads are touched"


def test_passages_are_read_once_and_chunk_by_chunk(tmp_path: Path):
    """A corpus larger than the memory can be built."""
    most = 0
    encoder = WordEncoder()

    def stream() -> Iterator[tuple[str, str]]:
        nonlocal most
        for at, passage in enumerate(passages(3 * CHUNK)):
            most = max(most, at - len(encoder.encoded))
            yield passage

    build_dense(stream(), tmp_path / "dense", count=3 * CHUNK, encoder=encoder)
    assert most < CHUNK
