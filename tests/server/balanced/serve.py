"""A replica as the settings make it, but for its policy: `python -m tests.server.balanced.serve SETTINGS.toml STORE`.

The policy searches its question, then answers. It prints its address when it answers; tests kill it.
"""

import sys
from pathlib import Path

from agent.policies.scripted import ScriptedPolicy
from agent.settings import load_settings
from server import launch
from server.runs.opening import check_store


def say(context: str) -> str:
    """Search the question, then answer with what was found."""
    if "<information>" in context:
        return "<evidence>\n- She comes from Trieste. [1]\n</evidence>\n<answer>Trieste</answer>"
    question = context.strip().splitlines()[-1].removeprefix("Question: ")
    return f"<think>I look for it.</think>\n<search>\nA: {question} (web)\n</search>"


def main(config: str, store: str) -> None:
    settings = load_settings(Path(config), store=store)  # the environment of the tests names another one
    check_store(settings)
    listener = launch.bind(settings.host, settings.port)
    server = launch.make_server(launch.make_service(settings, policy=ScriptedPolicy(say)), launch.rules_of(settings))

    def greet() -> None:
        sys.stdout.write(f"{launch.address_of(listener)}\n")
        sys.stdout.flush()

    server.greet = greet
    launch.run(server, listener)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
