"""verifiers' own evaluation of Cairn's environment; the last line that it prints is what came of each rollout.

It runs in an environment that has verifiers and none of Cairn's libraries.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from verifiers.v1.cli.eval.runner import run_eval
from verifiers.v1.configs.cli.eval import EvalConfig
from verifiers.v1.episode import Episode

from cairn_search import load_environment


def evaluate(said: dict[str, Any], *, client: dict[str, Any], **agent: Any) -> list[dict[str, Any]]:
    """What `vf-eval cairn-search` runs."""
    taskset = {"id": "cairn-search", "settings": said["settings"], "python": said["python"]}
    config = EvalConfig(
        env={"taskset": taskset, "agent": agent},
        model="theirs",
        client={"base_url": said["url"], "api_key_var": "NO_KEY", **client},
        output_dir=Path("outputs"),
        push=False,
        rich=None,
    )
    return [shown(episode) for episode in asyncio.run(run_eval(config))]


def shown(episode: Episode) -> dict[str, Any]:
    [trace] = episode.traces
    return {
        "question": trace.task.data.prompt,
        "ok": episode.ok,
        "reward": trace.reward,
        "rewards": {name: one.value for name, one in trace.rewards.items() if one is not None},
        "metrics": trace.metrics,
        "errors": [[error.type, error.message] for error in trace.errors],
        "answer": trace.info.get("cairn", {}).get("answer"),
        "sampled": [
            {
                "ids": [number for number, own in zip(node.token_ids, node.mask, strict=True) if own],
                "logprobs": node.logprobs,
            }
            for node in trace.nodes
            if node.sampled
        ],
        "branches": [branch.token_ids for branch in trace.branches],
    }


def refused(python: str, **settings: Any) -> str:
    try:
        load_environment(python=python, **settings)
    except ValueError as error:
        return str(error)
    return ""


def main() -> None:
    said: dict[str, Any] = json.loads(sys.argv[1])
    result = {
        "whole": evaluate(said, client={"type": "eval"}),
        "trained": evaluate(said, client={"type": "train"} | said["renderer"]),
        "stopped": evaluate(said, client={"type": "eval"}, max_turns=1),
        "refused": refused(said["python"], protocl="cairn"),
        "elsewhere": refused("/bin/false"),
    }
    sys.stdout.write(f"\n{json.dumps(result)}\n")


main()
