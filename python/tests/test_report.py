"""Pages are complete, self-contained and small; Chromium shows them at the width of a desktop and
of a phone."""

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import results
from selenium import webdriver
from selenium.webdriver.common.by import By

from airlane import report
from airlane.figures._outcome import Study, read

# By name: width and height in CSS pixels, and whether colours are dark.
SCREENS = {"desk": (1280, 900, False), "phone": (390, 844, True)}


@pytest.fixture(scope="module")
def folder(few: Path) -> Path:
    """A whole work if `make claims` ran, otherwise a few figures of two works."""
    whole = (results.CLAIMS / "xylomenos-1999" / "outcome.json").is_file()
    return results.CLAIMS if whole else few


@pytest.fixture(scope="module")
def pages(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return report.write(folder, tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        results.needed("no Chromium: apt-get install chromium chromium-driver")
        return
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):
        options.add_argument(argument)
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield chrome
    chrome.quit()


def pictures(study: Study) -> int:
    return sum(shown is not None for shown in (study.drawing, study.curves))


def test_a_page_has_every_claim_and_every_figure(folder: Path, pages: list[Path]) -> None:
    outcomes = read(folder)
    assert [page.stem for page in pages] == [outcome.work for outcome in outcomes]
    for page, outcome in zip(pages, outcomes, strict=True):
        text = page.read_text(encoding="utf-8")
        for claim in outcome.claims:
            assert f'id="{claim.id}"' in text
        assert text.count("<svg ") == sum(map(pictures, outcome.studies))
        assert text.count('role="img" aria-label="') == text.count("<svg ")
        for study in outcome.studies:
            options = " ".join(outcome.options)
            command = f"airlane study run {outcome.work}/{study.id} {options} --out results\n"
            assert f"{command}airlane study report results" in text


def test_unjudged_claims_are_shown_with_the_reason(tmp_path: Path) -> None:
    results.run("xylomenos-1999/F4.2", "--runs", "1", "--figure-only", "--out", tmp_path)
    (page,) = report.write(tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "it reads F4.2-bits, which --figure-only left out" in text
    assert ">not judged 3<" in text
    assert "](" not in re.sub(r"<pre>.*?</pre>|<svg.*?</svg>", "", text, flags=re.DOTALL)


def test_a_page_is_self_contained(pages: list[Path]) -> None:
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "<script" not in text
        assert re.findall(r'(?:src|href|action)="(?!#)[^"]*"|url\((?!#)|@import', text) == []
        ids = Counter(re.findall(r'\sid="([^"]+)"', text))
        assert [name for name, count in ids.items() if count > 1] == []
        for link in re.findall(r'(?:href="#|url\(#)([^")]+)', text):
            assert link in ids
        assert len(text) < 3_000_000


def test_the_same_results_give_the_same_page(few: Path, tmp_path: Path) -> None:
    first, second = report.write(few, tmp_path / "1"), report.write(few, tmp_path / "2")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


VISIBLE = """
const seen = e => e.checkVisibility() && e.getBoundingClientRect().width > 0;
const wide = [...document.querySelectorAll("svg")].map(e => e.getBoundingClientRect());
return {
  figures: [...document.querySelectorAll("figure svg")].filter(seen).length,
  verdicts: [...document.querySelectorAll(".claim .verdict")].filter(seen).length,
  small: wide.filter(box => box.width < 250 || box.height < 100).length,
  over: document.documentElement.scrollWidth - innerWidth,
  height: document.documentElement.scrollHeight,
};
"""


@pytest.mark.parametrize("screen", SCREENS)
def test_a_page_is_readable_on_every_screen(
    screen: str, folder: Path, pages: list[Path], browser: webdriver.Chrome
) -> None:
    width, height, dark = SCREENS[screen]
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": screen == "phone"}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    shots = results.TARGET / "pages"
    shots.mkdir(parents=True, exist_ok=True)
    for page, outcome in zip(pages, read(folder), strict=True):
        browser.get(page.as_uri())
        found = browser.execute_script(VISIBLE)
        assert found["figures"] == sum(map(pictures, outcome.studies))
        assert found["verdicts"] == len(outcome.claims)
        assert found["small"] == 0
        assert found["over"] <= 0
        assert browser.save_screenshot(str(shots / f"{outcome.work}-{screen}.png"))
        # With one verdict selected, only its claims remain, and only the figures that they are
        # about.
        browser.find_element(By.CSS_SELECTOR, "label:has(#only-holds)").click()
        found = browser.execute_script(VISIBLE)
        assert found["verdicts"] == outcome.counts["holds"]
        holding = {c.study for c in outcome.claims if c.verdict == "holds" and not c.apart}
        drawn = {s.id: pictures(s) for s in outcome.studies}
        assert found["figures"] == sum(drawn[study] for study in holding)
