"""The search page in a browser: by mouse, by keys, on a narrow screen, and when things go wrong."""

import re
import time
from contextlib import contextmanager

import pytest

from secondlook import Document, Ranker
from secondlook.encode.settings import WindowSettings
from secondlook.explain import Stopped
from secondlook.serve.explaining import PairExplainer
from secondlook.serve.keys import add_key
from secondlook.serve.limits import Limits
from served import Engine, Watched, listening, serving

pytestmark = pytest.mark.real

WORDS = "tide river sea fish deep cape fear bogue where who"
QUERY = "river tide of the bogue"
"""Invented: some hold one word of the query, some two, in an order the ranker changes."""
DOCUMENTS = [
    Document(
        f"d{n}", f"🐟 the {first} of {second} <b>is</b> in the {first} sea. " * 3, f"On {first}"
    )
    for n, (first, second) in enumerate(
        (a, b) for a in WORDS.split()[:5] for b in WORDS.split()[3:8] if a != b
    )
]


@contextmanager
def page(browser, serving, width=1280, scheme="light"):
    """A tab on the page. In the end it has asked for nothing from elsewhere, and not complained."""
    with listening(serving) as url:
        tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        asked, complaints = [], []
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("console", lambda said: complaints.append(said.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.goto(url)
        try:
            yield tab
        finally:
            tab.close()
        assert {one for one in asked if not one.startswith(url)} == set()
        # a refusal is in the console whatever the page does about it
        assert [one for one in complaints if "the server responded with" not in one] == []


@pytest.fixture
def whole(ranker):
    return serving(ranker, index=Engine(DOCUMENTS), explainer=PairExplainer())


def search(tab, words=QUERY):
    tab.fill("#query", words)
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#second li")


def order(tab, column):
    return tab.locator(f"#{column} li").evaluate_all("some => some.map(one => one.dataset.id)")


def slide(tab, name, value):
    tab.locator(f"#{name}").evaluate(
        "(slider, value) => { slider.value = value;"
        "slider.dispatchEvent(new Event('input')); slider.dispatchEvent(new Event('change')); }",
        value,
    )


def test_both_looks_stand_side_by_side_and_lines_show_what_moved(browser, whole):
    with page(browser, whole) as tab:
        search(tab)
        first, second = order(tab, "first"), order(tab, "second")
        assert len(first) == len(second) == 10
        assert first != second
        in_both = set(first) & set(second)
        assert tab.locator("#moves g:not(.beyond)").count() == len(in_both)
        assert tab.locator("#moves g.beyond").count() == 2 * (10 - len(in_both))
        badges = tab.locator("#second .move").all_inner_texts()
        assert any("▲" in one for one in badges)
        gone = [place for place, one in enumerate(first) if one not in second]
        for place in gone:  # what fell out of sight says so where it stood before
            assert "▼" in tab.locator("#first li").nth(place).inner_text()
        assert "candidates re-ranked" in tab.inner_text("#status")
        assert "Click a hit" in tab.inner_text("#legend")
        assert "Scores from 0 to 1: not calibrated" in tab.inner_text("#scores")
        assert set(tab.locator("#second mark:not(.plain)").all_inner_texts()) <= {
            "river", "tide", "bogue",
        }  # fmt: skip
        assert tab.locator("#asked mark.outside").all_inner_texts() == ["bogue"]
        assert tab.locator("#second b").count() == 0  # a document's markup is text
        tab.click("#more")
        assert len(order(tab, "first")) > 10


def test_a_click_opens_the_explanation_of_a_hit(browser, whole):
    with page(browser, whole) as tab:
        search(tab)
        title = tab.locator("#first button").nth(1).inner_text()
        tab.locator("#first li").nth(1).click()
        tab.wait_for_selector("#why figure")
        assert tab.inner_text("#why-name") == title
        assert tab.locator("#why figure svg").count() == 2
        assert tab.locator("#why tbody tr").count() > 3
        words = tab.locator("#why .words").nth(1)
        assert words.inner_text().startswith("🐟 the")
        assert "bog ##ue" in tab.inner_text("#why")
        tab.click("#close")
        assert not tab.is_visible("#why")


def test_sliders_reorder_and_only_a_greater_depth_asks_again(browser, whole):
    with page(browser, whole) as tab:
        asked = []
        tab.on("request", lambda request: asked.append(request.url))

        def searches():
            return [one for one in asked if one.endswith("/v1/search")]

        slide(tab, "depth", 10)
        search(tab)
        first, second = order(tab, "first"), order(tab, "second")
        slide(tab, "fusion", 1)
        assert order(tab, "second") == first
        assert tab.inner_text("#fusion-now") == "1"
        slide(tab, "fusion", 0)
        assert order(tab, "second") == second
        slide(tab, "depth", 5)
        assert order(tab, "second")[5:] == first[5:]
        assert sorted(order(tab, "second")[:5]) == sorted(first[:5])
        assert len(searches()) == 1
        slide(tab, "depth", 20)
        tab.wait_for_selector("#more:not([hidden])")
        assert len(searches()) == 2


def test_everything_can_be_done_with_keys(browser, whole):
    with page(browser, whole) as tab:
        focused = "document.activeElement"
        tab.evaluate(f"{focused}.blur()")
        tab.keyboard.press("/")
        tab.keyboard.type(QUERY)
        tab.keyboard.press("Enter")
        tab.wait_for_selector("#second li")
        tab.keyboard.press("ArrowDown")
        tab.keyboard.press("ArrowDown")
        chosen = tab.evaluate(f"{focused}.closest('li').dataset.id")
        assert chosen == order(tab, "second")[1]
        assert tab.locator("#moves .pointed").get_attribute("data-id") == chosen
        tab.keyboard.press("ArrowLeft")
        assert tab.evaluate(f"{focused}.closest('section').id") == "first"
        tab.keyboard.press("Enter")
        tab.wait_for_selector("#why figure")
        tab.keyboard.press("Escape")
        assert not tab.is_visible("#why")
        assert tab.evaluate(f"{focused}.closest('section').id") == "first"
        tab.keyboard.press("Escape")
        assert tab.evaluate(f"{focused}.id") == "query"


def test_a_narrow_screen_shows_one_look_at_a_time(browser, whole):
    with page(browser, whole, width=360) as tab:
        search(tab)
        assert tab.is_visible("#second")
        assert not tab.is_visible("#first")
        tab.locator("#switch label").first.click()
        assert tab.is_visible("#first")
        assert not tab.is_visible("#second")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360
        tab.locator("#first li").first.click()
        tab.wait_for_selector("#why figure")
        assert tab.locator("#why").evaluate("one => one.scrollWidth <= one.clientWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(browser, whole, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with page(browser, whole, scheme=scheme) as tab:
        faults = []
        for step in (lambda: None, lambda: search(tab), lambda: open_first(tab)):
            step()
            found = axe.run(tab).response["violations"]
            faults += [(one["id"], one["nodes"][0]["html"]) for one in found
                       if one["impact"] in ("serious", "critical")]  # fmt: skip
        assert faults == []


def open_first(tab):
    tab.locator("#second li").first.click()
    tab.wait_for_selector("#why figure")


def test_a_long_document_shows_its_windows(browser, ranker):
    encode = ranker.settings.encode.model_copy(
        update={"windows": WindowSettings(length=10, stride=5)}
    )
    settings = ranker.settings.model_copy(update={"encode": encode})
    windowed = Ranker(settings, ranker.tokenizer, ranker.backend)
    text = "🐟 fish " * 15 + "the tide of the deep sea " + "river bogue " * 15
    index = Engine([Document("long", text, "On the tide")])
    with page(browser, serving(windowed, index=index, explainer=PairExplainer())) as tab:
        search(tab, "tide river")
        assert "best passage" in tab.inner_text("#second li")
        open_first(tab)
        windows = tab.locator("#why .bars li")
        assert windows.count() > 5
        start, end = map(int, tab.inner_text("#why .bars .chosen .name").split("–"))
        read = tab.locator("#why .words").nth(1).locator(".w").all_inner_texts()
        assert read == re.findall(r"\w+|🐟", text[start:end])
        assert tab.locator("#why .unread").count() > 0


def says(tab, pattern):
    tab.wait_for_function(
        "pattern => new RegExp(pattern).test(document.getElementById('status').innerText)",
        arg=pattern,
    )


def test_it_says_what_there_is_to_say_when_hits_are_not_there(browser, ranker):
    engine = Engine(DOCUMENTS)
    with page(browser, serving(ranker, index=engine, explainer=PairExplainer())) as tab:
        tab.fill("#query", "zebra")
        tab.keyboard.press("Enter")
        says(tab, "found nothing")
        search(tab)
        engine.down = True
        tab.keyboard.press("Enter")
        says(tab, "search engine failed.*Try again in")
        assert not tab.is_visible("#looks")
    with page(browser, serving(ranker)) as tab:
        says(tab, "no index.*--index")
        assert tab.is_disabled("#query")


def test_hits_without_a_score_in_time_are_told(browser, ranker):
    held = Watched(ranker)
    held.tokenizer = ranker.tokenizer
    held.go.clear()
    late = serving(
        held, index=Engine(DOCUMENTS), explainer=PairExplainer(), limits=Limits(deadline=4)
    )
    with page(browser, late) as tab:
        search(tab)
        held.go.set()
        says(tab, r"\d+ of \d+ candidates were not scored in time")
        assert order(tab, "first") == order(tab, "second")
        assert "no score in time" in tab.inner_text("#second li:first-child")


def test_the_document_stays_when_its_explanation_is_late(browser, ranker):
    class Late(PairExplainer):
        def explain(self, ranker, query, document, should_stop, until):
            while not should_stop():
                time.sleep(0.01)
            raise Stopped("late")

    late = serving(ranker, index=Engine(DOCUMENTS), explainer=Late(), limits=Limits(deadline=4))
    with page(browser, late) as tab:
        search(tab)
        tab.locator("#second li").first.click()
        tab.wait_for_selector("#why .words")
        text = tab.inner_text("#why .words")
        assert text.startswith("🐟 the")
        tab.wait_for_selector("#why .error")
        assert "longer than the deadline" in tab.inner_text("#why .error")
        assert tab.inner_text("#why .words") == text


def test_a_key_is_asked_for_and_kept_for_the_tab(browser, ranker, tmp_path):
    keys = tmp_path / "keys"
    key = add_key(keys, "me")
    guarded = serving(ranker, index=Engine(DOCUMENTS), explainer=PairExplainer(), keys=keys)
    with page(browser, guarded) as tab:
        tab.fill("#key", "wrong")
        tab.keyboard.press("Enter")
        says(tab, "not known here")
        tab.fill("#key", key)
        tab.keyboard.press("Enter")
        says(tab, "Every hit")
        search(tab)
        tab.reload()
        tab.wait_for_selector("#second li")  # the query is in the address, the key in the tab
