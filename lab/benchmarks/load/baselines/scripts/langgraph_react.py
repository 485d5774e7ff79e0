"""LangGraph's prebuilt ReAct agent in its form of today, `langchain.agents.create_agent`, asynchronous throughout.

Its graph runs all tool calls of one turn at the same time.
"""

import sys
from typing import Any, Final

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from serving import Search, serve

WORLD: Final = sys.argv[1]
SEARCH: Final = Search(WORLD)


async def search(query: str) -> str:
    """Search the web."""
    return await SEARCH(query)


MODEL: Final = ChatOpenAI(model="tools", base_url=f"{WORLD}/v1", api_key="none", max_retries=0)
AGENT: Final[Any] = create_agent(MODEL, [search])


async def answer(question: str) -> str:
    state = await AGENT.ainvoke({"messages": [{"role": "user", "content": question}]})
    return state["messages"][-1].content


serve(answer)
