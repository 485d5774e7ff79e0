"""Draw docs/trace.svg: what `cairn ask` shows of one real rollout of the shipped checkpoint."""

import argparse
import asyncio
import io
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from agent.build.agent import build_agent
from agent.cli.draw import TraceView
from agent.loop.agent import Agent
from agent.settings import load_settings
from agent.trace import Delta, Event, Trace
from agent.world import World, load_world


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--question", help="of the world; left out, a two-hop question that is answered rightly")
    parser.add_argument("--world", default="dev-v2")
    args = parser.parse_args()
    agent = build_agent(load_settings(world=args.world))
    world = load_world(args.world)
    trace, events = asyncio.run(rollout(agent, args.question) if args.question else first_right(agent, world))
    args.out.write_text(draw(trace, events), encoding="utf-8")


async def rollout(agent: Agent, question: str) -> tuple[Trace, list[Event]]:
    events: list[Event] = []
    trace = await agent.run(agent.new_trace(question), emit=events.append)
    return trace, events


async def first_right(agent: Agent, world: World) -> tuple[Trace, list[Event]]:
    """A question that shows what there is to see: two rounds of searches, parallel ones among them."""
    for question in world.questions:
        if question.hops < 2:
            continue
        trace, events = await rollout(agent, question.question)
        if trace.answer in question.answers and trace.usage.searches > trace.usage.rounds > 1:
            return trace, events
    raise SystemExit("no question of this world was answered as the picture needs it")


def draw(trace: Trace, events: list[Event]) -> str:
    console = Console(record=True, width=104, force_terminal=True, color_system="truecolor", file=io.StringIO())
    console.print(Text.assemble(("$ ", "dim"), f'cairn ask "{trace.question}"'))
    view = TraceView(console, moving=False)
    for event in events:
        if not isinstance(event, Delta):
            view.show(event)
    view.finish(trace)
    return console.export_svg(title="cairn ask", theme=MONOKAI)


if __name__ == "__main__":
    main()
