"""What `/v1/files` and `/v1/vector_stores` take and give, in OpenAI's shapes. Data alone."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from agent.evidence import Passage
from agent.sanitize.strict import Chars, Strict
from server.chat.request import Incoming, Metadata, Name, few_pairs
from server.libraries.filters import FileFilter, Scalar
from server.libraries.indexing import IndexProgress
from server.store.batches import BatchRow
from server.store.library_rows import Attributes, Counts, FileRow, LibraryRow, Member

MOST_IN_BATCH: Final = 2_000
MOST_QUERIES: Final = 32
FileAttributes = Annotated[dict[Annotated[str, Chars(64)], Scalar], Field(max_length=16), BeforeValidator(few_pairs)]


class _Said(BaseModel):
    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


FileStatus = Literal["in_progress", "completed", "failed", "cancelled"]


class FileObject(_Said):
    id: str
    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    filename: str
    purpose: str
    status: Literal["processed"] = "processed"
    url: str | None = Field(default=None, description="Where it was fetched, if it was.")

    @classmethod
    def of(cls, row: FileRow) -> "FileObject":
        return cls(
            id=row.id,
            bytes=row.bytes,
            created_at=int(row.created),
            filename=row.name,
            purpose=row.purpose or "user_data",
            url=row.url or None,
        )


class Deleted(BaseModel):
    id: str
    object: str
    deleted: Literal[True] = True


class FileCounts(_Said):
    in_progress: int
    completed: int
    failed: int
    cancelled: int
    total: int

    @classmethod
    def of(cls, counts: Counts) -> "FileCounts":
        return cls(
            in_progress=counts.waiting,
            completed=counts.indexed,
            failed=counts.failed,
            cancelled=counts.cancelled,
            total=counts.total,
        )


class Indexing(_Said):
    """How far the indexing is, where this server is at it."""

    part: int
    parts: int
    stage: str
    done: int
    total: int


class LibraryObject(_Said):
    """A library. OpenAI calls it a vector store; here it is searched by words."""

    id: str
    object: Literal["vector_store"] = "vector_store"
    created_at: int
    name: str
    usage_bytes: int
    file_counts: FileCounts
    status: Literal["completed", "in_progress"]
    expires_after: None = None
    expires_at: None = None
    last_active_at: int
    metadata: dict[str, str]
    indexing: Indexing | None = None
    trouble: str | None = Field(default=None, description="Why it cannot be indexed now; it is tried again.")

    @classmethod
    def of(cls, row: LibraryRow, counts: Counts, *, progress: IndexProgress | None, trouble: str) -> "LibraryObject":
        indexing = progress and Indexing(
            part=progress.shard, parts=progress.shards, stage=progress.stage, done=progress.done, total=progress.total
        )
        return cls(
            id=row.id,
            created_at=int(row.created),
            name=row.name,
            usage_bytes=counts.bytes,
            file_counts=FileCounts.of(counts),
            status="in_progress" if counts.waiting else "completed",
            last_active_at=int(row.created),
            metadata=dict(row.metadata),
            indexing=indexing,
            trouble=trouble or None,
        )


class FileError(_Said):
    code: Literal["invalid_file"] = "invalid_file"
    message: str


class LibraryFileObject(_Said):
    """A file in a library."""

    id: str
    object: Literal["vector_store.file"] = "vector_store.file"
    created_at: int
    filename: str
    usage_bytes: int
    vector_store_id: str
    status: FileStatus
    last_error: FileError | None
    attributes: dict[str, str | int | float | bool]
    passages: int
    note: str | None = Field(default=None, description="What of it could not be read, where the rest could.")
    url: str | None = None

    @classmethod
    def of(cls, member: Member) -> "LibraryFileObject":
        states: dict[str, FileStatus] = {"indexed": "completed", "failed": "failed", "cancelled": "cancelled"}
        failed = member.state == "failed"
        return cls(
            id=member.file,
            created_at=int(member.added),
            filename=member.name,
            usage_bytes=member.bytes,
            vector_store_id=member.library,
            status=states.get(member.state, "in_progress"),
            last_error=FileError(message=member.why) if failed else None,
            attributes=dict(member.attributes),
            passages=member.passages,
            note=None if failed else member.why or None,
            url=member.url or None,
        )


class BatchObject(_Said):
    """Files that were put into a library together."""

    id: str
    object: Literal["vector_store.files_batch"] = "vector_store.files_batch"
    created_at: int
    vector_store_id: str
    status: Literal["in_progress", "completed", "cancelled"]
    file_counts: FileCounts

    @classmethod
    def of(cls, batch: BatchRow, counts: Counts) -> "BatchObject":
        return cls(
            id=batch.id,
            created_at=int(batch.created),
            vector_store_id=batch.library,
            status="cancelled" if batch.cancelled else "in_progress" if counts.waiting else "completed",
            file_counts=FileCounts.of(counts),
        )


class FileList(_Said):
    object: Literal["list"] = "list"
    data: list[FileObject]
    first_id: str | None
    last_id: str | None
    has_more: bool


class LibraryList(_Said):
    object: Literal["list"] = "list"
    data: list[LibraryObject]
    first_id: str | None
    last_id: str | None
    has_more: bool


class LibraryFileList(_Said):
    object: Literal["list"] = "list"
    data: list[LibraryFileObject]
    first_id: str | None
    last_id: str | None
    has_more: bool


class NewLibrary(Incoming):
    name: Name = ""
    file_ids: Annotated[list[Name], Field(fail_fast=True, max_length=10_000)] = Field(default_factory=list[str])
    metadata: Metadata | None = None


class ChangedLibrary(Incoming):
    name: Name | None = None
    metadata: Metadata | None = None


class NewMember(Incoming):
    file_id: Name
    attributes: FileAttributes | None = Field(default=None, description="What searches may filter by.")


class ChangedMember(Incoming):
    attributes: FileAttributes | None = Field(description="In the place of those that it had; null: none.")


class NewBatch(Incoming):
    file_ids: Annotated[list[Name], Field(fail_fast=True, max_length=MOST_IN_BATCH)] | None = None
    files: Annotated[list[NewMember], Field(fail_fast=True, max_length=MOST_IN_BATCH)] | None = Field(
        default=None, description="In the place of `file_ids`: each with attributes of its own."
    )
    attributes: FileAttributes | None = Field(default=None, description="Of each file in `file_ids`.")

    @property
    def wanted(self) -> dict[str, Attributes | None]:
        """The attributes of each file, by its id."""
        if self.files:
            return {file.file_id: file.attributes for file in self.files}
        return dict.fromkeys(self.file_ids or (), self.attributes)


class NewLink(Strict):
    url: Annotated[str, Chars(2_000)] = Field(min_length=1, description="Of a page or a file on the web.")


Query = Annotated[str, Chars(4_000), Field(min_length=1)]


def _form(given: Any) -> str:
    return "several" if isinstance(given, list) else "one"


class LibrarySearch(Incoming):
    query: Annotated[
        Annotated[Query, Tag("one")]
        | Annotated[list[Query], Field(fail_fast=True, min_length=1, max_length=MOST_QUERIES), Tag("several")],
        Discriminator(_form),
    ] = Field(description="One query, or several, each of which counts as a search.")
    max_num_results: int = Field(default=10, ge=1, le=50)
    filters: FileFilter | None = Field(default=None, description="Which files, by their attributes.")

    @property
    def queries(self) -> Sequence[str]:
        return [self.query] if isinstance(self.query, str) else list(dict.fromkeys(self.query))


class TextContent(BaseModel):
    type: Literal["text"] = "text"
    text: str


class FoundPassage(BaseModel):
    file_id: str
    filename: str
    score: float
    attributes: dict[str, str | int | float | bool]
    content: list[TextContent]
    passage: str = Field(description="Its id: the file's, and its number there.")
    title: str

    @classmethod
    def of(cls, passage: Passage, member: Member) -> "FoundPassage":
        return cls(
            file_id=member.file,
            filename=member.name,
            score=passage.score,
            attributes=dict(member.attributes),
            content=[TextContent(text=passage.text)],
            passage=passage.id,
            title=passage.title,
        )


class FoundPassages(BaseModel):
    object: Literal["vector_store.search_results.page"] = "vector_store.search_results.page"
    search_query: list[str]
    data: list[FoundPassage]
    has_more: Literal[False] = False
    next_page: None = None


class FileContents(BaseModel):
    """The text of a file in a library."""

    object: Literal["vector_store.file_content.page"] = "vector_store.file_content.page"
    data: list[TextContent]
    has_more: Literal[False] = False
    next_page: None = None


class DocumentPassage(_Said):
    """A piece of a document, as searches find it."""

    id: str
    title: str
    text: str
    start: int
    end: int
    page: int = Field(description="The page or slide that it begins on, from 1; 0 where there are none.")
    page_breaks: list[int] = Field(description="Where in `text` each further page or slide begins, in characters.")


class DocumentText(_Said):
    """A document as it was indexed."""

    file: FileObject
    passages: list[DocumentPassage]
    total: int
