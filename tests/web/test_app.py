"""What the dashboard tells of runs, and how it plays."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from runs_for_tests import make_run
from web_for_tests import WON, Served, add_game, go_live, make_history, serving

from keisei.games import registered_games
from keisei.games.shogi import Board, kif
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.live import Glimpse
from keisei.runs.replays import GameReplay
from keisei.web.catalogue import Catalogue, flat_settings, flattened


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("runs")
    run = make_history(root)
    add_game(run, WON)
    with run.lock():
        go_live(run)
        make_run(root, "fresh", updates=())
        with serving(root) as dashboard:
            yield dashboard


# All runs.


def test_all_runs_are_listed_with_the_settings_in_which_they_differ(tmp_path: Path) -> None:
    make_history(tmp_path, "a")
    make_run(tmp_path, "b", game="connect-four")
    with serving(tmp_path) as dashboard:
        first, second = dashboard.get("/api/runs").json["runs"]
    assert (first["name"], first["game"], first["updates"], first["transitions"]) == (
        "a",
        "tictactoe",
        30,
        3000,
    )
    assert first["scores"] == {"random": 0.9}
    assert first["settings"] == {"env.game": "tictactoe"}
    assert second["settings"] == {"env.game": "connect-four"}


def test_a_run_that_is_trained_tells_its_speed(served: Served) -> None:
    fresh, run = served.get("/api/runs").json["runs"]
    assert (run["state"], run["speed"], run["progress"], run["paused"]) == ("running", 1234.0, 0.25, False)
    assert (fresh["state"], fresh["transitions"]) == ("created", None)


def test_a_folder_without_runs_is_an_empty_list(tmp_path: Path) -> None:
    with serving(tmp_path / "not-yet") as dashboard:
        assert dashboard.get("/api/runs").json == {"runs": []}


def test_settings_are_the_same_whether_read_in_sections_or_at_once(tmp_path: Path) -> None:
    run = make_history(tmp_path)
    text = (run.path / "config.yaml").read_text()
    whole = dict(flattened(run.config()))
    assert flat_settings(run) == whole
    assert len(whole) > 50
    (run.path / "config.yaml").write_text(f"{text}shared: &a {{x: 1}}\nagain: *a\n")
    assert flat_settings(run) == {}  # parts with names are refused
    (run.path / "config.yaml").write_text(text + "".join(f"more{n}: {n}\n" for n in range(100)))
    assert flat_settings(run) == whole | {f"more{n}": str(n) for n in range(100)}
    (run.path / "config.yaml").write_text("[")
    assert flat_settings(run) == {}


def test_what_has_not_changed_is_not_read_again(tmp_path: Path) -> None:
    run = make_history(tmp_path)
    catalogue = Catalogue(tmp_path)
    first = catalogue.runs()["run"]
    assert catalogue.runs()["run"] is first
    with RunDatabase(run.database) as database:
        database.add_metrics(31, 3100, {"train/loss": 0.5})
    assert catalogue.runs()["run"].summary.updates == 31


def test_a_damaged_run_does_not_hide_the_others(tmp_path: Path) -> None:
    make_history(tmp_path, "good")
    broken = make_history(tmp_path, "broken")
    broken.database.write_bytes(b"not a database")
    (broken.path / "config.yaml").write_text("{")
    with serving(tmp_path) as dashboard:
        runs = {run["name"]: run for run in dashboard.get("/api/runs").json["runs"]}
        assert runs["good"]["updates"] == 30
        assert runs["broken"]["state"] == "unreadable"
        assert "file is not a database" in dashboard.get("/api/runs/broken").json["problem"]


# One run.


def test_a_run_tells_all_that_its_page_shows(served: Served) -> None:
    run = served.get("/api/runs/run").json
    assert run["summary"]["state"] == "running"
    assert run["evaluations"]["random"] == {
        "step": [1000, 2000], "value": [0.7, 0.9], "low": [0.4, 0.4], "high": [1.0, 1.0], "last": [8, 1, 1]
    }  # fmt: skip
    assert run["ratings"][0]["player"] == "random"
    assert run["events"][0]["detail"] == "it fell"
    assert run["games"][0]["record"] == "games/game.replay.json"
    assert run["checkpoints"] == ["update-000000020", "update-000000010"]
    assert run["live"]["workers"][0]["tables"] == [0, 1]
    assert run["meanings"]["train/loss"] == "the sum that is minimised"
    assert "board" not in run["live"]


def test_settings_are_compared_with_the_nearest_preset(served: Served) -> None:
    run = served.get("/api/runs/run").json
    assert run["preset"] == "tictactoe-ppo"
    settings = {setting["name"]: setting for setting in run["settings"]}
    assert settings["model.hidden_dim"]["value"] == "8"
    assert settings["model.hidden_dim"]["usual"] != "8"
    assert settings["env.game"]["usual"] == settings["env.game"]["value"] == "tictactoe"


def test_curves_are_thinned_by_the_server(served: Served) -> None:
    curves = served.get("/api/runs/run/curves?metric=train/loss&metric=no/such&points=10").json
    assert curves["no/such"]["step"] == []
    loss = curves["train/loss"]
    assert 2 < len(loss["step"]) <= 11
    assert loss["step"][-1] == 3000
    assert loss["value"][-1] == pytest.approx(1 / 30)
    assert loss["high"][0] == 1.0


@pytest.mark.parametrize("points", ["0", "-5", "x", "999999999999", ""])
def test_an_odd_number_of_points_is_not_taken_at_its_word(served: Served, points: str) -> None:
    curves = served.get(f"/api/runs/run/curves?metric=train/loss&points={points}").json
    assert 2 <= len(curves["train/loss"]["step"]) <= 30


def test_a_run_without_numbers_has_a_page_too(served: Served) -> None:
    told = served.get("/api/runs/fresh").json
    assert (told["metrics"], told["games"], told["live"]) == ([], [], None)
    assert served.get("/api/runs/fresh/curves?metric=train/loss").json == {}
    assert served.get("/api/runs/fresh/board").status == 404


# Boards.


def test_the_live_board_shows_the_last_plies(served: Served) -> None:
    board = served.get("/api/runs/run/board").json
    (frame,) = board["frames"]
    assert frame["svg"].startswith("<svg")
    assert (frame["move"], frame["value"], board["table"]) == ("b2", 0.25, 0)


def test_only_the_last_game_of_a_glimpse_is_shown(tmp_path: Path) -> None:
    run = make_history(tmp_path)
    row = "00" * 18 + "ff80"
    go_live(
        run, board=Glimpse(3, (row,) * 4, (0, 1, 0, 1), (7, 8, 0, 1), (4, 0, 4, 0), (0.0, 0.0, 0.5, -0.5))
    )
    with serving(tmp_path) as dashboard:
        assert [frame["ply"] for frame in dashboard.get("/api/runs/run/board").json["frames"]] == [0, 1]


def test_a_game_is_replayed_with_what_the_policy_thinks(served: Served) -> None:
    path = "/api/runs/run/replay?record=games/game.replay.json"
    start, end = served.get(f"{path}&ply=0").json, served.get(f"{path}&ply=5").json
    assert (start["ply"], start["plies"], start["moves"]) == (0, 5, ["a3", "a2", "b3", "b2", "c3"])
    assert start["names"] == ["update-000000010", "random"]
    assert -1.5 < start["value"] < 1.5
    shares = [favourite["probability"] for favourite in start["favourites"]]
    assert shares == sorted(shares, reverse=True)
    assert 0 < sum(shares) <= 1.0001
    assert end["over"]
    assert end["result"] == {"scores": [1.0, -1.0], "winner": 0, "ending": "three in a row"}
    assert served.get(f"{path}&ply=999").json["ply"] == 5
    plain = served.get(f"{path}&ply=0&judge=0").json
    assert (plain["value"], plain["favourites"], plain["svg"]) == (None, [], start["svg"])


def test_a_game_with_dice_is_replayed_as_it_was(tmp_path: Path) -> None:
    from keisei.evaluation import play_match
    from keisei.evaluation.records import recorded_game

    match = play_match("ludo", {}, "random", "heuristic", 2, seed=5, record=True)
    game = recorded_game(match, 1)
    run = make_history(tmp_path, game="ludo")
    add_game(run, GameReplay("ludo", game.actions, {}, 5, 1, game.names, game.scores, game.ending))
    with serving(tmp_path) as dashboard:
        end = dashboard.get("/api/runs/run/replay?record=games/game.replay.json&ply=9999").json
    assert end["plies"] == len(game.actions)
    assert end["result"]["scores"] == list(game.scores)


def test_a_record_can_be_saved(served: Served) -> None:
    answer = served.get("/api/runs/run/record?record=games/game.replay.json")
    assert answer.headers["content-disposition"] == 'attachment; filename="game.replay.json"'
    assert answer.json["actions"] == [0, 3, 1, 4, 2]


# Streams.


def events(dashboard: Served, path: str, count: int, act: list[Callable[[], None]]) -> list[dict[str, Any]]:
    """Reads some events; before each, one of the actions is done."""
    found: list[dict[str, Any]] = []
    with socket.create_connection(("127.0.0.1", dashboard.port), timeout=30) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        file = line.makefile("rb")
        while len(found) < count:
            content = file.readline()
            if act and content.startswith((b": hello", b"data: ")):
                act.pop(0)()
            if content.startswith(b"data: "):
                found.append(json.loads(content[6:]))
    return found


def test_a_stream_tells_what_is_new(tmp_path: Path) -> None:
    run = make_history(tmp_path)

    def update() -> None:
        with RunDatabase(run.database) as database:
            database.add_metrics(31, 3100, {"train/loss": 0.5})
        go_live(run, update=31)

    with serving(tmp_path) as dashboard:
        _, second = events(dashboard, "/api/stream?run=run", 2, [lambda: None, update])
    assert second["points"] == {"train/loss": [[3100, 0.5]]}
    assert second["live"]["update"] == 31


def test_the_list_has_a_stream_too(tmp_path: Path) -> None:
    make_history(tmp_path, "one")

    def another() -> None:
        time.sleep(1.5)  # the first look only remembers
        make_history(tmp_path, "two")

    with serving(tmp_path) as dashboard:
        (event,) = events(dashboard, "/api/stream", 1, [another])
    assert [run["name"] for run in event["runs"]] == ["two"]


def test_a_stream_of_an_unknown_run_is_refused(served: Served) -> None:
    assert served.get("/api/stream?run=nobody").status == 404


# Metrics.


def test_prometheus_reads_the_metrics(served: Served) -> None:
    answer = served.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    samples = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in families.values()
        for sample in family.samples
    }
    assert samples["keisei_updates_total", "run"] == 30
    assert samples["keisei_transitions_total", "run"] == 3000
    assert samples["keisei_running", "run"] == 1
    assert samples["keisei_running", "fresh"] == 0
    assert samples["keisei_score", "random", "run"] == 0.9
    assert samples["keisei_loss", "run"] == pytest.approx(1 / 30)
    assert samples["keisei_worker_restarts_total", "0", "run"] == 1
    assert samples["keisei_worker_memory_bytes", "0", "run"] == 64 << 20
    assert families["keisei_updates"].type == "counter"
    assert all(family.documentation for family in families.values())


def test_the_example_for_grafana_asks_for_metrics_that_exist(served: Served) -> None:
    import re

    told = {
        sample.name
        for family in text_string_to_metric_families(served.get("/metrics").text)
        for sample in family.samples
    }
    known = told | {f"keisei_{name}" for name in ("policy_lag", "queue_depth", "worker_utilisation")}
    text = (Path(__file__).parents[2] / "examples" / "grafana.json").read_text()
    panels = json.loads(text)["panels"]
    asked = {
        name
        for panel in panels
        for target in panel["targets"]
        for name in re.findall(r"keisei_\w+", target["expr"])
    }
    assert len(panels) >= 8
    assert asked
    assert asked <= known | {
        "keisei_approx_kl",
        "keisei_explained_variance",
        "keisei_game_length",
        "keisei_entropy_loss",
    }


# Playing.


def played(served: Served, **wanted: object) -> dict[str, object]:
    answer = served.post("/api/play", wanted)
    assert answer.status == 200, answer.text
    return dict(answer.json)


def test_the_games_and_their_players_are_offered(served: Served) -> None:
    games = {game["name"]: game for game in served.get("/api/games").json["games"]}
    # Tests before this one may have registered games in this process; those of a page are made in another.
    assert {"shogi", "ludo", "tictactoe", "treasurehunt"} <= set(games) <= {*registered_games()} - {"dummy"}
    assert games["treasurehunt"]["at_once"]
    assert games["treasurehunt"]["seats"][0] == "Agent 1"
    assert games["shogi"]["options"] == ["start"]
    assert "heuristic" in games["ludo"]["players"]
    assert "search:2" in games["connect-four"]["players"]
    assert "search:2" not in games["ludo"]["players"]


@pytest.mark.parametrize("game", ["shogi", "ludo", "connect-four", "tictactoe"])
def test_whole_games_are_played(served: Served, game: str) -> None:
    actions: list[int] = []
    for _ in range(12):
        frame = played(served, game=game, seats=["person", "random"], actions=actions, seed=4)
        if frame["over"]:
            break
        assert frame["seat"] == 0
        choices = frame["choices"]
        actions = [*frame["actions"], choices[len(choices) // 2]["action"]]
    assert len(actions) >= 5


def test_a_checkpoint_plays_and_says_what_it_thinks(served: Served) -> None:
    frame = played(served, run="run", seats=["person", "run@best"], actions=[4], judge="run@latest")
    assert len(frame["actions"]) == 2
    assert isinstance(frame["value"], float)
    assert len(frame["favourites"]) == 5


def test_a_game_that_is_looked_back_at_does_not_go_on(served: Served) -> None:
    frame = played(served, game="tictactoe", seats=["person", "random"], actions=[4, 0], at=1)
    assert (frame["ply"], frame["plies"], frame["actions"], frame["choices"]) == (1, 2, [4, 0], [])


def test_players_alone_make_one_move_at_a_time(served: Served) -> None:
    frame = played(served, game="tictactoe", seats=["random", "greedy"])
    assert len(frame["actions"]) == 1


def test_one_seat_chooses_and_players_act_for_the_others(served: Served) -> None:
    (offer,) = [one for one in served.get("/api/games").json["games"] if one["name"] == "treasurehunt"]
    count = len(offer["seats"])
    seats = ["random"] * count
    seats[1] = "person"
    wanted: dict[str, Any] = {"game": "treasurehunt", "seats": seats, "view": 1, "seed": 5}
    frame = played(served, **wanted)
    assert (frame["actions"], frame["seat"], len(frame["choices"])) == ([], 1, 4)
    frame = played(served, **wanted, chosen=2)
    assert len(frame["actions"]) == count
    assert (frame["actions"][1], frame["plies"], frame["before"]) == (2, 1, 0)
    again = played(served, **wanted, actions=frame["actions"], chosen=0)
    assert again["actions"][:count] == frame["actions"]
    assert (again["plies"], again["before"]) == (2, count)
    back = played(served, **wanted, actions=again["actions"], at=1)
    assert back["svg"] == frame["svg"]
    assert (back["ply"], back["choices"]) == (1, [])


@pytest.mark.parametrize(
    ("wanted", "rule"),
    [
        ({"game": "hawk-dove", "seats": ["person", "person"]}, "one seat may be a person's"),
        ({"game": "hawk-dove", "seats": ["random", "random"], "chosen": 0}, "no person acts now"),
        ({"game": "hawk-dove", "seats": ["person", "random"], "actions": [0]}, "2 seats act at once"),
        ({"game": "hawk-dove", "seats": ["person", "random"], "chosen": 2}, "a whole number in 0 … 1"),
        ({"game": "tictactoe", "actions": [0, 3, 1, 4, 2], "chosen": 5}, "the game is over"),
        ({"game": "tictactoe", "actions": [0], "chosen": 0}, "is not legal"),
    ],
)
def test_what_cannot_be_played_is_refused_by_its_rule(served: Served, wanted: Any, rule: str) -> None:
    answer = served.post("/api/play", wanted)
    assert answer.status == 400
    assert rule in answer.json["error"]


@pytest.mark.parametrize(
    ("game", "options", "scale"),
    [("shogi", {}, "chance"), ("ludo", {"players": 4}, "score"), ("treasurehunt", {}, "return")],
)
def test_values_say_their_scale(served: Served, game: str, options: Any, scale: str) -> None:
    seats = ["random"] * options.get("players", 2)
    assert played(served, game=game, options=options, seats=seats, at=0)["scale"] == scale


def test_shogi_starts_from_any_position(served: Served) -> None:
    sfen = "4k4/9/4P4/9/9/9/9/9/4K4 b P 1"
    frame = played(served, game="shogi", options={"start": sfen})
    assert frame["text"] == sfen
    names = [choice["name"] for choice in frame["choices"]]
    assert {"5c5b", "5c5b+", "P*4d"} <= {*names}


@pytest.mark.parametrize("options", [{"start": "nonsense"}, {"win": 5}, {"start": 3}, {"players": 2}])
def test_odd_options_are_refused_with_a_reason(served: Served, options: dict[str, object]) -> None:
    answer = served.post("/api/play", {"game": "shogi", "options": options})
    assert answer.status == 400
    assert answer.json["error"]


def test_a_game_is_saved_as_kif(served: Served, tmp_path: Path) -> None:
    board = Board()
    actions = []
    for text in ("7g7f", "3c3d", "8h2b+"):
        move = next(move for move in board.legal_moves if move.usi() == text)
        actions.append(board.action(move))
        board.push(move)
    answer = served.post(
        "/api/play/record", {"game": "shogi", "seats": ["person", "greedy"], "actions": actions}
    )
    assert answer.headers["content-disposition"] == 'attachment; filename="game.kif"'
    path = tmp_path / "game.kif"
    path.write_bytes(answer.content)
    record = kif.load(path)
    assert [move.usi() for move in record.moves] == ["7g7f", "3c3d", "8h2b+"]
    assert served.post("/api/play/record", {"game": "tictactoe"}).status == 400


def test_unknown_pages_are_told_in_words(served: Served) -> None:
    answer = served.get("/nothing/here")
    assert (answer.status, answer.json) == (404, {"error": "Not Found"})


def test_reading_disturbs_no_trainer(served: Served) -> None:
    """The dashboard holds no lock and writes nothing into a run."""
    run = RunDirectory(served.root / "fresh")
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*") if path.is_file()}
    served.get("/api/runs/fresh")
    served.get("/api/runs")
    assert {path: path.stat().st_mtime_ns for path in run.path.rglob("*") if path.is_file()} == before


def test_a_missing_page_is_a_page_in_a_browser_and_json_to_programs(served: Served) -> None:
    browser = served.get("/nowhere", accept="text/html,application/xhtml+xml,*/*;q=0.8")
    assert (browser.status, browser.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is no such page" in browser.text
    program = served.get("/nowhere", accept="*/*")
    assert (program.status, program.json) == (404, {"error": "Not Found"})


def test_a_folder_gives_the_means_of_its_runs(tmp_path: Path) -> None:
    for seed, loss in enumerate((1.0, 3.0)):
        run = make_run(tmp_path, f"lr/seed{seed}")
        with RunDatabase(run.database) as database:
            for update in (1, 2):
                database.add_metrics(update, 100 * update, {"train/loss": loss * update})
    with serving(tmp_path) as served:
        found = served.get("/api/means?folder=lr&metric=train/loss").json
        assert [run["name"] for run in found["runs"]] == ["lr/seed0", "lr/seed1"]
        curve = found["curves"]["train/loss"]
        assert (curve["step"], curve["value"]) == ([100, 200], [2.0, 4.0])
        assert curve["low"][0] == pytest.approx(2 - 12.706, abs=0.01)  # Student's, with one degree of freedom
        for wrong in ("", "..", "lr/seed0", "other"):
            assert served.get(f"/api/means?folder={wrong}").status == 404
