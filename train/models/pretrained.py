"""A pretrained causal language model as a start: its tokenizer, an adapter beside its weights, the hub form saved.

Any architecture that transformers' Auto classes load by themselves will do (`train.models.causal`).
"""

import json
import logging
import shutil
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

import torch
from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedModel

from agent.errors import CheckpointError, SetupError
from agent.files.foreign import read_text
from agent.policies.hub_form import HubForm, fetch, open_hub_form
from agent.policies.model_folder import ABOUT
from agent.protocols import TextProtocol
from train.common.recipe import AdapterSettings
from train.models.adapters import (
    AdapterFolder,
    bare,
    merged,
    merged_state,
    read_adapter,
    save_adapter,
    with_adapter_of,
    with_new_adapter,
)
from train.models.attention import NAME
from train.models.causal import hidden_of, is_parted, load_model, logits_at, recompute_layers

_log: Final = logging.getLogger(__name__)
ADAPTER: Final = "adapter"
"""Folder beside `hub` in which the adapter alone is saved, in peft's form."""
_KEPT: Final = (
    *("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.json", "merges.txt", "chat_template.jinja", "chat_template.json", "generation_config.json"),
    *("LICENSE*", "NOTICE*", "additional_chat_templates/*.jinja"),
)
"""Files of the start that belong to its tokenizer, its chats and its licence; they are kept as they are."""


