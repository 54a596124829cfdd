"""Who may look at the workbench: the browser with the token, which is then a cookie."""

from __future__ import annotations

import pytest

from karat.web.problems import Refused
from karat.web.view.session import Session

SESSION = Session("s3cret", 5273)


def cookie(text):
    return {"cookie": text}


def test_the_token_becomes_a_cookie_and_leaves_the_address():
    reply = SESSION.check("/run/abc", "a=1&token=s3cret&b=%C3%A4", {})
    assert reply.status == 303
    assert reply.headers["Location"] == "/run/abc?a=1&b=%C3%A4"
    name, _, rest = reply.headers["Set-Cookie"].partition("=")
    value, _, rules = rest.partition(";")
    assert name == "karat-5273"
    assert rules == " Path=/; HttpOnly; SameSite=Strict"
    assert len(value) >= 32
    assert value != "s3cret"


def test_the_cookie_opens_every_page_among_any_others():
    own = SESSION.check("/", "token=s3cret", {}).headers["Set-Cookie"].partition(";")[0]
    assert SESSION.check("/run/abc", "", cookie(f"other={{a b}}; {own};broken")) is None


@pytest.mark.parametrize("headers", [{}, cookie("karat-5273=wrong"), cookie("karat-5273=s3cret"), cookie("ä=\x00;;")])
def test_others_are_refused(headers):
    with pytest.raises(Refused, match="was not opened by karat view") as caught:
        SESSION.check("/", "", headers)
    assert caught.value.status == 403


def test_a_wrong_token_is_refused():
    with pytest.raises(Refused, match="the token is wrong"):
        SESSION.check("/", "token=wrong%ff", {})


def test_the_token_of_the_opened_browser_works_once():
    session = Session("s3cret", 5273, once="first")
    assert session.check("/", "token=first", {}).status == 303
    with pytest.raises(Refused, match="the token is wrong"):
        session.check("/", "token=first", {})
    assert session.check("/", "token=s3cret", {}).status == 303
    with pytest.raises(Refused):
        session.check("/", "token=", {})


def test_a_token_does_not_redirect_to_another_host():
    assert SESSION.check("//evil.org/", "token=s3cret", {}).headers["Location"] == "/evil.org/"
    assert "\n" not in SESSION.check("/a\r\nSet-Cookie: x", "token=s3cret", {}).headers["Location"]


def test_style_and_script_are_open():
    assert SESSION.check("/assets/karat.css", "", {}) is None
