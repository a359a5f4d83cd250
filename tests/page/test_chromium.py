"""What a person does with the page: real clicks and keys in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.report.page import render_page
from tests.page import samples

Open = Callable[..., Any]

DETAILS = "#test=tests%2Ftest_report.py%3A%3Atest_report%5B40%20orders%5D"


def column(page: Any, number: int) -> list[str]:
    """The texts of one column of the tests, from the top."""
    cells = page.locator("#overview .table tbody tr").all()
    return [cell.locator("th, td").nth(number).inner_text() for cell in cells]


def names(page: Any) -> list[str]:
    return [text.partition("::")[2] for text in column(page, 0)]


def head(page: Any, title: str) -> Any:
    return page.locator("#overview .table").get_by_role("button", name=title, exact=True)


def frames(flame: Any) -> list[str]:
    """The names of the frames, as they are read to somebody."""
    return [
        (frame.get_attribute("aria-label") or "").partition(",")[0]
        for frame in flame.get_by_role("treeitem").all()
    ]


def frame(flame: Any, name: str) -> Any:
    return flame.get_by_role("treeitem", name=re.compile(rf"^{re.escape(name)},")).first


def point_at(element: Any) -> None:
    """Move the pointer there once the page stands still: scrolling hides what the pointer shows."""
    element.scroll_into_view_if_needed()
    element.page.evaluate(
        "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    element.hover(force=True)


def wide(element: Any) -> float:
    return float(element.bounding_box()["width"])


@pytest.fixture
def report(open_page: Open) -> Any:
    return open_page(samples.small())


@pytest.fixture
def details(open_page: Open) -> Any:
    return open_page(samples.small(), DETAILS)


@pytest.fixture
def flame(details: Any) -> Any:
    """The flame graph of the new tree."""
    details.get_by_label("Tree").select_option("now")
    return details.locator(".flame")


@pytest.fixture
def change(details: Any) -> Any:
    """The differential flame graph: it comes first."""
    return details.locator(".flame")


class TestTable:
    def test_the_worst_is_on_top(self, report: Any) -> None:
        assert column(report, 1) == [
            *("regressed", "failed", "incomparable", "new", "improved", "unchanged"),
        ]

    def test_a_click_sorts_and_another_turns_round(self, report: Any) -> None:
        """What is not known comes last both ways."""
        head(report, "delta").click()
        assert column(report, 4) == ["+13.1 %", "+0.0034 %", "−19.6 %", "–", "–", "–"]
        th = head(report, "delta").locator("xpath=..")
        assert th.get_attribute("aria-sort") == "descending"
        head(report, "delta").click()
        assert column(report, 4) == ["−19.6 %", "+0.0034 %", "+13.1 %", "–", "–", "–"]
        assert th.get_attribute("aria-sort") == "ascending"
        assert report.locator("th[aria-sort]").count() == 1

    @pytest.mark.parametrize(
        "title", ["test", "verdict", "baseline Ir", "now", "delta", "limit", "detects"]
    )
    def test_each_column_sorts(self, report: Any, title: str) -> None:
        head(report, title).click()
        before = names(report)
        head(report, title).click()
        assert sorted(names(report)) == sorted(before)
        assert head(report, title).locator("xpath=..").get_attribute("aria-sort")

    def test_keys_sort(self, report: Any) -> None:
        head(report, "test").focus()
        report.keyboard.press("Enter")
        assert names(report)[:2] == ["test_add", "test_remove"]
        report.keyboard.press("Space")
        assert names(report)[-2:] == ["test_remove", "test_add"]

    def test_search_says_how_many_it_found(self, report: Any) -> None:
        report.get_by_role("searchbox", name="Search tests").fill("export Failed")
        assert names(report) == ["test_xml"]
        assert report.get_by_role("status").first.inner_text() == "1 of 6 tests"
        report.get_by_role("searchbox", name="Search tests").fill("")
        assert report.get_by_role("status").first.inner_text() == "6 tests"

    def test_one_verdict(self, report: Any) -> None:
        report.get_by_role("combobox", name="Verdict").select_option("improved")
        assert names(report) == ["test_remove"]

    def test_five_hundred_tests(self, open_page: Open) -> None:
        page = open_page(samples.large(500))
        tests = page.locator("#overview tbody tr[class=opens]")
        assert tests.count() == 500
        page.get_by_role("searchbox", name="Search tests").fill("case-499")
        assert tests.count() == 1


class TestEnvironment:
    def test_what_differs_comes_first(self, report: Any) -> None:
        table = report.get_by_role("region", name="Environment")
        rows = [row.locator("th, td").all_inner_texts() for row in table.locator("tbody tr").all()]
        assert rows[:2] == [["glibc", "2.36", "2.31 in 1 test"], ["kernel", "–", "5.10 in 1 test"]]
        assert ["valgrind", "3.19.0", "–"] in rows

    def test_in_the_details(self, open_page: Open) -> None:
        page = open_page(samples.small(), "#test=tests%2Ftest_export.py%3A%3Atest_pdf")
        assert "glibc: 2.31 → 2.36" in page.locator("#details").inner_text()


class TestWays:
    def test_click_and_back(self, report: Any) -> None:
        report.get_by_role("link", name="test_report[40 orders]").click()
        report.get_by_role("heading", name="test_report[40 orders]").wait_for()
        assert report.url.endswith(DETAILS)
        assert report.locator("#overview").is_hidden()
        report.go_back()
        report.locator("#overview").wait_for()
        assert report.locator("#details").is_hidden()

    def test_a_click_beside_the_name_opens_too(self, report: Any) -> None:
        report.get_by_text("168,800").click()
        report.get_by_role("heading", name="test_report[40 orders]").wait_for()

    def test_keys_and_where_focus_goes(self, report: Any) -> None:
        link = report.get_by_role("link", name="test_report[40 orders]")
        link.focus()
        report.keyboard.press("Enter")
        report.get_by_role("heading", name="test_report[40 orders]").wait_for()
        assert report.evaluate("document.activeElement.tagName") == "H1"
        report.keyboard.press("Tab")
        report.keyboard.press("Shift+Tab")
        report.get_by_role("link", name="All tests").click()
        link.wait_for()
        assert link.evaluate("element => element === document.activeElement")

    def test_the_address_is_enough(self, details: Any) -> None:
        assert "test_report[40 orders]" in details.get_by_role("heading", level=1).inner_text()
        assert "test_report[40 orders]" in details.title()

    def test_an_address_that_others_wrote(self, open_page: Open) -> None:
        """Not all escape brackets, colons and slashes."""
        page = open_page(samples.small(), "#test=tests/test_report.py::test_report[40%20orders]")
        page.get_by_role("heading", name="test_report[40 orders]").wait_for()

    def test_an_address_of_nothing(self, open_page: Open) -> None:
        page = open_page(samples.small(), "#test=%E0%A4%A")
        assert page.locator("#overview").is_visible()

    def test_next_is_next_in_the_table(self, details: Any) -> None:
        details.get_by_role("link", name="Next").click()
        details.get_by_role("heading", name="test_xml").wait_for()
        details.get_by_role("link", name="Previous").click()
        details.get_by_role("heading", name="test_report[40 orders]").wait_for()


class TestDetails:
    def test_functions_before_and_now(self, details: Any) -> None:
        rows = details.get_by_role("region", name="Python functions").locator("tbody tr")
        assert rows.nth(0).locator("td").all_inner_texts() == ["+18,000", "+30,000", "40 → 160"]
        assert "shop/money.py:31" in rows.nth(0).inner_text()
        rows = details.get_by_role("region", name="C functions").locator("tbody tr")
        assert rows.nth(2).locator("td").all_inner_texts() == ["−2,500", "−2,410", "12 → 12"]

    def test_numbers(self, details: Any) -> None:
        text = details.locator(".numbers").inner_text()
        for word in ("149,200 Ir", "168,800 Ir", "+13.1 %", "149,180 to 149,260 Ir (0.054 %)"):
            assert word in text
        assert "babel: 2.14.0 → 2.15.0" in details.locator("#details").inner_text()

    def test_all_of_many_functions(self, open_page: Open) -> None:
        page = open_page(samples.large(1))
        page.get_by_role("link", name="test_0").click()
        page.get_by_role("heading", level=1, name="test_0").wait_for()
        rows = page.get_by_role("region", name="C functions").locator("tbody tr")
        assert rows.count() == 50
        page.get_by_role("button", name="Show all 80").click()
        assert rows.count() == 80

    def test_history(self, details: Any) -> None:
        plot = details.get_by_role("img")
        assert plot.get_attribute("aria-label") == "131,000 → 149,200 Ir in 8 commits"
        assert plot.locator(".point").count() == 8
        point_at(plot.locator(".point").nth(2))
        assert details.locator("#tip").inner_text().split("\n") == [
            *("148,000 Ir", "2026-03-03", "commit 0000000000"),
        ]
        details.get_by_text("As a table").click()
        assert details.locator(".plot tbody tr").nth(2).inner_text().split("\t") == [
            *("0000000000", "2026-03-03 09:00", "148,000", "+12.6 %"),
        ]

    def test_nothing_known(self, open_page: Open) -> None:
        page = open_page(samples.small(), "#test=tests%2Ftest_export.py%3A%3Atest_xml")
        text = page.locator("#details").inner_text()
        assert "were not recorded" in text
        assert "History" not in text and "Environment" not in text


class TestFlame:
    def test_frames_are_as_wide_as_their_share(self, flame: Any) -> None:
        whole = wide(frame(flame, "all"))
        assert wide(frame(flame, "shop.money.rate")) / whole == pytest.approx(
            36_000 / 168_800, abs=0.01
        )
        assert frame(flame, "shop.money.rate").get_attribute("aria-label") == (
            "shop.money.rate, 36,000 Ir, 21.3 % of all, self 24,000 Ir, calls 160"
        )

    def test_a_click_zooms_and_back_goes_back(self, flame: Any) -> None:
        before = frames(flame)
        frame(flame, "shop.orders.total").click()
        assert "str.format" not in frames(flame)
        assert frames(flame)[:4] == ["all", "test_report", "shop.report.render", "shop.report.rows"]
        assert wide(frame(flame, "shop.orders.total")) == wide(frame(flame, "all"))
        frame(flame, "shop.money.rate").click()
        flame.get_by_role("button", name="Back").click()
        assert frame(flame, "shop.orders.total").get_attribute("aria-current") == "true"
        flame.get_by_role("button", name="Whole tree").click()
        assert frames(flame) == before

    def test_keys_walk_and_zoom(self, details: Any, flame: Any) -> None:
        def here() -> str:
            label = details.evaluate("document.activeElement.getAttribute('aria-label')")
            return str(label).partition(",")[0]

        frame(flame, "all").focus()
        walk = [
            ("ArrowDown", "test_report"),
            ("ArrowDown", "shop.report.render"),
            ("ArrowRight", "json.dumps"),
            ("ArrowRight", "json.dumps"),
            ("ArrowDown", "json.encoder.JSONEncoder.encode"),
            ("Home", "shop.report.rows"),
            ("End", "json.encoder.JSONEncoder.encode"),
            ("ArrowLeft", "shop.report.rows"),
            ("ArrowUp", "shop.report.render"),
            ("Enter", "shop.report.render"),
        ]
        for key, name in walk:
            details.keyboard.press(key)
            assert here() == name
        assert "json.dumps" not in frames(flame)
        assert details.locator("#tip").is_visible()
        details.keyboard.press("Escape")
        assert here() == "shop.report.render"
        assert "json.dumps" in frames(flame)

    def test_one_stop_for_the_tab_key(self, flame: Any) -> None:
        assert flame.locator("[role=treeitem][tabindex='0']").count() == 1
        frame(flame, "json.dumps").click()
        assert flame.locator("[role=treeitem][tabindex='0']").count() == 1

    def test_search_highlights_and_says_the_share(self, details: Any, flame: Any) -> None:
        """What is found within what is found is not counted twice."""
        search = flame.get_by_role("searchbox")
        search.fill("SHOP.")
        assert flame.get_by_role("status").inner_text() == "90.7 % of the Ir matched, 5 functions"
        search.fill("money")
        assert flame.get_by_role("status").inner_text() == "46.2 % of the Ir matched, 2 functions"
        assert flame.locator(".hit").count() == 2
        search.press("Enter")
        label = details.evaluate("document.activeElement.getAttribute('aria-label')")
        assert label.startswith("shop.money.Money.__add__") and label.endswith("found")
        frame(flame, "shop.orders.total").click()
        assert flame.locator(".hit").count() == 2
        search.fill("")
        assert flame.get_by_role("status").inner_text() == ""
        assert flame.locator(".hit").count() == 0

    def test_the_pointer_shows_what_a_frame_is(self, details: Any, flame: Any) -> None:
        point_at(frame(flame, "str.format"))
        assert details.locator("#tip").inner_text().split("\n") == [
            *("str.format", "18,000 Ir, 10.7 % of all", "self 18,000 Ir", "calls 40"),
        ]
        details.mouse.move(5, 5)
        assert details.locator("#tip").is_hidden()

    def test_what_is_too_narrow(self, open_page: Open) -> None:
        tree = [[0, "root", 0, 1], [1, "most", 1_000_000, 1]] + [
            [1, f"f{n}", 1, 1] for n in range(9)
        ]
        python = {**samples.PYTHON, "old": None, "new": tree}
        page = open_page(
            samples.a_run(samples.a_test("a.py::b", python=python)), "#test=a.py%3A%3Ab"
        )
        assert "9 frames are too narrow" in page.locator(".flame").inner_text()
        assert "no tree to compare with" in page.locator("#details").inner_text()

    def test_recursion_as_deep_as_python_allows(self, open_page: Open) -> None:
        deep = [[number, "f", 1, 1] for number in range(5000)]
        python = {**samples.PYTHON, "old": deep, "new": deep}
        page = open_page(
            samples.a_run(samples.a_test("a.py::b", python=python)), "#test=a.py%3A%3Ab"
        )
        for tree in ("difference", "now"):
            page.get_by_label("Tree").select_option(tree)
            assert page.locator(".flame").get_by_role("treeitem").count() > 1000

    def test_nothing_was_counted(self, open_page: Open) -> None:
        python = {**samples.PYTHON, "old": [], "new": [[0, "f", 0, 1]], "unit": "bytecodes"}
        page = open_page(
            samples.a_run(samples.a_test("a.py::b", python=python)), "#test=a.py%3A%3Ab"
        )
        page.get_by_label("Tree").select_option("now")
        assert "No bytecodes were counted." in page.locator(".flame").inner_text()


class TestDifferentialFlame:
    def test_growth_is_a_colour_an_arrow_and_a_word(self, change: Any) -> None:
        grown, same = frame(change, "shop.money.rate"), frame(change, "shop.money.Money.__add__")
        gone = frame(change, "shop.report.legacy_header")
        assert "up" in grown.get_attribute("class") and grown.inner_text().startswith("▲")
        assert "same" in same.get_attribute("class") and not same.inner_text().startswith("▲")
        assert "down" in gone.get_attribute("class") and gone.inner_text().startswith("▼")
        assert grown.get_attribute("aria-label") == (
            "shop.money.rate, with callees 6,000 → 36,000 Ir (+500 %), "
            "self 6,000 → 24,000 Ir (+300 %), calls 40 → 160, now 21.3 % of all"
        )

    def test_more_is_redder_and_less_is_bluer(self, change: Any) -> None:
        """In the coordinates that colours are mixed in, b tells blue from the rest, a red."""

        def colour(name: str) -> list[float]:
            found = frame(change, name).evaluate("each => getComputedStyle(each).backgroundColor")
            return [float(each) for each in re.findall(r"-?[\d.]+(?:e-?\d+)?", found)[:3]]

        assert colour("shop.money.rate")[1] > colour("shop.orders.total")[1] > 0
        assert (
            colour("shop.report.legacy_header")[2]
            < colour("json.encoder.JSONEncoder.encode")[2]
            < 0
        )

    def test_what_is_gone_is_there_and_what_is_new(self, change: Any) -> None:
        label = frame(change, "shop.report.legacy_header").get_attribute("aria-label")
        assert "self 9,000 → 0 Ir (−100 %)" in label
        label = frame(change, "decimal.Decimal.quantize").get_attribute("aria-label")
        assert "self 0 → 12,000 Ir (new)" in label

    def test_colour_by_all_that_is_called(self, change: Any) -> None:
        rows = frame(change, "shop.report.rows")
        assert "same" in rows.get_attribute("class")
        change.get_by_role("combobox", name="Colour by").select_option("total")
        assert "up" in frame(change, "shop.report.rows").get_attribute("class")

    def test_it_zooms_and_searches(self, change: Any) -> None:
        frame(change, "shop.money.rate").click()
        assert frame(change, "shop.money.rate").get_attribute("aria-current") == "true"
        change.get_by_role("searchbox").fill("quantize")
        assert change.locator(".hit").count() == 1
        assert "1 function" in change.get_by_role("status").inner_text()


def background(page: Any) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


class TestLooks:
    LIGHT, DARK = "rgb(255, 255, 255)", "rgb(21, 23, 27)"

    def test_as_the_system_has_it(self, open_page: Open) -> None:
        assert background(open_page(samples.small(), color_scheme="light")) == self.LIGHT
        page = open_page(samples.small(), color_scheme="dark")
        assert background(page) == self.DARK
        assert page.get_by_role("button", name="Dark theme").get_attribute("aria-pressed") == "true"
        page.emulate_media(color_scheme="light")
        assert background(page) == self.LIGHT

    def test_the_button_says_otherwise_and_is_remembered(self, open_page: Open) -> None:
        page = open_page(samples.small(), color_scheme="light")
        page.get_by_role("button", name="Dark theme").click()
        assert background(page) == self.DARK
        page.reload()
        assert background(page) == self.DARK
        page.get_by_role("button", name="Dark theme").click()
        assert background(page) == self.LIGHT

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_text_can_be_read(self, open_page: Open, scheme: str) -> None:
        """At least 4.5 to 1 between a text and what is behind it, as WCAG has it."""
        page = open_page(samples.small(), DETAILS, color_scheme=scheme)
        assert (
            page.evaluate(CONTRAST, ".frame, .badge, .quiet, .place, dt, td, th, a, summary") == []
        )
        page.goto(page.url.partition("#")[0])
        assert page.evaluate(CONTRAST, ".badge, td, th, a, .made, .status") == []

    @pytest.mark.parametrize("fragment", ["", DETAILS])
    def test_a_narrow_window_does_not_scroll_sideways(self, open_page: Open, fragment: str) -> None:
        page = open_page(samples.small(), fragment, viewport={"width": 360, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


#: Elements whose text is hard to read: the canvas turns any notation of a colour into numbers.
CONTRAST = """(selector) => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const light = (colours) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3)
      .map((each) => each / 255)
      .map((each) => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return [...document.querySelectorAll(selector)].filter((each) => each.checkVisibility()).filter((each) => {
    const behind = [];
    for (let at = each; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
    const [a, b] = [light(behind), light([...behind, getComputedStyle(each).color])];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
  }).map((each) => each.outerHTML);
}"""


class TestHostile:
    def test_names_stay_text(self, open_page: Open) -> None:
        """In every place where one can stand; no element comes of them, no script runs."""
        page = open_page(samples.hostile())
        page.locator("#overview tbody a").click()
        page.get_by_role("heading", level=1, name="onerror").wait_for()
        page.get_by_text("As a table").click()
        point_at(page.locator(".frame").nth(1))
        page.get_by_role("searchbox").last.fill("</script>")
        assert page.evaluate("window.harmed") is None
        assert page.locator("img, iframe, object, embed, link, base, form").count() == 0
        assert page.locator("body script:not([type])").count() == 1
        for place in ("#details h1", "#tip", ".numbers", ".frame >> nth=1", "#home", "#made"):
            text = page.locator(place).inner_text()
            assert '</script><img src=x onerror="window.harmed=1">' in text
            assert r"\u{202e}\u{0}" in text

    def test_the_policy_stops_what_is_not_ours(self, browser: Any, tmp_path: Path) -> None:
        """Even if a name did become markup: no script of it runs, nothing is loaded or sent."""
        path = tmp_path / "report.html"
        path.write_text(render_page(samples.small()))
        page = browser.new_page()
        asked: list[str] = []
        page.on("requestfinished", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        tried = page.evaluate(
            """async () => {
              const broken = new Set();
              document.addEventListener("securitypolicyviolation",
                (event) => broken.add(event.effectiveDirective));
              document.body.insertAdjacentHTML("beforeend", "<img src='https://example.org/x'>"
                + "<iframe src='https://example.org/'></iframe>"
                + "<p style='color: red' onclick='window.harmed = 1'>x</p>");
              const script = document.createElement("script");
              script.textContent = "window.harmed = 1";
              document.body.append(script);
              await fetch("https://example.org/").catch(() => {});
              document.body.lastElementChild.previousElementSibling.click();
              await new Promise((done) => setTimeout(done, 200));
              return [[...broken].sort(), window.harmed ?? null];
            }"""
        )
        assert tried == [
            *(
                [
                    "connect-src",
                    "frame-src",
                    "img-src",
                    "script-src-attr",
                    "script-src-elem",
                    "style-src-attr",
                ],
                None,
            ),
        ]
        page.close()
        assert asked == [path.as_uri()]


def test_budgets(open_page: Open) -> None:
    """Those that are not kept come first, and the page of the test says what is to be done."""
    page = open_page(samples.with_budgets())
    table = page.get_by_role("region", name="Budgets")
    lines = [row.locator("th, td").all_inner_texts() for row in table.locator("tbody tr").all()]
    assert [line[1:3] for line in lines] == [
        ["max_ir", "over-budget"],
        ["scaling", "failed"],
        ["max_ratio", "kept"],
    ]
    assert lines[0][3:] == ["25,114", "20,000"]
    assert table.get_by_role("link").all_inner_texts() == ["a.py::test_dear", "a.py::test_well"]
    table.get_by_role("link", name="test_dear").click()
    page.get_by_role("heading", name="a.py::test_dear").wait_for()
    text = page.locator("#details").inner_text()
    assert "max_ir: 25,114, allowed 20,000" in text
    assert "<b>too much</b>\n  make it cheaper" in text
    page.get_by_role("link", name="Next").click()
    page.get_by_role("heading", name="a.py::test_well").wait_for()
    assert "max_ratio: 0.3, allowed 0.5" in page.locator("#details").inner_text()
    assert page.locator("pre").count() == 0
    assert open_page(samples.small()).get_by_role("region", name="Budgets").count() == 0


def test_on_a_phone_budgets_keep_their_columns(open_page: Open) -> None:
    """The table of tests has fewer there, which is no business of the other's."""
    page = open_page(samples.with_budgets(), viewport={"width": 400, "height": 900})
    heads = {
        name: [
            each.is_visible()
            for each in page.get_by_role("region", name=name).locator("th[scope=col]").all()
        ]
        for name in ("Tests", "Budgets")
    }
    assert heads == {"Tests": [True, True, False, False, True, False, False], "Budgets": [True] * 5}


WHY = [
    "+13.1 % (limit 1 %): rate money.py:31 is called 40 -> 160 times",
    "  calls total 40 -> 160 times",
    "        return rate(self.currency) * amount",
    "               ^^^^^^^^^^^^^^^^^^^",
    "  accept: pytest --instrcount-update-baseline a.py::b",
]


def test_the_first_screen_of_a_failure(open_page: Open) -> None:
    """The sentence, the line of source, the command and the graph, above all tables."""
    test = samples.a_test("a.py::b", "regressed", python=samples.PYTHON, why=WHY)
    page = open_page(samples.a_run(test), "#test=a.py%3A%3Ab")
    assert page.locator(".sentence").inner_text() == WHY[0]
    text = page.locator("pre.why").inner_text()
    assert text.split("\n") == [line.removeprefix("  ") for line in WHY[1:-1]]
    assert page.locator(".command code").inner_text() == WHY[-1].partition(": ")[2]
    assert page.locator(".flame").bounding_box()["y"] < 600
    assert (
        page.locator("#details .table").first.bounding_box()["y"]
        > page.locator(".flame").bounding_box()["y"]
    )
    page.get_by_label("Tree").select_option("before")
    assert "shop.report.legacy_header" in frames(page.locator(".flame"))
    page.get_by_label("Tree").select_option("now")
    assert "shop.report.legacy_header" not in frames(page.locator(".flame"))


def test_a_cause_is_said_once(open_page: Open) -> None:
    """With the tests that it moved; the numbers only where they are those of all."""
    cause, more = (
        "money.py:31 calls quantize 40 -> 160 times",
        "money.py:31 calls quantize more often",
    )
    other = "money.py:31 calls quantize 1 -> 4 times"
    page = open_page(
        samples.a_run(
            samples.a_test("a.py::b", "regressed", cause=["rate", cause, more], delta=0.02),
            samples.a_test("a.py::c", "regressed", cause=["rate", other, more], delta=0.131),
            samples.a_test("a.py::d", "regressed", cause=["total", "a.py:9", "a.py:9"], delta=0.05),
            samples.a_test("a.py::e", "improved", cause=["f", cause, more], delta=-0.05),
            samples.a_test("a.py::g", "improved", cause=["f", cause, more], delta=-0.05),
        )
    )
    causes = page.locator(".causes > li")
    assert [text.split("\n") for text in causes.all_inner_texts()] == [
        [f"+13.1 % to +2 % rate {more}", "a.py::c", "and 1 more"],
        ["+5 % total a.py:9", "a.py::d"],
        [f"−5 % f {cause}", "a.py::e", "and 1 more"],
    ]
    causes.nth(0).get_by_role("link").click()
    page.get_by_role("heading", name="a.py::c").wait_for()


def test_the_command_can_be_copied(open_page: Open) -> None:
    test = samples.a_test("a.py::b", "regressed", why=WHY)
    run = {**samples.a_run(test), "accept": "pytest --instrcount-update-baseline"}
    page = open_page(run, permissions=["clipboard-read", "clipboard-write"])
    for accept in (run["accept"], WHY[-1].partition(": ")[2]):
        page.get_by_role("button", name="Copy").click()
        page.get_by_role("button", name="Copied").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == accept
        page.evaluate("location.hash = '#test=a.py::b'")


def shares(*parts: float) -> dict[str, Any]:
    functions = [
        {**samples.C_FUNCTIONS[0], "name": f"f{n}", "share": part} for n, part in enumerate(parts)
    ]
    return samples.a_run(samples.a_test("a.py::b", "regressed", functions=functions))


def test_functions_are_parts_of_the_change(open_page: Open) -> None:
    """The worst first; those below 1 % are one line, until it is opened or they are searched for."""
    parts = (0.004, -0.08, 0.009, 0.6, *[0.001] * 60, 0.407)
    page = open_page(shares(*parts), "#test=a.py%3A%3Ab")
    table = page.get_by_role("region", name="C functions")
    rows = table.locator("tbody tr")
    assert [row.locator("th, td").all_inner_texts()[:2] for row in rows.all()] == [
        ["f3", "60 %"],
        ["f64", "40.7 %"],
        ["f1", "−8 %"],
    ]
    more = page.get_by_role("button", name="62 more, together 7.3 %")
    page.get_by_role("searchbox", name="Search functions").fill("f2")
    assert rows.count() == 11
    page.get_by_role("searchbox", name="Search functions").fill("")
    more.click()
    assert rows.count() == len(parts)
    assert page.evaluate("document.activeElement.innerText").startswith("f2\t0.9 %")


def test_all_are_shown_where_all_are_little(open_page: Open) -> None:
    page = open_page(shares(*[0.009] * 40), "#test=a.py%3A%3Ab")
    assert page.get_by_role("region", name="C functions").locator("tbody tr").count() == 40


@pytest.mark.parametrize(("part", "what"), [(1.0, "of the change"), (None, "self, Ir")])
def test_functions_on_a_phone(open_page: Open, part: float, what: str) -> None:
    """It has room for the name, the part of the change, or the growth where that is none, and the calls."""
    page = open_page(shares(part), "#test=a.py%3A%3Ab", viewport={"width": 400, "height": 900})
    table = page.get_by_role("region", name="C functions")
    heads = table.locator("th[scope=col]").all()
    assert [each.inner_text() for each in heads if each.is_visible()] == ["function", what, "calls"]
    assert table.evaluate("each => each.scrollWidth <= each.clientWidth")


def with_history(*points: tuple[str, int]) -> dict[str, Any]:
    history = [
        {"commit": commit, "date": f"2026-0{n + 1}-14T10:00", "ir": ir}
        for n, (commit, ir) in enumerate(points)
    ]
    return samples.a_run(samples.a_test("a.py::b", history=history))


def test_this_run_is_the_last_point(open_page: Open) -> None:
    """Also of a test that has not changed for long; noise looks as small as it is."""
    page = open_page(with_history(("a" * 40, 100_000), ("", 100_010)), "#test=a.py%3A%3Ab")
    plot = page.get_by_role("img")
    assert plot.get_attribute("aria-label") == "100,000 → 100,010 Ir in 1 commit and this run"
    first, last = (point.bounding_box()["y"] for point in plot.locator(".point").all())
    assert abs(first - last) < 2
    point_at(plot.locator(".point").nth(1))
    assert page.locator("#tip").inner_text().split("\n") == ["100,010 Ir", "2026-02-14", "this run"]
    page.get_by_text("As a table").click()
    assert (
        page.locator(".plot tbody tr")
        .nth(1)
        .inner_text()
        .startswith("this run\t2026-02-14 10:00\t100,010")
    )


def test_one_point_is_no_history(open_page: Open) -> None:
    page = open_page(with_history(("", 5)), "#test=a.py%3A%3Ab")
    assert "History" not in page.locator("#details").inner_text()
