"""The page in a real browser: keys, reloads, two labellers, hostile and huge texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import browser
import pytest
from browser import expect
from labelling_room import TEXTS, Room

from neardup.labelling.server import LabelServer
from neardup.labels.store import LabelStore, majority_labels

HOSTILE = (
    "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\"> <b>bold</b> &lt;i&gt; "
    "</main></body> {kind} \u202e desrever \u0000 end"
)


@pytest.fixture(scope="session")
def chromium() -> Any:
    """Chromium, wherever it is."""
    return browser.chromium()


class Desk:
    """A served room, and browsers of its labellers."""

    def __init__(self, chromium: Any, path: Path, stack: ExitStack, *arguments: Any, **options: Any) -> None:
        self._chromium, self._stack = chromium, stack
        self.room = stack.enter_context(Room(path, *arguments, **options))
        self.service = stack.enter_context(LabelServer(self.room.session))
        self.wrong: list[str] = []

    def page(self, labeller: str = "", *, stopped: bool = False, **options: Any) -> Any:
        """Open a browser context, as a labeller if there is a name, with a ``stopped`` clock if requested."""
        context = self._chromium.new_context(**({"viewport": {"width": 1400, "height": 900}} | options))
        self._stack.callback(context.close)
        page = context.new_page()
        if stopped:
            page.clock.install(time=0)
            page.clock.pause_at(1000)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("console", lambda message: self.wrong.append(message.text))
        page.goto(self.service.link(self.service._access.new_token()) + (f"&labeller={labeller}" if labeller else ""))
        return page

    @property
    def labels(self) -> dict[tuple[str, str], dict[str, str]]:
        """The labels that another process finds in the store."""
        with LabelStore(self.room.store.path) as store:
            return {pair: dict(answers) for pair, answers in store.labels.items()}


@pytest.fixture
def make_desk(chromium: Any, tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    """Makes a desk whose browsers must report no error."""
    with ExitStack() as stack:
        desks: list[Desk] = []

        def make(*arguments: Any, **options: Any) -> Desk:
            desks.append(Desk(chromium, tmp_path / "labels.db", stack, *arguments, **options))
            return desks[-1]

        yield make
        assert [desk.wrong for desk in desks] == [[]] * len(desks)


@pytest.fixture
def desk(make_desk: Callable[..., Desk]) -> Desk:
    return make_desk()


def ready(page: Any) -> None:
    """Wait until the page accepts keys."""
    expect(page.locator("#keys[data-ready]")).to_be_visible()


def press(page: Any, key: str) -> None:
    ready(page)
    page.keyboard.press(key)


def shows(page: Any, left: str, right: str) -> None:
    expect(page.locator(".heads .left strong")).to_have_text(left)
    expect(page.locator(".heads .right strong")).to_have_text(right)


def text_of(page: Any, side: str) -> str:
    return "".join(page.locator(f"#texts .row:not(.heads) .{side}").all_text_contents())


def test_a_whole_session_with_keys(desk: Desk) -> None:
    page = desk.page()
    expect(page.locator("#asking")).to_be_visible()
    expect(page.locator("footer")).to_be_hidden()
    expect(page.locator("#name")).to_be_focused()
    page.keyboard.type("anna")
    page.keyboard.press("Enter")
    shows(page, "a1", "a2")
    assert text_of(page, "left") == TEXTS["a1"]
    assert text_of(page, "right") == TEXTS["a2"]
    expect(page.locator("#texts .left mark.changed")).to_have_text("Tuesday")
    expect(page.locator("#texts .right mark.changed")).to_have_text("Monday")
    # The score appears after the judgement only.
    assert "jaccard" not in page.locator("body").inner_text()
    expect(page.locator("#before")).to_be_empty()
    press(page, "s")
    expect(page.locator("#before")).to_contain_text("Last answer: same · similarity 0.50 by jaccard(words:3)")
    shows(page, "b1", "b2")
    assert desk.labels == {("a1", "a2"): {"anna": "same"}}
    press(page, "d")
    shows(page, "c1", "c2")
    press(page, "u")
    shows(page, "a1", "b1")
    press(page, "k")
    expect(page.locator("#before")).to_have_text("Skipped.")
    shows(page, "b1", "c1")
    expect(page.locator("#counts")).to_have_text(
        "3 pairs judged: 1 same · 1 different · 1 unsure · 1 skipped · 2 to go"
    )
    press(page, "z")
    expect(page.locator("#before")).to_contain_text("Undone: skip")
    shows(page, "a1", "b1")
    press(page, "n")
    shows(page, "b1", "c1")
    press(page, "y")
    expect(page.locator("#done")).to_be_visible()
    press(page, "z")
    shows(page, "b1", "c1")
    press(page, "D")
    expect(page.locator("#done")).to_be_visible()
    expect(page.locator("#done")).to_contain_text("No pair is left")
    assert {pair: answers["anna"] for pair, answers in desk.labels.items()} == {
        ("a1", "a2"): "same",
        ("b1", "b2"): "different",
        ("c1", "c2"): "unsure",
        ("a1", "b1"): "different",
        ("b1", "c1"): "different",
    }
    press(page, "Enter")
    expect(page.locator("#done")).to_contain_text("neardup has ended")
    assert desk.room.session.finished.wait(300)


def key_down(page: Any, key: str, code: str, times: int = 1) -> None:
    """Press a key several times before the page can do anything else."""
    page.evaluate(
        "([key, code, times]) => { for (; times; times--) document.body.dispatchEvent("
        "new KeyboardEvent('keydown', { key, code, bubbles: true })) }",
        [key, code, times],
    )


def test_repeated_and_combined_keys_are_no_answers(desk: Desk) -> None:
    page = desk.page("anna")
    ready(page)
    for key in ("Control+s", "Alt+d", "Meta+u", "x", "Enter", "5"):
        page.keyboard.press(key)
    page.locator("body").dispatch_event("keydown", {"key": "s", "code": "KeyS", "repeat": True})
    shows(page, "a1", "a2")
    assert desk.labels == {}
    # Another keyboard layout: the position of the key counts. Hasty keys judge one pair.
    key_down(page, "\u0432", "KeyD", 4)
    shows(page, "b1", "b2")
    ready(page)
    assert desk.labels == {("a1", "a2"): {"anna": "different"}}


def test_keys_count_only_after_a_pair_could_be_read(desk: Desk) -> None:
    page = desk.page("anna", stopped=True)
    shows(page, "a1", "a2")
    page.clock.run_for(199)
    key_down(page, "d", "KeyD")
    page.clock.run_for(1)
    key_down(page, "s", "KeyS")
    shows(page, "b1", "b2")
    # Each pair is shown for this long, also the one that an undo brings back in between.
    page.clock.run_for(150)
    key_down(page, "z", "KeyZ")
    shows(page, "a1", "a2")
    page.clock.run_for(150)
    key_down(page, "d", "KeyD")
    page.clock.run_for(50)
    key_down(page, "u", "KeyU")
    shows(page, "b1", "b2")
    assert desk.labels == {("a1", "a2"): {"anna": "unsure"}}


def test_buttons_act_as_keys_and_a_reload_shows_the_same_pair(desk: Desk) -> None:
    page, other = desk.page("anna"), desk.page("anna")
    ready(page)
    ready(other)
    page.get_by_role("button", name="different").click()
    shows(page, "b1", "b2")
    press(other, "s")
    expect(other.locator("#before")).to_contain_text("Not stored")
    shows(other, "b1", "b2")
    # The button does not keep the focus, so the space scrolls.
    press(page, " ")
    assert desk.labels == {("a1", "a2"): {"anna": "different"}}
    assert "token" not in page.url
    page.reload()
    shows(page, "b1", "b2")
    expect(page.locator("#labeller")).to_have_text("anna")
    expect(page.locator("#counts")).to_contain_text("1 pair judged")
    ready(page)
    page.get_by_role("button", name="undo").click()
    shows(page, "a1", "a2")
    assert desk.labels == {}


def test_hostile_texts_are_shown_as_text(make_desk: Callable[..., Desk]) -> None:
    texts = {"<b>1</b>": HOSTILE.format(kind="one"), "<img src=x onerror=alert(1)>": HOSTILE.format(kind="two")}
    titles = dict.fromkeys(texts, "<script>alert(1)</script>")
    desk = make_desk(texts, [tuple(texts)], titles=titles)
    page = desk.page("<i>eve</i>")
    shows(page, "<script>alert(1)</script>", "<script>alert(1)</script>")
    expect(page.locator("#labeller")).to_have_text("<i>eve</i>")
    for side, text in zip(("left", "right"), texts.values(), strict=True):
        assert text_of(page, side) == text.replace("\0", "\u2400")
    assert page.locator("main img, main script, main b, main i, #labeller i").count() == 0
    assert page.title() == "neardup: Are these two the same?"
    press(page, "s")
    expect(page.locator("#done")).to_be_visible()
    assert majority_labels(desk.room.store.path) == [(*sorted(texts), 1)]


def test_the_policy_forbids_markup_and_requests(desk: Desk) -> None:
    page = desk.page("anna")
    ready(page)
    assert page.evaluate(
        "() => { try { document.body.innerHTML = '<b>x</b>'; return '' } catch (e) { return e.name } }"
    )
    failed = "u => fetch(u).then(() => 'reached', e => e.name)"
    assert page.evaluate(failed, "http://127.0.0.1:9/") == "TypeError"
    # The console reports the attempts.
    assert any("Content Security Policy" in message or "TrustedHTML" in message for message in desk.wrong)
    desk.wrong.clear()


def test_right_to_left_and_unspaced_scripts(make_desk: Callable[..., Desk]) -> None:
    texts = {
        "he1": "הבנק המרכזי הודיע ביום שני כי הריבית תישאר 2.5 אחוז. Reuters",
        "he2": "הבנק המרכזי הודיע ביום שלישי כי הריבית תישאר 2.5 אחוז. Reuters",
        "zh1": "中国人民银行宣布下调利率十个基点。",
        "zh2": "中国人民银行宣布下调利率五个基点。",
    }
    page = make_desk(texts, [("he1", "he2"), ("zh1", "zh2")]).page("anna")
    shows(page, "he1", "he2")
    cell, mark = page.locator("#texts .row:not(.heads) .left").first, page.locator("#texts .left mark.changed")
    direction = "e => getComputedStyle(e).direction"
    assert (cell.evaluate(direction), page.locator("header").evaluate(direction)) == ("rtl", "ltr")
    expect(mark).to_have_text("שני")
    # The first word is on the right.
    assert mark.bounding_box()["x"] > cell.bounding_box()["x"] + 50
    press(page, "d")
    shows(page, "zh1", "zh2")
    expect(mark).to_have_text("十")
    expect(page.locator("#texts .right mark.changed")).to_have_text("五")
    assert cell.evaluate(direction) == "ltr"


def test_long_texts_are_folded_until_a_key_opens_them(make_desk: Callable[..., Desk]) -> None:
    lines = [f"Line {at} of a long text that says the same as the other one, word for word." for at in range(60)]
    changed = [*lines[:20], "Zebras graze.", *lines[20:50], *lines[51:]]
    texts = {"long": "\n".join(lines), "longer": "\n".join(changed)}
    desk = make_desk(texts, [tuple(texts)])
    page = desk.page("anna")
    expect(page.locator(".heads .left strong")).to_have_text("long")
    folds = page.locator("details summary")
    expect(folds).to_have_count(3)
    expect(folds.first).to_contain_text("equal words")
    assert page.locator("#texts .row:visible").count() < 40
    expect(page.locator("#texts .right mark.changed").first).to_contain_text("Zebras")
    press(page, "e")
    expect(page.locator("details").first).to_have_attribute("open", "")
    assert text_of(page, "left") == texts["long"]
    assert text_of(page, "right") == texts["longer"]
    page.keyboard.press("e")
    expect(page.locator("details").first).not_to_have_attribute("open", "")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_keys_and_texts_fit_at_two_widths(desk: Desk, width: int, scheme: str) -> None:
    page = desk.page("anna", viewport={"width": width, "height": 860}, color_scheme=scheme, reduced_motion="reduce")
    press(page, "s")
    shows(page, "b1", "b2")
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    for button in page.locator("#keys button").all():
        expect(button).to_be_in_viewport(ratio=1)
    expect(page.locator("#question")).to_be_in_viewport(ratio=1)
    left, right = (page.locator(f"#texts .row.differs .{side}").first.bounding_box() for side in ("left", "right"))
    assert (left["y"] == right["y"]) == (width > 760)
    text = page.locator("#texts .row:not(.heads) .left").first
    assert text.evaluate("e => parseFloat(getComputedStyle(e).fontSize)") >= 17
    dark = page.evaluate("() => getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every(x => x < 64)")
    assert dark == (scheme == "dark")
    press(page, "?")
    expect(page.locator("#help")).to_be_in_viewport()
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def test_a_page_reports_that_its_server_has_ended(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk()
    page = desk.page("anna")
    ready(page)
    desk.service.__exit__(None, None, None)
    page.keyboard.press("s")
    expect(page.locator("#alarm")).to_contain_text("neardup does not respond")
    shows(page, "a1", "a2")
    assert desk.labels == {}
    assert all("ERR_CONNECTION_REFUSED" in message for message in desk.wrong)
    desk.wrong.clear()


def test_the_name_is_asked_once_in_a_browser_and_can_be_changed(desk: Desk) -> None:
    page = desk.page()
    expect(page.locator("#asking")).to_be_visible()
    assert page.locator("#name").input_value() != "root"
    page.fill("#name", "änna b")
    page.keyboard.press("Enter")
    shows(page, "a1", "a2")
    # Another tab, by another link, as after another start of the program.
    tab = page.context.new_page()
    tab.goto(desk.service.link(desk.service._access.new_token()))
    shows(tab, "a1", "a2")
    expect(tab.locator("#labeller")).to_have_text("änna b")
    tab.click("#rename")
    expect(tab.locator("#asking")).to_be_visible()
    tab.fill("#name", "ben")
    tab.keyboard.press("Enter")
    expect(tab.locator("#labeller")).to_have_text("ben")


def test_a_long_pair_is_folded_until_its_reader_unfolds_it(make_desk: Callable[..., Desk]) -> None:
    long_texts = {name: " ".join(f"{name}{number} shared {number}" for number in range(2000)) for name in ("a1", "a2")}
    page = make_desk(texts=TEXTS | long_texts).page("anna")
    shows(page, "a1", "a2")
    height = "document.documentElement.scrollHeight"
    assert page.evaluate(f"{height} < 2 * innerHeight")
    press(page, "e")
    assert page.evaluate(f"{height} > 3 * innerHeight")
    press(page, "e")
    assert page.evaluate(f"{height} < 2 * innerHeight")
    page.click("#unfold")
    assert page.evaluate(f"{height} > 3 * innerHeight")
    # The next pair is short.
    press(page, "s")
    shows(page, "b1", "b2")
    expect(page.locator("#unfold")).to_be_hidden()
