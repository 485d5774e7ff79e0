"""Checks of models that this process would load. None is loaded here: that takes long, and its memory."""

import asyncio
from importlib.util import find_spec
from pathlib import Path

from agent.doctor.run import CheckResult, bad, ok, warn
from agent.settings import CairnSettings


async def check_transformers(settings: CairnSettings) -> CheckResult:
    """The libraries, and everything of the model but its weights' content."""
    from agent.build.agent import named_model

    model = named_model(settings)
    if not all(map(find_spec, ("torch", "transformers"))):
        return bad("the policy 'transformers' needs torch and transformers", "pip install 'cairn-search[train]'")
    return await asyncio.to_thread(check_model, model)


async def check_vllm(settings: CairnSettings) -> CheckResult:
    """The library is installed, and everything of the model is there but its weights' content; nothing is loaded."""
    from agent.build.agent import named_model
    from agent.policies.vllm_engine import INSTALL

    model = named_model(settings)
    if find_spec("vllm") is None:
        return bad("the policy 'vllm' needs vLLM", INSTALL.partition(": ")[2])
    return await asyncio.to_thread(check_model, model)


def check_model(model: str) -> CheckResult:
    """A folder in the hub's form, or a name on the hub, which is not queried."""
    from agent.policies.hub_form import open_hub_form

    folder = Path(model).expanduser()
    if not folder.is_dir() and model.count("/") == 1 and not model.startswith((".", "/", "~")):
        return warn(f"{model} is not a folder here; it is fetched from the hub on the first start", "name a folder")
    form = open_hub_form(model)
    if not any(form.folder.glob("*.safetensors")):
        return bad(f"{form.folder} has no weights", "put the model's .safetensors files there")
    return ok(f"{form.name} can be read; its context takes {form.context_tokens:,} tokens")