@dataclass(frozen=True)
class Pretrained:
    """A model with its tokenizer. `peft` is the model with its adapter, where it has one."""

    folder: Path
    model: PreTrainedModel
    tokenizer: Tokenizer
    end: str
    """The token that ends a turn."""
    context: int
    """Tokens that it takes."""
    peft: Any = None
    parted: bool = True
    """Whether its logits are those of its decoder and its head; otherwise the model has to be called as a whole."""
    was_adapter: bool = False
    """Whether the start was an adapter, so that the weights in `folder` are not those that it began with."""

    @property
    def trained(self) -> torch.nn.Module:
        """What an optimizer sees."""
        return cast(torch.nn.Module, self.peft if self.peft is not None else self.model)

    def logits_at(self, ids: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """The logits behind some of the tokens alone.

        Args:
            ids: [rows, length], padded on the right.
            places: [rows, length], whether the logits behind this token are wanted.

        Returns:
            [places, vocabulary].
        """
        return logits_at(self.model, ids, places, parted=self.parted)

    def hidden(self, ids: torch.Tensor) -> torch.Tensor:
        """States in front of the head, [rows, length, width]; where they cannot be had alone, the logits."""
        return hidden_of(self.model, ids, parted=self.parted)

    @property
    def vocabulary(self) -> int:
        """Size of its logits."""
        return self.model.config.get_text_config().vocab_size

    def recompute(self, on: bool) -> None:
        """Compute each layer again in the backward pass of training, instead of keeping it; or no longer.

        Raises:
            SetupError: the model cannot.
        """
        if on:
            try:
                recompute_layers(self.model)
            except ValueError as error:
                raise SetupError(f"{error}: leave out gradient_checkpointing") from error
            return
        named = "activation_checkpointing_disable"  # older transformers know the other name only
        getattr(self.model, named if hasattr(self.model, named) else "gradient_checkpointing_disable")()

    def state(self) -> dict[str, torch.Tensor]:
        """The weights that are trained, by name."""
        return {name: weight.detach() for name, weight in self.trained.named_parameters() if weight.requires_grad}

    def load(self, state: Mapping[str, torch.Tensor]) -> None:
        """Take back what `state` gave.

        Raises:
            KeyError: a weight is not among them.
        """
        with torch.no_grad():
            for name, weight in self.trained.named_parameters():
                if weight.requires_grad:
                    weight.copy_(state[name])

    def save(self, hub: Path, *, dtype: torch.dtype, state: Mapping[str, torch.Tensor] | None = None) -> None:
        """Write the hub's form into a folder that is there: the adapter is merged into the weights.

        Args:
            hub: the folder.
            dtype: of all weights.
            state: the weights, where this process holds a share of them alone.
        """
        save_model(self.trained, hub, dtype=dtype, state=state)
        keep_files(self.folder, hub)

    def save_adapter(self, folder: Path) -> None:
        """Write the adapter alone into a folder that is there, in peft's form."""
        save_adapter(self.peft, folder)


def plain_model(
    model: Any,
    *,
    dtype: torch.dtype | None = None,
    device: str | None = None,
    state: Mapping[str, Any] | None = None,
) -> Any:
    """A model of the same shape, without an adapter and without its habits in training, around the same weights.

    Args:
        model: with an adapter, which is merged into the weights, or without.
        dtype: of all weights; None: as they are.
        device: where they lie; None: where they are.
        state: the weights, where `model` holds a share of them alone.
    """
    inside = bare(model)
    config = deepcopy(inside.config)
    if config._attn_implementation == NAME:  # no other program knows it
        config._attn_implementation = "sdpa"
    kept: dict[tuple[int, torch.Size], torch.Tensor] = {}
    weights: dict[str, torch.Tensor] = {}
    for name, weight in (merged_state(model) if state is None else state).items():
        wanted = dtype if dtype is not None and weight.is_floating_point() else weight.dtype
        same = (weight.data_ptr(), weight.shape)  # what two layers share is one tensor afterwards, too
        weights[name] = kept[same] = kept[same] if same in kept else weight.detach().to(device or weight.device, wanted)
    with torch.device("meta"):
        shell: Any = type(inside)(config)
    shell.load_state_dict(weights, assign=True)
    for name, buffer in inside.named_buffers():  # what is no weight, such as the frequencies of positions
        module, _, own = name.rpartition(".")
        there = shell.get_submodule(module)._buffers
        if there[own].is_meta:
            there[own] = buffer.detach().to(device or buffer.device)
    shell.generation_config = deepcopy(inside.generation_config)
    return shell


def named_weights(model: Any) -> dict[str, torch.Tensor]:
    """Every weight by its name in the checkpoint, one that two layers share only once; an adapter is merged in."""
    plain = plain_model(model) if hasattr(model, "peft_config") else model
    return unshared(plain.named_parameters())


def unshared(weights: Iterable[tuple[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Weights by name; one that several layers share has its first name alone, as in a checkpoint."""
    named: dict[tuple[int, torch.Size], tuple[str, torch.Tensor]] = {}
    for name, weight in weights:
        named.setdefault((weight.data_ptr(), weight.shape), (name, weight))
    return dict(named.values())


def save_model(
    model: Any, hub: Path, *, dtype: torch.dtype | None = None, state: Mapping[str, Any] | None = None
) -> None:
    """Write config and weights into a folder that is there; see `plain_model`."""
    plain_model(model, dtype=dtype, state=state).save_pretrained(hub)
    for path in hub.glob("*.safetensors"):  # they are written for their owner alone
        path.chmod((hub / "config.json").stat().st_mode & 0o777)


def keep_files(start: Path, hub: Path) -> None:
    """Copy what belongs to the start's tokenizer, chats and licence, byte for byte."""
    for pattern in _KEPT:
        for path in sorted(start.glob(pattern)):
            there = hub / path.relative_to(start)
            there.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, there)


@contextmanager
def in_hub_form(folder: Path) -> Generator[Path]:
    """A folder itself; of an adapter, one with its model and the adapter merged into it, as long as it is looked at.

    Raises:
        SetupError: the adapter cannot be merged.
    """
    if read_adapter(folder) is None:
        yield folder
        return
    begun = open_pretrained(str(folder), adapter=None, bf16=False)
    name = folder.resolve()
    with TemporaryDirectory(prefix="cairn-merged-") as made:
        hub = Path(made) / (name.parent.name if name.name == ADAPTER else name.name)
        hub.mkdir()
        said: dict[str, Any] = json.loads(read_text(begun.folder / "config.json"))
        stored = getattr(torch, str(said.get("dtype", said.get("torch_dtype"))), torch.float32)
        begun.save(hub, dtype=stored)
        for beside in (ABOUT, "README.md", *(file.name for file in folder.glob("*.toml"))):
            if (folder / beside).is_file():
                shutil.copyfile(folder / beside, hub / beside)
        yield hub


def base_folder(start: str) -> Path:
    """The folder, in the hub's form, of a start; of an adapter, that of its model.

    Raises:
        SetupError: there is none.
    """
    return _found(start)[0]


def open_pretrained(start: str, *, adapter: AdapterSettings | None, bf16: bool) -> Pretrained:
    """Load a model with its tokenizer, to train it.

    Args:
        start: a folder in the hub's form, a GGUF file, a name on the hub or of `cairn model list`, or the folder of an
            adapter of such a model, which is then trained further.
        adapter: that is put beside its weights, which then stay as they are; None: all weights are trained, and an
            adapter is merged into them first.
        bf16: whether weights that stay as they are may be kept in bfloat16.

    Raises:
        SetupError: it cannot be loaded; the sentence says what to do.
    """
    folder, begun = _found(start)
    if begun is not None and adapter is not None:
        _same_shape(begun, adapter, start)
    form = _form_of(folder, start)
    model = load_model(folder, dtype=torch.bfloat16 if adapter is not None and bf16 else torch.float32)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    parted = is_parted(model, folder, tokens=tokenizer.get_vocab_size())
    peft: Any = None
    if adapter is not None:
        here = Path(start).expanduser()
        base = str(here.resolve()) if here.exists() else start
        peft = (
            with_adapter_of(model, begun, dropout=adapter.dropout)
            if begun
            else with_new_adapter(model, adapter, base=base)
        )
    elif begun is not None:
        model = merged(model, begun)
    end = form.codec.tokens[form.codec.eos]
    return Pretrained(folder, model, tokenizer, end, form.context_tokens, peft, parted, was_adapter=begun is not None)


def check_chat(begun: Pretrained, protocol: TextProtocol, start: str) -> None:
    """Refuse a protocol that speaks inside of a chat whose marks the tokenizer does not have.

    Other protocols speak outside of any chat: the start's chat template is kept, and not used.

    Raises:
        SetupError: the sentence names the mark.
    """
    chat = protocol.chat
    if chat is None:
        return
    written = chat.begin + chat.user + chat.assistant + chat.end
    lacking = [mark for mark in chat.controls if mark in written and begun.tokenizer.token_to_id(mark) is None]
    if lacking:
        raise SetupError(
            f"the protocol {protocol.name} speaks inside of a chat, and the tokenizer of {start} has no token "
            f"{lacking[0]} for that: take a protocol without a chat, such as cairn, or another start"
        )


def _found(start: str) -> tuple[Path, AdapterFolder | None]:
    """The folder of a start's model in the hub's form, and the adapter that the start is, where it is one.

    Raises:
        SetupError: there is no such folder or name.
    """
    folder = start_folder(start)
    adapter = read_adapter(folder)
    if adapter is None:
        return folder, None
    from agent.models.fetch import known_as

    known = known_as(adapter.base)
    if known is not None and (folder / ABOUT).is_file():  # a policy of Cairn's: on what it is served with
        return start_folder(known), adapter
    try:
        return start_folder(adapter.base), adapter
    except SetupError as error:
        if known is None:
            raise SetupError(f"{start} is an adapter, and its model is not there: {error}") from error
        _warn_once(f"{error}. {start} is put on {known}, which is served in its place")
        return start_folder(known), adapter


@cache
def _warn_once(sentence: str) -> None:
    _log.warning("%s", sentence)


def start_folder(start: str) -> Path:
    """The folder that a start names, of a model in the hub's form or of an adapter; what is named is fetched.

    Raises:
        SetupError: there is none.
    """
    folder = Path(start).expanduser()
    if folder.is_dir():
        return folder
    from agent.models.fetch import at_hand
    from agent.models.ready import hub_folder

    try:
        return hub_folder(start) if folder.is_file() or at_hand(start) else fetch(start)
    except CheckpointError as error:
        raise SetupError(f"{start} cannot be begun from: {error}") from error


def _form_of(folder: Path, start: str) -> HubForm:
    try:
        return open_hub_form(str(folder))
    except CheckpointError as error:
        raise SetupError(f"{start} cannot be begun from: {error}") from error


def _same_shape(begun: AdapterFolder, adapter: AdapterSettings, start: str) -> None:
    targets = begun.settings.get("target_modules")
    if adapter.targets and set(adapter.targets) != (set(targets) if isinstance(targets, list) else {targets}):
        raise SetupError(
            f"{start} is an adapter of other layers ({targets}): leave `targets` out of [adapter], or begin with the "
            "merged model, its hub/"
        )
    if (begun.rank, begun.alpha) != (adapter.rank, adapter.alpha):
        raise SetupError(
            f"{start} is an adapter of rank {begun.rank} and alpha {begun.alpha:g}: say so under [adapter]"
        )


def padding_tokenizer(begun: Pretrained, start: str) -> Any:
    """The start's tokenizer as transformers has it, which pads on the left and always knows an end.

    Raises:
        SetupError: it cannot be loaded.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(begun.folder, padding_side="left", trust_remote_code=False)
    except Exception as error:  # readers of tokenizers have errors of their own, with no base in common
        raise SetupError(f"the tokenizer of {start} cannot be loaded: {error}") from error
    tokenizer.eos_token = tokenizer.eos_token or begun.end
    return tokenizer
