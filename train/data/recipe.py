"""What decides which questions come out of a build, for the manifest and for going on. Nothing runs here."""

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Kind = Literal["factual", "causal", "choice"]
KINDS: Final[tuple[Kind, ...]] = ("factual", "causal", "choice")
WORDS: Final = "words"
"""The embedder that is no model: hashed words."""
GRAMMAR: Final = "grammar"
"""The writer of the little world's questions."""


class DataRecipe(BaseModel):
    """Settings of a build; the paper's values where it gives them, and ours where it does not."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["data"] = "data"
    name: str
    seed: int = 0
    documents: dict[str, str]
    """What is read → its SHA-256."""
    thin_words: int = Field(default=40, ge=0)
    """Documents with fewer words are left out."""
    similar: float = Field(default=0.8, gt=0, le=1)
    """Jaccard similarity of two documents' runs of words from which the later one is a near-duplicate."""
    shingle: int = Field(default=3, ge=1)
    """Words of such a run."""
    permutations: int = Field(default=128, ge=16)
    """Of MinHash."""
    embedder: str
    """A sentence-transformers model, or `words`."""
    dimensions: int = Field(default=50, ge=2)
    """That UMAP leaves (the paper's 50)."""
    neighbours: int = Field(default=15, ge=2)
    """Of UMAP."""
    group: int = Field(default=30, ge=2)
    """Documents of a thematic group, in the mean: it decides how many groups the clustering makes."""
    least: int = Field(default=2, ge=2)
    most: int = Field(default=4, ge=2)
    """Documents of a bundle (the paper's 2 to 4)."""
    reach: float = Field(default=0.3, ge=-1, le=1)
    """Cosine from which a cluster of one source takes in the nearest document of another one; 1 takes in none."""
    bundles: Literal["diverse", "same"] = "diverse"
    """Of several sources each, or of one source each: the arm to compare with."""
    kinds: tuple[Kind, ...] = KINDS
    """Of questions that a model writes, one of each about every bundle."""
    each: int = Field(default=8, ge=1)
    """Questions that the grammar writes about one bundle, at most."""
    writer: str = GRAMMAR
    """The model's name, or `grammar`."""
    temperature: float = Field(default=0.0, ge=0, le=2)
    """Of what is written; filters ask at 0."""
    limit: int = Field(default=0, ge=0)
    """Bundles that get questions, drawn by the seed; 0: all."""

    @model_validator(mode="after")
    def _bundles_can_be_made(self) -> "DataRecipe":
        if self.least > self.most:
            raise ValueError(f"a bundle of at least {self.least} documents cannot have at most {self.most}")
        if not self.kinds:
            raise ValueError(f"name at least one kind of question: {', '.join(KINDS)}")
        return self
