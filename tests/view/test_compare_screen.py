"""The Compare screen in a real browser: clicked, by keyboard, without script, narrow, and in parts."""

from __future__ import annotations

import html
import re
import time

import pytest


@pytest.fixture
def opened(viewer, chromium, screens):
    def open_at(more="", **how):
        chromium.open(f"{viewer.url}{screens['compare']}{more}", **how)
        chromium.settle()
        return chromium

    return open_at


def count(browser):
    return browser.run("(document.querySelector('#moved caption')?.textContent.match(/([0-9,]+) quer/) ?? [0, '0'])[1]")


def wait(browser, condition):
    end = time.monotonic() + 20
    while not browser.run(condition):
        assert time.monotonic() < end, condition
        time.sleep(0.05)


def test_a_circle_shows_its_queries_without_a_new_page(opened):
    browser = opened()
    browser.run("window.here = true")
    name = browser.run("document.querySelector('.scatter a:has(.lost), .scatter a:has(.won)').ariaLabel")
    browser.run("document.querySelector('.scatter a:has(.lost), .scatter a:has(.won)').focus()")
    press(browser, "Enter")
    wait(browser, "location.search.includes('before=')")
    assert browser.run("window.here")
    assert name.split(": ")[1].split()[0] == count(browser)
    assert browser.run("document.activeElement.closest('section').id") == "moved"
    assert browser.run("document.querySelectorAll('.scatter a[aria-current]').length") == 1
    browser.run("history.back()")
    wait(browser, "window.here === undefined && document.readyState === 'complete'")
    assert not browser.run("location.search.includes('before=')")
    assert browser.complaints() == []


def press(browser, key):
    for kind in ("keyDown", "keyUp"):
        more = {"text": "\r"} if kind == "keyDown" and key == "Enter" else {}
        code = {"Enter": 13, "Tab": 9}[key]
        browser.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)


def test_the_keyboard_reaches_every_circle(opened):
    browser = opened()
    circles = browser.run("document.querySelectorAll('.scatter a').length")
    browser.run("document.querySelector('#scores .choice a:last-of-type').focus()")
    seen = set()
    for _ in range(circles):
        press(browser, "Tab")
        seen.add(browser.run("document.activeElement.closest('.scatter') && document.activeElement.ariaLabel"))
        assert browser.run("getComputedStyle(document.activeElement.querySelector('circle')).strokeWidth") == "3px"
    assert None not in seen
    assert len(seen) == circles


def test_filters_work_without_script(viewer, chromium, screens):
    chromium.open(viewer.url + screens["compare"], script=False)
    link = chromium.html("#moved [aria-label=Result] a:nth-of-type(2)")
    address = html.unescape(re.search(r'href="([^"]*)"', link)[1])
    assert "way=won" in address
    chromium.open(viewer.url + address, script=False)
    assert ">won " in chromium.html("#moved .choice a[aria-current]")


@pytest.mark.parametrize("dark", [False, True])
def test_narrow_screens_show_the_verdict_of_every_metric(opened, dark):
    browser = opened(width=390, dark=dark)
    inside = """[...document.querySelectorAll('.side-by-side td.verdict')].every(cell => {
        const box = cell.getBoundingClientRect();
        return box.width > 0 && box.left >= 0 && box.right <= 390 && cell.textContent.trim();
    })"""
    assert browser.run(inside)
    assert browser.run("document.documentElement.scrollWidth") == 390
    box = "document.querySelector('.scatter svg').getBoundingClientRect()"
    assert browser.run(f"{box}.right") <= 390
    assert browser.run(f"{box}.width") > 300


def test_parts_are_filled_in(opened, viewer, screens):
    browser = opened()
    whole = browser.run("document.getElementById('scores').outerHTML")
    part = screens["compare"].replace("/compare?", "/compare/part/scores?")
    browser.run(f"document.getElementById('scores').outerHTML = '<section id=scores data-part=\"{part}\"></section>'")
    browser.run("view.loadSections()")
    wait(browser, "document.querySelector('#scores .scatter') !== null")
    assert browser.run("document.getElementById('scores').outerHTML") == whole
    assert browser.complaints() == []
