"""The pictures of the search page, light and dark, taken in Chromium from a running server.

secondlook index examples/quickstart/corpus.jsonl quick.index
secondlook warm sentence-transformers/all-MiniLM-L6-v2 -o quick.ranker
secondlook export quick.ranker --to openvino --precision bf16
secondlook serve quick.ranker --index quick.index
python docs/generate/screenshots.py http://localhost:8080
"""

from __future__ import annotations

import argparse
from pathlib import Path

PLACE = Path(__file__).parents[1] / "how-to" / "images"
QUERY = "What is it called when a monarch has a share of executive powers?"
SIZE = (1280, 802)  # six hits


def main() -> None:
    """Write search-page.png and search-page-dark.png."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("url", help="address of the running server")
    parser.add_argument("--browser", default="/usr/bin/chromium", help="path of Chromium")
    given = parser.parse_args()
    width, height = SIZE
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=given.browser, args=["--no-sandbox"])
        for scheme, name in (("light", "search-page"), ("dark", "search-page-dark")):
            tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            tab.goto(given.url)
            tab.fill("#query", QUERY)
            tab.keyboard.press("Enter")
            tab.wait_for_selector("#second li mark", timeout=120_000)
            tab.locator("#query").blur()
            for told in ("#first-told", "#second-told"):  # how busy this machine was tells nothing
                tab.locator(told).evaluate("(shown) => { shown.textContent = ''; }")
            tab.screenshot(path=PLACE / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
