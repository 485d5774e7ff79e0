"""Texts that want to run something in the browser of their reader. Each of them would call `alert`, or load."""

from agent.evidence import Passage
from agent.sources.base import SearchRequest, SearchResult

ATTACKS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '<svg onload="alert(1)"><animate onbegin=alert(1) attributeName=x dur=1s></svg>',
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    '<a href="javascript:alert(1)">press</a>',
    "[press](javascript:alert(1))",
    "[press](java\tscript:alert(1))",
    "[press](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[press]: javascript:alert(1)",
    "<javascript:alert(1)>",
    "![remote](https://attacker.example/pixel.png)",
    '![x](x" onerror="alert(1))',
    '<img src="https://attacker.example/pixel.png">',
    "<style>@import 'https://attacker.example/a.css'; body{background:url(https://attacker.example/b)}</style>",
    '<link rel=stylesheet href="https://attacker.example/a.css">',
    '<div style="background:url(https://attacker.example/c)" onclick=alert(1) onmouseover=alert(1)>over</div>',
    '<form action="https://attacker.example"><button formaction="javascript:alert(1)">go</button></form>',
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    "<details open ontoggle=alert(1)>x</details>",
    "<video><source onerror=alert(1)></video><audio src=https://attacker.example/d autoplay>",
    "`<img src=x onerror=alert(1)>` and\n```html\n<script>alert(1)</script>\n```",
    '"><script>alert(1)</script>',
    "<base href=https://attacker.example/><meta http-equiv=refresh content='0;url=https://attacker.example'>",
)
ALL = "\n\n".join(ATTACKS)
LINKS = (
    "javascript:alert(1)",
    " javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:x",
)


class HostileSource:
    """Finds one page for each wicked address; its title, text, date and id are wicked, too."""

    async def search(self, request: SearchRequest) -> SearchResult:
        return SearchResult(
            tuple(
                Passage(
                    id=f"<img src=x onerror=alert({at})>",
                    source="web",
                    title=ATTACKS[at],
                    text=ALL,
                    url=url,
                    date="<b>2026",
                )
                for at, url in enumerate(LINKS)
            )
        )
