"""A checkpoint to a hub, through huggingface_hub: which files go there, and in a sentence what went wrong.

It uploads what a user of the model needs and nothing else: no logs, no state of the training.
"""

import importlib
import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2

from agent.errors import CheckpointError, SetupError
from agent.files.foreign import read_text
from agent.policies.model_folder import ABOUT, EXPORTED, HUB, ModelFolder, look_at
from train.checkpoints.card import OURS

CARD: Final = "README.md"
_FILES: Final = ("*.json", "*.safetensors", "*.jinja", "*.toml", "merges.txt", "LICENSE*")
"""Of the hub's form. Weights in other forms can run code."""
_ADAPTER: Final = "adapter_config.json"
_EXPORTED_FILES: Final = ("*.json", "model.bin", "*.toml")
_METADATA: Final = (
    "---\n{license}library_name: transformers\npipeline_tag: text-generation\ntags:\n- cairn\n- search-agent\n---\n\n"
)


@dataclass(frozen=True)
class Pushed:
    """Where a checkpoint stands now."""

    url: str
    commit: str
    files: tuple[str, ...]


def push(
    folder: Path, name: str, *, private: bool = False, update: bool = False, message: str = "", hub: str = ""
) -> Pushed:
    """Make a repository and upload a checkpoint to it in one commit.

    Args:
        folder: of a run, of a checkpoint, or one of its forms; it holds a card.
        name: USER/NAME.
        private: whether only its owners see the new repository.
        update: put a new version into a repository that is there, instead of making one.
        message: of the commit.
        hub: address of the hub; left out, huggingface_hub's own (HF_ENDPOINT, or the public one).

    Raises:
        CheckpointError: the folder lacks something.
        SetupError: the hub cannot be reached or does not take it; the sentence says the fix.
    """
    files = files_of(folder)
    if name.count("/") != 1:
        raise SetupError(f"{name!r} is not a full repository name; write USER/NAME")
    library = _library()
    token = library.get_token()
    if not token:
        raise SetupError("no token for the hub; log in with `hf auth login`, or set HF_TOKEN")
    api = library.HfApi(endpoint=hub or None, token=token, library_name="cairn")
    with _in_sentences(name, api.endpoint):
        if not update:
            api.create_repo(name, private=private, repo_type="model")
        said = message or ("Put a new version here" if update else "Put the checkpoint here")
        operations = [
            library.CommitOperationAdd(path_in_repo=path, path_or_fileobj=file) for path, file in files.items()
        ]
        commit = api.create_commit(name, operations, commit_message=said, repo_type="model")
    return Pushed(f"{api.endpoint}/{name}", commit.oid, tuple(files))


def files_of(folder: Path) -> dict[str, Path | bytes]:
    """What goes to the hub: place there → file, or its content.

    The hub's form stands at the top, where transformers looks for it, and the exported one in `ct2`; cairn.json and the
    card are there, too, so that `--model DIR` serves what users download.

    Raises:
        CheckpointError: the folder lacks something.
    """
    if (folder / _ADAPTER).is_file():
        return _of_adapter(folder)
    found = look_at(folder)
    if found.about is None:
        raise CheckpointError(
            f"{folder} does not say which protocols its model was trained on (no {ABOUT}); `cairn checkpoint card`"
            " writes it with a run's card, `cairn checkpoint export DIR --out DIR/ct2 --protocol NAME` beside the model"
        )
    if found.hub is None:
        assert found.exported is not None
        return {**_matching(found.exported, _EXPORTED_FILES), CARD: _card(found)}
    if found.missing:
        raise CheckpointError(found.missing)
    files: dict[str, Path | bytes] = dict(_matching(found.hub, _FILES))
    if found.exported is not None:
        exported = _matching(found.exported, _EXPORTED_FILES)
        files |= {f"{EXPORTED}/{name}": path for name, path in exported.items()}
    return files | {ABOUT: (found.about.model_dump_json(indent=2) + "\n").encode(), CARD: _card(found)}


