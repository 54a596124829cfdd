"""The page on the API, in a real browser: an operation is tried, with a key, on a narrow and dark screen."""

from __future__ import annotations

import pytest

from support import browser
from support.waiting import wait_until

pytestmark = pytest.mark.skipif(browser.program() is None, reason=browser.MISSING)


@pytest.fixture(scope="module")
def chromium():
    opened = browser.Browser()
    yield opened
    opened.close()


def opened(chromium, server, **how):
    chromium.open(f"{server.url}/docs", **how)
    wait_until(lambda: chromium.run("document.body.dataset.ready"))


def send(chromium, operation):
    chromium.run(f"document.querySelector('#{operation}').open = true")
    chromium.run(f"document.querySelector('#{operation} button').click()")
    status = f"document.querySelector('#{operation} [role=status]').textContent"
    wait_until(lambda: chromium.run(status) not in ("", "…"))
    return chromium.run(status)


@pytest.mark.parametrize("how", [{}, {"dark": True, "width": 390}])
def test_an_example_is_sent_and_its_answer_is_shown(chromium, server, how):
    opened(chromium, server, **how)
    assert send(chromium, "evaluate").startswith(" 200 OK")
    wait_until(lambda: '"recall@3": 0.6666666' in chromium.run("document.querySelector('#evaluate pre').textContent"))
    assert chromium.run("document.documentElement.scrollWidth") == how.get("width", 1200)
    assert chromium.complaints() == []
    assert chromium.requests() == [f"{server.url}/openapi.json", f"{server.url}/v1/evaluate"]
    light = chromium.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert light == ("dark" not in how)


def test_an_edited_body_another_example_and_parameters(chromium, server):
    opened(chromium, server)
    chromium.run("document.querySelector('#evaluate textarea').value = '{'")
    assert send(chromium, "evaluate").startswith(" 400")
    pick = "document.querySelector('#evaluate select')"
    chromium.run(f"{pick}.selectedIndex = 4; {pick}.dispatchEvent(new Event('change'))")
    assert "fuzzy" in chromium.run("document.querySelector('#evaluate textarea').value")
    assert send(chromium, "evaluate").startswith(" 200")
    chromium.run("document.querySelector('#runs input[name=limit]').value = '1'")
    assert send(chromium, "runs").startswith(" 200")
    assert chromium.requests()[-1].endswith("/v1/runs?limit=1")


def test_it_shows_all_operations_and_schemas(chromium, server):
    opened(chromium, server)
    document = server.ask("/openapi.json").json
    operations = sum(map(len, document["paths"].values()))
    assert chromium.run("document.querySelectorAll('details[id]:not([id^=schema])').length") == operations
    assert chromium.run("document.querySelectorAll('[id^=schema]').length") == len(document["components"]["schemas"])


def test_a_key_is_sent(chromium, locked):
    server, key = locked
    opened(chromium, server)
    assert send(chromium, "metrics").startswith(" 401")
    chromium.run(f"document.getElementById('key').value = '{key}'")
    assert send(chromium, "metrics").startswith(" 200")


def test_its_policy_lets_no_other_script_run(chromium, server):
    policy = server.ask("/docs").headers["Content-Security-Policy"]
    assert "'unsafe" not in policy
    assert "default-src 'none'" in policy
    opened(chromium, server)
    chromium.run(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.bad = 1'}))"
    )
    assert chromium.run("window.bad") is None
