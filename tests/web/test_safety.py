"""What strangers write never runs, nothing leaves this machine, and everybody can use the page."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from pydantic import SecretStr

from server.auth.middleware import Rules
from tests.server.threaded import in_thread
from tests.web.hostile import ALL, ATTACKS, HostileSource
from tests.web.pages import Watched, scripted, tab

pytestmark = pytest.mark.web

AXE = Path(__file__).parent.parent.parent / "web" / "node_modules" / "axe-core" / "axe.min.js"
SEARCH = "<think>Let me look.</think>\n<search>\nA: <img src=x onerror=alert(1)> (web)\n</search>"


def ending(attack: str) -> str:
    plain = " ".join(attack.split())
    return f"<merge>{attack} [1]</merge>\n<evidence>\n- {plain} [1]\n- Let me look. [2]\n</evidence>\n<answer>{attack} [1][2]</answer>"


def tabs(page: Watched) -> list[str]:
    """The ids of all views."""
    found: list[str] = page.page.locator(".tabs [role=tab]").evaluate_all("tabs => tabs.map(tab => tab.id)")
    assert {"tab-list", "tab-evidence"} < set(found)
    return found


def look_everywhere(page: Watched) -> None:
    """Show every view, open every search and every citation."""
    for name in tabs(page):
        page.page.click(f"#{name}")
        page.page.wait_for_timeout(50)
    page.page.click("#tab-list")
    for head in page.page.locator(".node-head").all():
        head.click()
    for chip in page.page.locator(".chip").all():
        chip.focus()
        page.page.wait_for_timeout(10)


@pytest.mark.parametrize("attack", [*("\n\n".join(ATTACKS[at::6]) for at in range(6)), ALL])
def test_what_a_stranger_writes_never_runs_and_loads_nothing(browser: Browser, attack: str) -> None:
    service = scripted((SEARCH, ending(attack)), sources={"web": HostileSource()})
    with in_thread(service) as address, tab(browser, address) as page:
        page.page.evaluate("() => { window.alert = () => { window.ran = true } }")
        assert page.page.evaluate("window.ran") is None
        page.ask(attack)
        page.ended()
        look_everywhere(page)
        assert page.page.evaluate("window.ran") is None
        assert (
            page.page.locator(
                "main :is(script, iframe, img, style, form:not(.ask), video, audio, base, object)"
            ).count()
            == 0
        )
        links = page.page.eval_on_selector_all("main a", "all => all.map(a => a.protocol)")
        assert set(links) <= {"http:", "https:"}
        handlers = page.page.evaluate(
            "[...document.querySelectorAll('main *')].some(e => [...e.attributes].some(a => a.name.startsWith('on')))"
        )
        assert not handlers


def test_links_to_sources_send_no_referrer(browser: Browser) -> None:
    with in_thread(scripted()) as address, tab(browser, address) as page:
        page.ask("Where was the director of Aurora Falls born?")
        page.ended()
        page.page.locator(".node-head").first.click()
        link = page.page.locator(".passage a").first
        assert set((link.get_attribute("rel") or "").split()) == {"noopener", "noreferrer", "nofollow"}
        assert link.get_attribute("target") == "_blank"


def test_the_policy_of_the_page_forbids_scripts_that_are_not_its_own(browser: Browser) -> None:
    with in_thread(scripted()) as address, tab(browser, address) as page:
        policy = page.page.request.get(address).headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'self'" in policy
        page.page.evaluate("""() => {
            const script = document.createElement('script')
            script.textContent = 'window.ran = true'
            document.body.append(script)
        }""")
        assert page.page.evaluate("window.ran") is None
        assert any("Content Security Policy" in said for said in page.complaints)
        page.complaints.clear()


def test_the_key_is_requested_and_kept_in_the_tab_alone(browser: Browser) -> None:
    with in_thread(scripted(), Rules(key=SecretStr("open sesame"))) as address, tab(browser, address) as page:
        page.page.get_by_label("Key", exact=True).fill("wrong")
        page.page.get_by_role("button", name="Use it").click()
        page.page.get_by_label("Key", exact=True).fill("open sesame")
        page.page.get_by_role("button", name="Use it").click()
        expect(page.page.locator("dialog")).to_have_count(0)
        page.ask("Where was the director of Aurora Falls born?")
        page.ended()
        permalink = page.page.url
        page.page.evaluate("sessionStorage.clear()")
        page.page.reload()
        page.page.get_by_label("Key", exact=True).fill("open sesame")
        page.page.get_by_role("button", name="Use it").click()
        page.ended()
        assert page.page.url == permalink
        assert page.page.evaluate("Object.values(localStorage).join().includes('sesame')") is False
        assert not any("sesame" in url for url in page.requests)
        page.complaints = [said for said in page.complaints if "401" not in said]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_any_view(browser: Browser, world: str, scheme: str) -> None:
    with tab(browser, world, color_scheme=scheme) as page:
        found = [f"home: {fault}" for fault in faults(page)]
        page.page.locator(".examples button").nth(3).click()
        page.ended()
        page.page.locator(".node-head").first.click()
        for name in tabs(page):
            page.page.click(f"#{name}")
            page.page.wait_for_timeout(300)
            found += [f"{name}: {fault}" for fault in faults(page)]
        page.page.locator(".answer .chip").first.focus()
        found += [f"quote: {fault}" for fault in faults(page)]
        page.page.keyboard.press("Escape")
        page.page.get_by_role("button", name="Help").click()
        found += [f"help: {fault}" for fault in faults(page)]
        page.page.keyboard.press("Escape")
        page.page.get_by_label("Compare with").select_option("cairn/multisearch")
        page.page.get_by_role("button", name="Compare", exact=True).click()
        expect(page.page.locator(".column .answer")).to_have_count(2)
        found += [f"compare: {fault}" for fault in faults(page)]
        assert not found


def faults(page: Watched) -> list[str]:
    """What axe calls serious or critical."""
    if not page.page.evaluate("typeof axe === 'object'"):
        page.page.evaluate(AXE.read_text(encoding="utf-8"))
    result = page.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{fault['id']} {node['target']} {node.get('failureSummary', '')}"
        for fault in result["violations"]
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]


def test_the_whole_journey_needs_no_mouse(browser: Browser, world: str) -> None:
    with tab(browser, world) as page:
        keys = page.page.keyboard
        page.page.wait_for_selector(".examples button")
        keys.press("?")
        expect(page.page.locator("dialog")).to_be_visible()
        keys.press("Escape")
        expect(page.page.locator("dialog")).to_have_count(0)
        keys.press("/")
        keys.type("Which film was released last, The Gerta River or The Sputire Garden?")
        keys.press("Enter")
        page.ended()
        page.page.evaluate("document.activeElement.blur()")
        keys.press("g")
        expect(page.page.locator(".vertex.answer")).to_be_visible()
        keys.press("ArrowRight")
        expect(page.page.locator("#tab-waterfall")).to_have_attribute("aria-selected", "true")
        keys.press("l")
        keys.press("j")
        keys.press("j")
        expect(page.page.locator("[data-picked]")).to_have_count(1)
        page.page.locator("#main").focus()
        for _ in range(30):
            keys.press("Tab")
            if page.page.evaluate("document.activeElement.matches('.chip')"):
                break
        expect(page.page.locator(".peek")).to_be_visible()
        keys.press("h")
        assert page.page.evaluate("document.activeElement.id") == "sought"
        page.page.evaluate("document.activeElement.blur()")
        before = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
        keys.press("t")
        assert page.page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_a_narrow_screen_shows_all_of_it_without_scrolling_sideways(browser: Browser, world: str) -> None:
    with tab(browser, world, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True) as page:
        narrow = "document.documentElement.scrollWidth <= 360"
        assert page.page.evaluate(narrow)
        page.page.locator(".examples button").nth(3).tap()
        page.ended()
        for name in tabs(page):
            page.page.tap(f"#{name}")
            page.page.wait_for_timeout(100)
            assert page.page.evaluate(narrow), name
        page.page.get_by_role("button", name="History").tap()
        expect(page.page.locator("#sought")).to_be_visible()
        page.page.mouse.click(350, 700)
        page.page.locator(".answer .chip").first.tap()
        box = page.page.locator(".peek").bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360


def test_a_reader_who_wants_no_motion_sees_none(browser: Browser, world: str) -> None:
    with tab(browser, world, reduced_motion="reduce") as page:
        page.page.locator(".examples button").nth(3).click()
        page.ended()
        moving = page.page.evaluate(
            "[...document.querySelectorAll('*')].filter(e => { const s = getComputedStyle(e);"
            " return s.animationName !== 'none' || parseFloat(s.transitionDuration) > 0 }).length"
        )
        assert moving == 0
        assert page.page.evaluate("document.getAnimations().length") == 0
