"""Only those who may, may: names, origins, tokens, paths, sizes and numbers of clients."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from web_for_tests import BEARER, TOKEN, WON, Served, add_game, go_live, make_history, serving

from keisei.errors import ConfigError
from keisei.runs.control import Requests
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.rows import GameRow
from keisei.web import stream
from keisei.web.access import LARGEST_BODY, Access, is_loopback
from keisei.web.server import Server


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("runs")
    run = make_history(root)
    go_live(run)
    add_game(run, WON)
    with serving(root) as dashboard:
        yield dashboard


# Names: a page of another site that has its name lead here (DNS rebinding) gets nothing.


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::2]:1", "localhost.:1"]
)
@pytest.mark.parametrize("path", ["/", "/api/runs", "/metrics", "/static/style.css"])
def test_a_foreign_name_is_refused(served: Served, host: str, path: str) -> None:
    answer = served.get(path, host=host)
    assert answer.status == 421
    assert "this server is not" in answer.json["error"]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:8765", "LOCALHOST:5"])
def test_our_own_names_are_known(served: Served, host: str) -> None:
    assert served.get("/api/runs", host=host).status == 200


def test_a_further_name_is_known_when_it_is_given() -> None:
    access = Access.of("0.0.0.0", TOKEN, ("box.lan",))
    assert access.knows("box.lan:8765")
    assert not access.knows("other.lan:8765")


# Origins.


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://localhost:1", "http://localhost:1"]
)
def test_a_page_of_another_origin_may_not_ask(served: Served, origin: str) -> None:
    assert served.get("/api/runs", origin=origin).status == 403
    assert served.post("/api/play", {"game": "tictactoe"}, origin=origin).status == 403
    assert served.post("/api/runs/run/control", {"action": "stop"}, origin=origin, **BEARER).status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_browser_tells_who_asks(served: Served, site: str) -> None:
    assert served.get("/api/runs", sec_fetch_site=site).status == 403
    assert served.get("/", sec_fetch_site=site).status == 200, "a link may lead here"


def test_our_own_pages_may_ask(served: Served) -> None:
    own = f"127.0.0.1:{served.port}"
    assert (
        served.get("/api/runs", host=own, origin=f"http://{own}", sec_fetch_site="same-origin").status == 200
    )


# The token.


@pytest.mark.parametrize(
    "action", ["pause", "resume", "reset", "add-worker", "remove-worker", "checkpoint", "stop"]
)
def test_what_changes_a_run_needs_the_token(served: Served, action: str) -> None:
    run = served.root / "run"
    for headers in (
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": TOKEN},
        {"cookie": f"token={TOKEN}"},
    ):
        refused = served.post(f"/api/runs/run/control?token={TOKEN}", {"action": action}, **headers)
        assert refused.status == 401, headers
        assert "token" in refused.json["error"]
    assert not (run / "control").exists()


def test_a_wrong_token_is_refused_everywhere(served: Served) -> None:
    assert served.get("/api/runs", authorization="Bearer wrong").status == 401
    assert served.get("/api/session", **BEARER).json["trusted"] is True
    assert served.get("/api/session").json["trusted"] is False


def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    monkeypatch.setattr("hmac.compare_digest", lambda a, b: compared.append((a, b)) or a == b)
    assert Access(token=TOKEN).trusts(f"Bearer {TOKEN}")
    assert not Access(token=TOKEN).trusts("Bearer x")
    assert len(compared) == 2


def test_the_token_is_not_shown_by_accident() -> None:
    assert TOKEN not in repr(Access(token=TOKEN))


def test_with_the_token_the_trainer_is_asked(tmp_path: Path) -> None:
    run = make_history(tmp_path)
    with serving(tmp_path) as dashboard, run.lock():
        requests = Requests(run.control)
        answer = dashboard.post("/api/runs/run/control", {"action": "remove-worker", "worker": 1}, **BEARER)
        assert answer.status == 202
        (asked,) = requests.take()
    assert (asked.id, asked.action, asked.worker) == (answer.json["id"], "remove-worker", 1)


def test_nobody_is_asked_where_nobody_trains(served: Served) -> None:
    answer = served.post("/api/runs/run/control", {"action": "pause"}, **BEARER)
    assert answer.status == 409
    assert "nobody trains run now" in answer.json["error"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"action": "rm -rf"},
        {"action": "pause", "worker": "1"},
        {"action": "pause", "worker": True},
        [],
        3,
    ],
)
def test_odd_requests_are_refused(served: Served, body: object) -> None:
    assert served.post("/api/runs/run/control", body, **BEARER).status == 400


def test_a_form_of_another_page_is_no_request(served: Served) -> None:
    answer = served.ask("POST", "/api/play", {"content-type": "text/plain"}, b"{}")
    assert answer.status == 415


# Another address than loopback.


def test_another_address_needs_a_token() -> None:
    with pytest.raises(ConfigError, match=r"needs a token.*--token-file.*KEISEI_TOKEN"):
        Server(Path("runs"), "0.0.0.0").access()
    with pytest.raises(ConfigError, match="at least 16 letters"):
        Server(Path("runs"), "0.0.0.0", token="short").access()
    assert not Server(Path("runs"), "0.0.0.0", token=TOKEN).access().reading_is_free
    assert Server(Path("runs")).access().reading_is_free


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LocalHost",
        "127.0.0.1",
        "127.0.0.2",
        "127.255.255.254",
        "::1",
        "0:0::1",
        "::ffff:127.0.0.1",
    ],
)
def test_addresses_of_this_machine_alone(host: str) -> None:
    assert is_loopback(host)
    assert Server(Path("runs"), host).access().reading_is_free


@pytest.mark.parametrize(
    "host",
    [
        "127.evil.example",
        "127.0.0.1.evil.example",
        "127.1",
        "127.0.0.256",
        "localhost.evil.example",
        "localhost.",
        "::2",
        "::ffff:10.0.0.1",
        "0.0.0.0",
        "::",
        "",
        "128.0.0.1",
        "10.127.0.0",
    ],
)
def test_a_name_that_only_looks_like_this_machine_needs_a_token(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(ConfigError, match="needs a token"):
        Server(Path("runs"), host).access()
    assert not Server(Path("runs"), host, token=TOKEN).access().reading_is_free


@pytest.mark.parametrize(
    "token",
    [
        "",
        "short",
        "fifteen-letters",
        "two\nlines-of-a-token",
        "ein-schlüssel-für-mich",
        "a token with spaces",
    ],
)
def test_a_token_that_is_none_is_refused(token: str) -> None:
    with pytest.raises(ConfigError, match="a token"):
        Server(Path("runs"), token=token).access()


@pytest.mark.parametrize(("host", "private"), [("0.0.0.0", False), ("127.0.0.1", True)])
def test_there_reading_needs_the_token_too(tmp_path: Path, host: str, private: bool) -> None:
    make_history(tmp_path)
    with serving(tmp_path, host, private=private) as dashboard:
        for path in ("/api/runs", "/api/runs/run", "/api/stream", "/metrics", "/api/session", "/api/games"):
            assert dashboard.get(path).status == 401, path
        assert dashboard.post("/api/play", {"game": "tictactoe"}).status == 401
        assert dashboard.get("/api/runs", **BEARER).status == 200
        assert dashboard.get("/metrics", **BEARER).status == 200
        page = dashboard.get("/run/run")
        assert page.status == 200, "the page has no data, and asks for the token"
        assert b"tictactoe" not in page.content


# Files come from the run's folder alone.

OUTSIDE = [
    "..",
    "../run",
    "%2e%2e",
    "%2e%2e%2frun",
    "..%2f..%2fetc",
    ".",
    "%2e",
    "run%00",
    "run/../run",
    "%2fetc",
    "-x",
]


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("rest", ["", "/curves", "/board", "/record?record=games/game.replay.json"])
def test_a_name_leads_nowhere_else(served: Served, name: str, rest: str) -> None:
    assert served.get(f"/api/runs/{name}{rest}").status == 404


@pytest.mark.parametrize(
    "name", ["../app.py", "%2e%2e/app.py", "..%2fapp.py", "%2e%2e%2fapp.py", "nothing.js", "README.txt"]
)
def test_scripts_and_styles_come_from_a_list(served: Served, name: str) -> None:
    assert served.get(f"/static/{name}").status == 404


@pytest.mark.parametrize(
    "record",
    [
        "../../secret.txt",
        "%2e%2e/%2e%2e/secret.txt",
        "/etc/passwd",
        "config.yaml",
        "games/../config.yaml",
        "",
    ],
)
def test_a_record_that_the_run_does_not_name_is_none(served: Served, record: str) -> None:
    (served.root.parent / "secret.txt").write_text("secret")
    for path in ("record", "replay"):
        answer = served.get(f"/api/runs/run/{path}?record={record}")
        assert answer.status == 404
        assert b"secret" not in answer.content.replace(b"secret.txt", b"")


@pytest.mark.parametrize(
    "record", ["../outside.replay.json", "games/link.replay.json", "config.yaml", "games/folder.replay.json"]
)
def test_a_record_outside_the_folder_of_games_is_none(tmp_path: Path, record: str) -> None:
    """Also if somebody has written its path into ``run.db``, or has put a link there."""
    run = make_history(tmp_path / "runs")
    secret = tmp_path / "runs" / "outside.replay.json"
    secret.write_text("secret")
    (run.games / "link.replay.json").symlink_to(secret)
    (run.games / "folder.replay.json").mkdir()
    with RunDatabase(run.database) as database:
        database.add_games([GameRow(1, 1.0, "a", "b", 1.0, 5, "x", record)])
    with serving(tmp_path / "runs") as dashboard:
        for path in ("record", "replay"):
            answer = dashboard.get(f"/api/runs/run/{path}?record={record}")
            assert answer.status == 404
            assert b'"secret"' not in answer.content


def test_a_run_behind_a_link_is_not_served(tmp_path: Path) -> None:
    elsewhere = make_history(tmp_path / "elsewhere", "private")
    root = tmp_path / "runs"
    make_history(root, "own")
    (root / "linked").symlink_to(elsewhere.path)
    with serving(root) as dashboard:
        assert [run["name"] for run in dashboard.get("/api/runs").json["runs"]] == ["own"]
        assert dashboard.get("/api/runs/linked").status == 404
        assert dashboard.post("/api/runs/linked/control", {"action": "stop"}, **BEARER).status == 404


@pytest.mark.parametrize(
    "player", ["/etc/passwd@latest", "../run@latest", "run@../x", "run@", "os:system", "nobody"]
)
def test_a_player_is_no_path_and_no_module(served: Served, player: str) -> None:
    wanted = {"game": "tictactoe", "seats": ["person", player], "actions": [0]}
    assert served.post("/api/play", wanted).status in (400, 404, 409)


@pytest.mark.parametrize(
    "game", ["os:system", "keisei.games.tictactoe:TicTacToe", "pettingzoo:x", "", "nothing"]
)
def test_a_page_imports_no_module(served: Served, game: str) -> None:
    answer = served.post("/api/play", {"game": game})
    assert answer.status == 400
    assert "no game is named" in answer.json["error"]


# Sizes and numbers.


def test_a_large_request_is_refused(served: Served) -> None:
    answer = served.post("/api/play", b" " * (LARGEST_BODY + 1))
    assert answer.status == 413


def test_a_large_request_without_a_length_is_refused(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as line:
        line.sendall(
            b"POST /api/play HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
        answer = b""
        with suppress(OSError):  # the server may have answered and left already
            for _ in range(2 + LARGEST_BODY // 0x4000):
                line.sendall(chunk)
            line.sendall(b"0\r\n\r\n")
        with suppress(OSError):
            answer = line.recv(4096)
    assert answer.startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("actions", [[0] * 20_000, ["x"], [10**9], [-1], [0, 0]])
def test_odd_games_are_refused(served: Served, actions: list[object]) -> None:
    assert served.post("/api/play", {"game": "tictactoe", "actions": actions}).status == 400


def test_the_number_of_streams_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MOST_STREAMS", 2)
    make_history(tmp_path)
    with serving(tmp_path) as dashboard:
        lines = []
        for _ in range(2):
            line = socket.create_connection(("127.0.0.1", dashboard.port), timeout=30)
            line.sendall(b"GET /api/stream?run=run HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200 OK" in line.recv(4096)
            lines.append(line)
        refused = dashboard.get("/api/stream?run=run")
        assert refused.status == 503
        assert "2 pages watch already" in refused.json["error"]
        for line in lines:
            line.close()
        for _ in range(200):  # a line that is closed makes room
            if _opens(dashboard):
                return
            time.sleep(0.05)
        raise AssertionError("a closed line still counts")


def _opens(dashboard: Served) -> bool:
    with socket.create_connection(("127.0.0.1", dashboard.port), timeout=30) as line:
        line.sendall(b"GET /api/stream?run=run HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return b"200 OK" in line.recv(4096)


# What every answer says to a browser.


@pytest.mark.parametrize("path", ["/", "/api/runs", "/static/run.js", "/nothing", "/metrics"])
def test_scripts_come_from_here_alone(served: Served, path: str) -> None:
    headers = served.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers


def test_nothing_that_is_asked_is_logged(served: Served, capfd: pytest.CaptureFixture[str]) -> None:
    served.get(f"/api/runs?token={TOKEN}")
    served.get("/api/runs", authorization="Bearer wrong")
    assert capfd.readouterr() == ("", "")


def test_many_threads_may_ask_at_once(served: Served) -> None:
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(served.get("/api/runs").status)) for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200] * 16


def test_runs_in_folders_are_served_and_nothing_behind_links_in_their_names(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    config = {"env": {"game": "tictactoe"}}
    RunDirectory.create(root, "lr/seed0", config)
    outside = RunDirectory.create(tmp_path / "elsewhere", "seed0", config)
    (root / "linked").symlink_to(outside.path.parent)
    (root / "lr" / "linked").symlink_to(outside.path)
    with serving(root) as dashboard:
        listed = [run["name"] for run in dashboard.get("/api/runs").json["runs"]]
        assert listed == ["lr/seed0"]
        for path in ("/api/runs/lr/seed0", "/api/runs/lr%2Fseed0", "/run/lr/seed0", "/run/lr%2Fseed0"):
            assert dashboard.get(path).status == 200
        assert dashboard.get("/api/runs/lr%2Fseed0/curves?metric=train/loss").status == 200
        for name in (
            "linked/seed0",
            "lr/linked",
            "lr/../lr/seed0",
            "..%2Felsewhere%2Fseed0",
            "lr",
            "a/b/c/d",
        ):
            assert dashboard.get(f"/api/runs/{name}").status == 404, name
