"""Finding 20: `javascript:` addresses of documents reached API clients as citations."""

import json
from pathlib import Path

from tests.attacks.client import ask
from tests.attacks.endpoint import endpoint
from tests.attacks.product import Product

URLS = ["javascript:alert(1)", "JAVASCRIPT:alert(2)", "data:text/html,evil", "vbscript:evil", "http://[evil"]
QUESTION = "What is Aurora Falls?"
SEARCH = "<think>I search.</think>\n<search>\nA: Aurora Falls (corpus)\n</search>"
ANSWER = (
    "<merge>It is a film [1][2][3][4][5].</merge>\n<evidence>\n- Aurora Falls is a film. [1][2][3][4][5]\n</evidence>\n"
    "<answer>a film [1]</answer>"
)
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}


def say(body: str) -> str:
    """Search first, then cite every passage."""
    return ANSWER if "Scene number" in body else SEARCH


def document(number: int, url: str) -> dict[str, str]:
    text = f"Aurora Falls is a film. Scene number {number}."
    return {"id": f"d{number}", "title": f"Aurora Falls {number}", "text": text, "url": url}


def test_no_answer_in_any_form_holds_an_address_that_runs_something(product: Product, tmp_path: Path) -> None:
    rows = [document(number, url) for number, url in enumerate(URLS)]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with endpoint(say) as model:
        options = ("--base-url", f"{model.url}/v1", "--model", "evil", "--protocol", "cairn", "--corpus", "docs.jsonl")
        with product.serve(*options, cwd=tmp_path) as server:
            chat = {"messages": [{"role": "user", "content": QUESTION}]}
            for profile in ("default", "openwebui", "markdown-links", "perplexity"):
                ask(f"{server.url}/v1/chat/completions", chat | {"profile": profile, "stream": True})
            said = {
                "chat": ask(f"{server.url}/v1/chat/completions", chat),
                "stream": ask(f"{server.url}/v1/chat/completions", chat | {"stream": True}),
                "statuses": ask(f"{server.url}/v1/chat/completions", chat | {"stream": True, "profile": "openwebui"}),
                "definitions": ask(f"{server.url}/v1/chat/completions", chat | {"profile": "markdown-links"}),
                "response": ask(f"{server.url}/v1/responses", {"input": QUESTION}),
                "response stream": ask(f"{server.url}/v1/responses", {"input": QUESTION, "stream": True}),
                "evidence": ask(f"{server.url}/v1/evidence", {"question": QUESTION}),
                "evidence stream": ask(f"{server.url}/v1/evidence", {"question": QUESTION, "stream": True}),
                "retrieve": ask(f"{server.url}/retrieve", {"queries": [QUESTION], "topk": 5}),
                "mcp": ask(
                    f"{server.url}/mcp",
                    CALL | {"params": {"name": "search_evidence", "arguments": {"question": QUESTION}}},
                    headers={"accept": "application/json, text/event-stream"},
                ),
            }
            run = f"{server.url}/api/runs/{said['evidence'].json['id']}"
            said |= {name: ask(f"{run}/{name}") for name in ("events", "evidence")} | {"trace": ask(run)}
            said |= {form: ask(f"{run}/export?format={form}") for form in ("json", "markdown", "html", "bibtex")}
    assert {name: answer.status for name, answer in said.items() if answer.status != 200} == {}
    for name, answer in said.items():
        assert b"Aurora Falls" in answer.body, name
        assert [url for url in URLS if url.encode() in answer.body] == [], name
    cited = said["chat"].json["choices"][0]["message"]["annotations"]
    assert cited
    assert all(citation["url_citation"]["url"].startswith("urn:cairn:corpus:d") for citation in cited)
