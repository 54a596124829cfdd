"""Only the reader with the token sees anything, and pages of others can do nothing: HTTP with a real server."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from karat.cli import main
from support.viewed import viewed

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}  # fmt: skip
OTHERS = (
    "/run/0", "/run/0/part/scores", "/run/0/opened/0", "/compare", "/compare/part/scores?runs=0", "/query", "/state",
    "/metrics", "/healthz", "/readyz", "/nothing", "/v1/runs", "/docs", "/openapi.json", "//", "/assets",
)  # fmt: skip


def stranger(viewer, path, **more):
    return viewer.ask(path, cookie=None, Accept="text/html", **more)


def test_a_stranger_sees_one_page_that_says_what_to_do(viewer, screens):
    for path in (*screens.values(), *OTHERS):
        answer = stranger(viewer, path)
        assert (answer.status, answer.headers["Content-Type"].partition(";")[0]) == (403, "text/html"), path
        page = answer.body.decode()
        assert "use the address that karat view printed" in page
        assert "bm25" not in page
        assert answer.headers["Set-Cookie"] is None
    assert stranger(viewer, "/assets/karat.css").status == 200


def test_a_page_about_a_problem_has_the_theme_that_was_chosen(viewer, chromium):
    chromium.open(viewer.url)
    try:
        chromium.run("localStorage.setItem('karat-theme', 'dark')")
        chromium.open(f"{viewer.url}/run/none")
        assert chromium.run("document.querySelector('h1').textContent") == "There is nothing at this address"
        assert chromium.run("document.documentElement.dataset.theme") == "dark"
    finally:
        chromium.run("localStorage.clear()")


def test_other_programs_get_the_same_words(viewer):
    answer = viewer.ask("/", cookie=None)
    assert answer.status == 403
    assert "use the address that karat view printed" in answer.json["detail"]


@pytest.mark.parametrize(
    "given",
    ["/?token=", "/?token=wrong", "/?token={token}x", "/?token={short}", "/?Token={token}", "/?x=token={token}"],
)
def test_a_wrong_token(viewer, given):
    answer = stranger(viewer, given.format(token=viewer.token, short=viewer.token[:-1]))
    assert answer.status == 403
    assert answer.headers["Set-Cookie"] is None


def test_a_wrong_cookie(viewer):
    name, _, value = viewer.cookie.partition("=")
    for cookie in (
        "",
        name,
        f"{name}=",
        f"{name}=x",
        f"{name}1={value}",
        f"x={value}",
        f"{name}={value}x",
        "é=;;=",
        ";",
    ):
        assert viewer.ask("/", cookie=cookie).status == 403, cookie
    for cookie in (viewer.cookie, f"other=1; {viewer.cookie}", f"{viewer.cookie};b=2"):
        assert viewer.ask("/", cookie=cookie).status == 200, cookie


def test_the_token_becomes_a_cookie_and_leaves_the_address(viewer):
    assert len(viewer.token) >= 32
    answer = viewer.ask(viewer.entry, cookie=None)
    assert (answer.status, answer.headers["Location"], answer.body) == (303, "/", b"")
    value, *about = answer.headers["Set-Cookie"].split("; ")
    assert value.startswith(f"karat-{viewer.port}=")
    assert set(about) == {"HttpOnly", "SameSite=Strict", "Path=/"}
    there = viewer.ask(f"/compare?runs=a,b&token={viewer.token}&by=topic", cookie=None).headers["Location"]
    assert there == "/compare?runs=a%2Cb&by=topic"


@pytest.mark.parametrize(
    "path", ["//evil.example/", "/%5Cevil.example", "/%2Fevil.example", "/%09/evil.example", "/%0d%0aX-Evil:%201", "/é"]
)
def test_a_redirect_stays_on_this_server(viewer, path):
    answer = viewer.ask(f"{path.replace('é', '%C3%A9')}?token={viewer.token}", cookie=None)
    there = answer.headers["Location"]
    assert there.startswith("/")
    assert not there.startswith(("//", "/\\", "/\t"))
    assert "\\" not in there
    assert answer.headers["X-Evil"] is None


def test_two_viewers_do_not_share_a_reader(viewer, folder):
    with viewed(folder.root / "karat-demo") as other:
        assert other.token != viewer.token
        assert other.ask("/", cookie=viewer.cookie).status == 403
        assert viewer.ask("/", cookie=other.cookie).status == 403
        assert viewer.ask("/", cookie=f"{other.cookie}; {viewer.cookie}").status == 200


def test_a_foreign_host_is_refused_also_with_the_cookie(viewer):
    """A page whose name resolves to this machine reads nothing."""
    for host in (
        "evil.example",
        f"evil.example:{viewer.port}",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "x",
    ):
        for path in ("/", "/state", viewer.entry, "/assets/karat.css"):
            answer = viewer.ask(path, Host=host)
            assert (answer.status, answer.headers["Set-Cookie"]) == (403, None), (host, path)
    for host in (f"127.0.0.1:{viewer.port}", f"localhost:{viewer.port}"):
        assert viewer.ask("/", Host=host).status == 200


def test_a_foreign_origin_is_refused_also_with_the_cookie(viewer):
    for origin in (
        "http://evil.example",
        "null",
        f"http://127.0.0.1:{viewer.port + 1}",
        "http://localhost:1",
        "file://",
    ):
        for method in ("GET", "POST", "OPTIONS"):
            answer = viewer.ask("/state", method=method, Origin=origin, Access_Control_Request_Method="GET")
            assert answer.status == 403, (origin, method)
            assert not any(name.lower().startswith("access-control-") for name in answer.headers)
    assert viewer.ask("/state", Origin=viewer.url).status == 200


def test_everything_is_read_only(viewer, screens):
    for path in (*screens.values(), "/state", "/assets/karat.js"):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            answer = viewer.ask(path, b"x", method=method)
            assert (answer.status, method) == (405, method), path


def test_a_head_without_a_body(viewer, screens):
    for path in screens.values():
        answer = viewer.ask(path, method="HEAD")
        assert (answer.status, answer.body) == (200, b"")


def test_a_file_that_is_replaced_by_one_like_it_is_opened_again(tmp_path, folder):
    source = folder.root / "help-centre" / "bm25.parquet"
    shutil.copy2(source, tmp_path / "a.parquet")
    with viewed(tmp_path) as viewer:
        path = f"/run/{viewer.run('a')}"
        assert viewer.ask(path).status == 200
        shutil.copy2(tmp_path / "a.parquet", tmp_path / "b")
        (tmp_path / "b").replace(tmp_path / "a.parquet")
        assert viewer.ask(path).status == 200
        assert viewer.ask(f"{path}/part/slices").status == 200


def test_every_answer_has_the_headers(viewer, screens):
    answers = [viewer.ask(path) for path in (*screens.values(), "/state", "/assets/karat.css", "/assets/karat.js")]
    answers += [viewer.ask(path) for path in OTHERS] + [viewer.ask("/", method="POST"), viewer.ask(viewer.entry)]
    answers += [stranger(viewer, "/"), stranger(viewer, "/", Host="evil.example"), viewer.ask("/", Origin="null")]
    for answer in answers:
        assert {name: answer.headers.get_all(name) for name in HEADERS} == {n: [v] for n, v in HEADERS.items()}
        assert not any(name.lower().startswith("access-control-") for name in answer.headers)


def test_no_inline_script_and_no_path_of_the_machine(viewer, screens, folder):
    broken = [f"/run/{viewer.run(f'broken/{name}')}" for name in ("damaged", "foreign")]
    for path in (*screens.values(), *broken, "/run/0", "/nothing"):
        answer = viewer.ask(path, Accept="text/html")
        page = answer.body.decode()
        assert str(folder.root) not in page
        assert str(folder.root.parent) not in page
        assert str(Path.home()) not in page
        assert viewer.token not in page
        assert "<script>" not in page
        assert " style=" not in page


@pytest.mark.parametrize("name", ["damaged", "foreign"])
def test_a_file_that_is_no_run_harms_nothing(viewer, name):
    answer = viewer.ask(f"/run/{viewer.run(f'broken/{name}')}", Accept="text/html")
    assert answer.status == 422
    assert f"broken/{name}.parquet" in answer.body.decode()
    assert viewer.ask("/").status == 200
    assert [line for line in viewer.log if "fault" in line] == []


@pytest.mark.parametrize(
    "path",
    [
        "/run/..%2f..%2fetc%2fpasswd", "/run/%2e%2e", "/run/../state", "/run//etc/passwd", "/run/help-centre%2Fbm25",
        "/run/help-centre%2Fbm25.parquet", "/run/%00", "/run/{run}%00", "/run/{run}.parquet", "/run/{upper}", "/run/é",
        "/run/{run}/opened/-1", "/run/{run}/opened/99999999999999999999999", "/run/{run}/opened/x",
        "/run/{run}/part/nothing", "/run/{run}/part/..%2f", "/assets/..%2fshell.py", "/assets/../shell.py",
        "/assets/shell.py", "/assets/%2e%2e%2f%2e%2e%2fweb%2fview%2fshell.py", "/compare?runs=../x,%00",
        "/query?runs={run}&query=nothing", "/query?runs=../x&query=q06", "/query?runs={run},%00&query=q06",
    ],
)  # fmt: skip
def test_an_address_of_nothing_is_refused_and_not_a_fault(viewer, path):
    run = viewer.run("help-centre/bm25")
    answer = viewer.ask(path.format(run=run, upper=run.upper()).replace("é", "%C3%A9"), Accept="text/html")
    assert answer.status in {400, 404}, answer.body
    assert b"passwd" not in answer.body
    assert not any("fault" in line for line in viewer.log)


def test_ids_of_runs_tell_no_path(viewer, folder):
    for name in folder.paths:
        number = viewer.run(name.removesuffix(".parquet"))
        assert number.isalnum()
        assert len(number) == 24
        assert Path(name).stem not in number
        assert name.encode().hex()[:24] != number


def test_it_listens_on_this_machine_alone(viewer):
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    places = {line[1] for line in listening if line[3] == "0A" and line[1].endswith(f":{viewer.port:04X}")}
    assert places == {f"0100007F:{viewer.port:04X}"}
    assert f":{viewer.port:04X} " not in Path("/proc/net/tcp6").read_text()


def test_no_option_opens_it_to_other_machines(capsys):
    assert main(["view", "--host", "0.0.0.0", "--no-open"]) == 2
    assert "--host" in capsys.readouterr().err


def test_the_folder_is_only_read(viewer, screens, folder):
    """The time of a folder changes also with a file that is deleted again."""

    def times():
        return {str(path): path.stat().st_mtime_ns for path in (folder.root, *folder.root.rglob("*"))}

    before = times()
    for path in screens.values():
        viewer.ask(path)
    assert times() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(folder, tmp_path):
    (tmp_path / "run.parquet").write_bytes(folder.paths["spans.parquet"].read_bytes())
    tmp_path.chmod(0o555)
    with viewed(tmp_path) as viewer:
        assert "spans" in viewer.page(f"/run/{viewer.run('run')}")
    tmp_path.chmod(0o755)


def test_the_log_has_no_token(viewer):
    """It has no lines for requests at all; the first one says which folder is shown."""
    viewer.ask(f"/nothing?token={viewer.token}", cookie=None)
    assert not any(viewer.token in line for line in viewer.log)
    assert "the runs below" in viewer.log[0]