def _of_adapter(folder: Path) -> dict[str, Path | bytes]:
    """The files of an adapter alone, with a card that names its model.

    Raises:
        CheckpointError: the model is a folder of this machine, or there is no card.
    """
    try:
        base = str(json.loads(read_text(folder / _ADAPTER))["base_model_name_or_path"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise CheckpointError(f"{folder / _ADAPTER} cannot be read: {error!r}; save the adapter again") from error
    if Path(base).expanduser().exists() or base.count("/") != 1 or base.startswith((".", "/", "~")):
        raise CheckpointError(
            f"{folder / _ADAPTER} names its model as {base}, which no one else has: write the model's name on the hub "
            "there (base_model_name_or_path: USER/NAME), or push the hub form, which holds the adapter, too"
        )
    card = next(
        (place / CARD for place in (folder, folder.parent, folder.parent / HUB) if (place / CARD).is_file()), None
    )
    if card is None:
        raise CheckpointError(f"{folder} has no card ({CARD}); write one, for example with `cairn checkpoint card`")
    text = card.read_text(encoding="utf-8")
    licence = "license: apache-2.0\n" if OURS in text else ""
    head = _METADATA.format(license=licence).replace("transformers\n", f"peft\nbase_model: {base}\n")
    files: dict[str, Path | bytes] = dict(_matching(folder, _FILES))
    return files | {CARD: (text if text.startswith("---\n") else head + text).encode()}


def quiet() -> None:
    """Draw no progress bars."""
    _library()
    importlib.import_module("huggingface_hub.utils").disable_progress_bars()


def _matching(folder: Path, patterns: tuple[str, ...]) -> Mapping[str, Path]:
    return {path.name: path for pattern in patterns for path in sorted(folder.glob(pattern)) if path.is_file()}


def _card(found: ModelFolder) -> bytes:
    """The card, with the hub's metadata in front where it has none.

    Raises:
        CheckpointError: there is none.
    """
    forms = [form for form in (found.hub, found.exported) if form is not None]
    beside = [form.parent for form in forms if form.name in {HUB, EXPORTED}]
    for path in (place / CARD for place in (found.folder, *beside, *forms)):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            license = "license: apache-2.0\n" if OURS in text else ""
            return (text if text.startswith("---\n") else _METADATA.format(license=license) + text).encode()
    raise CheckpointError(f"{found.folder} has no card ({CARD}); write one, for example with `cairn checkpoint card`")


def _library() -> Any:
    try:
        return importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise SetupError("pushing needs huggingface_hub: pip install 'cairn-search[train]'") from error


@contextmanager
def _in_sentences(name: str, hub: str) -> Generator[None]:
    """What huggingface_hub raises, as one sentence with the fix."""
    errors: Any = importlib.import_module("huggingface_hub.errors")
    try:
        yield
    except errors.HfHubHTTPError as error:
        raise SetupError(_refused(error, name, hub)) from error
    except errors.OfflineModeIsEnabled as error:
        raise SetupError("HF_HUB_OFFLINE keeps this process from the hub; unset it") from error
    except httpx2.TransportError as error:
        raise SetupError(
            f"the hub {hub} cannot be reached ({error}); check that this machine is online, or name another with --hub"
        ) from error
    except (
        OSError,
        ValueError,
        RuntimeError,
    ) as error:  # bad names, metadata, replies; and what hf_xet's uploads raise
        if isinstance(error.__cause__, errors.HfHubHTTPError):
            raise SetupError(_refused(error.__cause__, name, hub)) from error
        why = " ".join(f"{error} {error.__cause__ or ''}".split())
        raise SetupError(f"{name} could not be pushed: {why}") from error


def _refused(error: Any, name: str, hub: str) -> str:
    """What the hub's status means."""
    match error.response.status_code:
        case 401:
            return f"{hub} rejects the token; log in again with `hf auth login`, or set HF_TOKEN"
        case 403:
            return (
                f"the token may not write to {name}; make one that may at {hub}/settings/tokens, or choose another name"
            )
        case 404:
            return (
                f"there is no repository {name} that the token can see: it may be private, or not there yet; "
                "leave --update out to make it, or see whether name and token are right"
            )
        case 409:
            return f"there is a repository {name} already; --update puts a new version there, or choose another name"
        case status:
            return f"{hub} refused to take {name} ({status}): {error.server_message or _first_line(error)}"


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
