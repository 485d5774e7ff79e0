"""A pretrained causal language model as a start: its tokenizer, an adapter beside its weights, the hub form saved."""

import shutil
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import torch
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from agent.errors import CheckpointError, SetupError
from agent.policies.hub_form import open_hub_form
from train.recipe import Adapter

ADAPTER: Final = "adapter"
"""Folder beside `hub` in which the adapter alone is saved, in peft's form."""
_KEPT: Final = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json"),
    *("merges.txt", "chat_template.jinja", "generation_config.json"),
)
"""Files of the start that belong to its tokenizer; they are kept as they are."""


@dataclass(frozen=True)
class Pretrained:
    """A model with its tokenizer. `peft` is the model with its adapter, where it has one."""

    folder: Path
    model: PreTrainedModel
    tokenizer: Tokenizer
    end: str
    """The token that ends a turn."""
    peft: Any = None

    @property
    def trained(self) -> torch.nn.Module:
        """What an optimizer sees."""
        return cast(torch.nn.Module, self.peft if self.peft is not None else self.model)

    def decoder(self) -> torch.nn.Module:
        """The part from ids to hidden states."""
        return cast(torch.nn.Module, getattr(self.model, self.model.base_model_prefix))

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """From hidden states [tokens, width] to logits [tokens, vocabulary], with the model's own cap on them."""
        head = cast(torch.nn.Module, self.model.get_output_embeddings())
        logits = cast(torch.Tensor, head(hidden))
        cap = getattr(self.model.config.get_text_config(), "final_logit_softcapping", None)
        return torch.tanh(logits / cap) * cap if cap else logits

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

    def save(self, hub: Path, *, dtype: torch.dtype) -> None:
        """Write the hub's form into a folder that is there: the adapter is merged into the weights."""
        if self.peft is not None:
            merged = deepcopy(self.peft).to(torch.float32).merge_and_unload()
        else:
            merged = deepcopy(self.model)
        merged.config._attn_implementation = "sdpa"
        cast(torch.nn.Module, merged).to(dtype)
        merged.save_pretrained(hub)
        for name in _KEPT:
            if (self.folder / name).is_file():
                shutil.copyfile(self.folder / name, hub / name)

    def save_adapter(self, folder: Path) -> None:
        """Write the adapter alone into a folder that is there, in peft's form."""
        self.peft.save_pretrained(folder)
        (folder / "README.md").unlink(missing_ok=True)  # peft's empty card


def open_pretrained(start: str, *, adapter: Adapter | None, bf16: bool) -> Pretrained:
    """Load a model with its tokenizer.

    Args:
        start: a folder in the hub's form, a name on the hub, or a folder with an adapter of such a model alone, which
            is then trained further.
        adapter: that is put beside its weights, which then stay as they are; None: all weights are trained.
        bf16: whether weights that stay as they are may be kept in bfloat16.

    Raises:
        SetupError: it cannot be loaded; the sentence says what to do.
    """
    begun = _adapter_config(Path(start).expanduser())
    if begun is not None:
        _same_shape(begun, adapter, start)
    base = start if begun is None else str(begun.base_model_name_or_path)
    try:
        form = open_hub_form(base)
    except CheckpointError as error:
        raise SetupError(f"{start} cannot be begun from: {error}") from error
    dtype = torch.bfloat16 if adapter is not None and bf16 else torch.float32
    try:
        config = AutoConfig.from_pretrained(form.folder, trust_remote_code=False)
        model = cast(Any, AutoModelForCausalLM).from_pretrained(
            form.folder, config=config, dtype=dtype, use_safetensors=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        why = " ".join(str(error).split())[:300]
        raise SetupError(f"{form.folder} is no causal language model that transformers loads: {why}") from error
    tokenizer = Tokenizer.from_file(str(form.folder / "tokenizer.json"))
    if adapter is None:
        return Pretrained(form.folder, model, tokenizer, form.codec.tokens[form.codec.eos])
    peft = _with_adapter(model, adapter) if begun is None else _adapter_of(model, Path(start).expanduser())
    return Pretrained(form.folder, model, tokenizer, form.codec.tokens[form.codec.eos], peft)


def _adapter_config(folder: Path) -> Any:
    """What an adapter's folder says of itself; None where it is no such folder."""
    if not (folder / "adapter_config.json").is_file():
        return None
    from peft import PeftConfig

    try:
        config: Any = PeftConfig.from_pretrained(str(folder))
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise SetupError(f"{folder / 'adapter_config.json'} cannot be used: {error}") from error
    if not config.base_model_name_or_path:
        raise SetupError(f"{folder / 'adapter_config.json'} does not say of which model it is: base_model_name_or_path")
    return config


def _same_shape(config: Any, adapter: Adapter | None, start: str) -> None:
    if adapter is None:
        raise SetupError(f"{start} is an adapter, and the recipe has no [adapter]: say rank = {config.r} there")
    if (config.r, config.lora_alpha) != (adapter.rank, adapter.alpha):
        raise SetupError(
            f"{start} is an adapter of rank {config.r} and alpha {config.lora_alpha:g}: say so under [adapter]"
        )


def _adapter_of(model: PreTrainedModel, folder: Path) -> Any:
    """A model with the adapter of a folder, which is trained further."""
    from peft import PeftModel

    try:
        made: Any = PeftModel.from_pretrained(model, str(folder), is_trainable=True, use_safetensors=True)
    except (ValueError, RuntimeError, OSError, KeyError) as error:
        why = " ".join(str(error).split())[:300]
        raise SetupError(f"the adapter in {folder} does not fit its model: {why}") from error
    return _in_float(made)


def _in_float(made: Any) -> Any:
    """A model whose trained weights are float32, however its others are kept."""
    for weight in made.parameters():
        if weight.requires_grad:
            weight.data = weight.data.float()
    return made


def _with_adapter(model: PreTrainedModel, adapter: Adapter) -> Any:
    from peft import LoraConfig, get_peft_model

    targets: Any = list(adapter.targets) or "all-linear"
    settings = LoraConfig(
        r=adapter.rank,
        lora_alpha=cast(int, adapter.alpha),
        lora_dropout=adapter.dropout,
        target_modules=targets,
        bias="none",
        task_type="CAUSAL_LM",
    )
    try:
        made: Any = get_peft_model(model, settings)
    except ValueError as error:
        raise SetupError(f"the adapter does not fit the model: {' '.join(str(error).split())[:300]}") from error
    return _in_float(made)
