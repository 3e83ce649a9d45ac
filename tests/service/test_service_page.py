"""The page of the service in a browser: with and without a token, by keyboard, on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser import opened
from serving import EDITED, FOX, OTHER, document, enter, problem, served, until

from neardup.service.guard import Tokens
from neardup.service.indexes import IndexOptions

HOSTILE = f"{FOX} <script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">"
WRITE = "w" * 20


@contextmanager
def page_of(client: httpx.Client, width: int = 1280, *, wrong_tokens: int = 0) -> Iterator[Any]:
    """Open the page; it may only call its own service, and must log no error but one for each wrong token."""
    wrong: list[str] = []
    with opened(str(client.base_url).rstrip("/"), width=width, wrong=wrong) as page:
        yield page
        assert page.title() == "neardup"
    # The browser itself logs an answer to a wrong token.
    assert sum(" 401 " in line for line in wrong) <= wrong_tokens
    assert not [line for line in wrong if " 401 " not in line]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with served(tmp_path_factory.mktemp("page")) as client:
        enter(client, document("a"), document("b", EDITED), document("evil <b>id", HOSTILE), document("c", FOX))
        client.put("/v1/indexes/other", json={}).raise_for_status()
        yield client


def test_pasted_texts_words_and_indexes_are_looked_up(client: httpx.Client) -> None:
    with page_of(client) as page:
        page.fill("#asked", EDITED.replace("lazy", "sleepy"))
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        answer = page.locator("#similar .answer")
        answer.wait_for()
        assert answer.inner_text().startswith(("A near-duplicate", "New"))
        assert "sleepy" in page.locator("#similar .right mark.changed").all_inner_texts()[0]
        assert "lazy" in page.locator("#similar .left mark.changed").all_inner_texts()[0]
        page.fill("#asked", OTHER)
        page.click("#ask-form button")
        page.locator("#similar .answer", has_text="New").wait_for()
        assert client.get("/v1/indexes/main").json()["documents"] == 4
        for searched, found in (("c", "c"), ("evil <b>id", "evil <b>id"), ("FARMER onerror", "evil <b>id")):
            page.fill("#words", searched)
            page.click("#search-form button")
            page.locator("#found strong", has_text=found).first.wait_for()
        page.fill("#words", "zebra")
        page.click("#search-form button")
        page.locator("#found .answer", has_text="None of the latest").wait_for()
        assert page.locator("#tiles .value").all_inner_texts()[0] == "4"
        page.select_option("#index", "other")
        until(lambda: page.evaluate("document.querySelector('#tiles .value').textContent === '0'"))
        page.locator("#stops .answer", has_text="Nothing was stopped today").wait_for()


def test_stopped_documents_are_listed_and_released_on_a_phone(client: httpx.Client) -> None:
    with page_of(client, width=390) as page:
        page.locator("#stops li").first.wait_for()
        before = page.locator("#stops li").count()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        searched: list[str] = []

        def dismiss(dialog: Any) -> None:
            searched.append(dialog.message)
            dialog.dismiss()

        page.fill("#by", "")
        page.locator('#stops [data-release="b"]').click()
        page.locator("#trouble", has_text="Give your name").wait_for()
        # It is seen where one is, however far down.
        assert page.evaluate("document.querySelector('#trouble').getBoundingClientRect().top >= 0")
        assert page.evaluate("document.activeElement.id") == "by"
        page.fill("#by", "Ann")
        page.once("dialog", dismiss)
        page.locator('#stops [data-release="b"]').click()
        assert searched[0].startswith("Release b?")
        assert client.get("/v1/indexes/main/documents/b").json()["verdict"]["kind"] == "near"
        page.once("dialog", lambda dialog: dialog.accept())
        page.locator('#stops [data-release="b"]').click()
        until(lambda: page.evaluate(f"document.querySelectorAll('#stops li').length === {before - 1}"))
        assert client.get("/v1/indexes/main/documents/b").json()["verdict"]["kind"] == "original"
        page.click("#again")
        until(lambda: page.evaluate("!document.querySelector('#again').disabled"))
        assert page.locator('#stops [data-release="b"]').count() == 0
        assert page.locator("#trouble").is_hidden()
        page.goto(f"{client.base_url}/docs")
        assert page.locator("#calls dd").count() > 10
        assert page.evaluate(
            "[...document.querySelectorAll('#calls *')].every((one) => one.getBoundingClientRect().right <= innerWidth)"
        )
        page.go_back()


def test_an_empty_page_says_so_and_fills(tmp_path: Path) -> None:
    with served(tmp_path) as client, page_of(client) as page:
        page.locator("#stops .answer", has_text="Nothing was stopped today").wait_for()
        enter(client, document("a"), *(document(f"copy-{number}") for number in range(30)))
        page.click("#again")
        page.locator("#stops .answer", has_text="The newest 25 are listed").wait_for()
        assert page.locator("#stops li").count() == 25
        page.click("#more")
        until(lambda: page.locator("#stops li").count() == 30)
        assert page.evaluate("document.activeElement.dataset.release") == "copy-4"
        assert page.locator("#more").count() == 0


def test_a_token_opens_the_page(tmp_path: Path) -> None:
    headers = {"Authorization": f"Bearer {WRITE}"}
    with served(tmp_path, tokens=Tokens(write=(WRITE,))) as client:
        client.headers.update(headers)
        enter(client, document("a"), document("b", EDITED))
        # The frame contains no documents.
        frame = httpx.get(client.base_url, timeout=300)
        assert frame.is_success
        assert "farmer" not in frame.text
        problem(httpx.post(client.base_url.join("/page/stopped"), json={}, timeout=300), 401)
        with page_of(client, wrong_tokens=1) as page:
            assert page.locator("#stops").inner_html() == ""
            # Nothing that needs a token is offered before there is one.
            assert not page.locator("#open").is_visible()
            page.fill("#token", "wrong")
            page.keyboard.press("Enter")
            page.locator("#trouble", has_text="This token is not known here").wait_for()
            assert not page.locator("#open").is_visible()
            page.fill("#token", WRITE)
            page.keyboard.press("Enter")
            page.locator("#stops li").first.wait_for()
            assert not page.locator("#token-form").is_visible()
            page.reload()
            page.locator("#stops li").first.wait_for()
            assert WRITE not in page.url


def test_late_documents_are_counted_on_the_page_and_lists_are_in_order_of_time(tmp_path: Path) -> None:
    with served(tmp_path, options=IndexOptions(recipe="ddd", window="24h")) as client:
        dated = [("a", FOX, 7), ("b", EDITED, 9), ("c", FOX, 8), ("old", OTHER, 1)]
        enter(client, *(document(name, text, timestamp=f"2026-03-{day:02}T12:00:00Z") for name, text, day in dated))
        assert client.get("/v1/indexes/main").json()["late"] == 1
        with page_of(client) as page:
            page.locator("#tiles", has_text="older than the window").wait_for()
            assert "exact text only" in page.locator("#tiles .facts").inner_text()
            page.fill("#words", "farmer")
            page.click("#search-form button")
            page.locator("#found strong").first.wait_for()
            assert page.locator("#found strong").all_inner_texts() == ["b", "c", "a"]


def test_the_page_releases_documents_of_any_id(tmp_path: Path) -> None:
    names = [".", "..", "a\nb", "x/../y"]
    with served(tmp_path) as client:
        enter(client, document("first"), *(document(name) for name in names))
        with page_of(client) as page:
            page.locator("#stops li").first.wait_for()
            page.fill("#by", "Ann")
            page.on("dialog", lambda dialog: dialog.accept())
            for left in reversed(range(len(names))):
                page.locator("#stops [data-release]").first.click()
                until(lambda left=left: page.locator("#stops li").count() == left)
        assert client.get("/v1/indexes/main").json()["duplicates"] == 0
