"""The tables of ``run.db``, and how a database of an earlier version gets them."""

from __future__ import annotations

__all__ = ["APPLICATION_ID", "RESULTS_BY_NAME", "SCHEMA", "SCHEMA_VERSION", "TABLES", "UPGRADES"]

SCHEMA_VERSION = 5
APPLICATION_ID = 0x4B45_4953  # "KEIS": marks a database of Keisei

SCHEMA = """
CREATE TABLE metrics (
    name TEXT NOT NULL, "update" INTEGER NOT NULL, step INTEGER NOT NULL, time REAL NOT NULL, value REAL,
    PRIMARY KEY (name, "update")
) WITHOUT ROWID;
CREATE INDEX metrics_by_update ON metrics ("update");
CREATE TABLE evaluations (
    "update" INTEGER NOT NULL, step INTEGER NOT NULL, time REAL NOT NULL, player TEXT NOT NULL,
    opponent TEXT NOT NULL, wins INTEGER NOT NULL, draws INTEGER NOT NULL, losses INTEGER NOT NULL,
    score REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL, elo REAL, elo_low REAL, elo_high REAL,
    PRIMARY KEY ("update", player, opponent)
) WITHOUT ROWID;
CREATE TABLE games (
    id INTEGER PRIMARY KEY, "update" INTEGER NOT NULL, time REAL NOT NULL, first TEXT NOT NULL,
    second TEXT NOT NULL, score REAL NOT NULL, plies INTEGER NOT NULL, ending TEXT NOT NULL,
    record TEXT NOT NULL UNIQUE
);
CREATE INDEX games_by_update ON games ("update");
CREATE TABLE ratings (
    player TEXT NOT NULL, "update" INTEGER NOT NULL, time REAL NOT NULL, rating REAL NOT NULL, low REAL NOT NULL,
    high REAL NOT NULL, games INTEGER NOT NULL, PRIMARY KEY (player, "update")
) WITHOUT ROWID;
CREATE TABLE worker_events (
    id INTEGER PRIMARY KEY, "update" INTEGER NOT NULL, time REAL NOT NULL, worker INTEGER NOT NULL,
    event TEXT NOT NULL, detail TEXT NOT NULL
);
CREATE INDEX worker_events_by_update ON worker_events ("update");
"""
_NUMBERED = (
    "SELECT old.*, MIN(known.number) AS number, 1 AS per_game FROM {} AS old JOIN league_members AS known "
    'ON known.name = old.member AND known."update" >= old."update" GROUP BY old.learner, old.member'
)
"""The cells of a matrix that names members, with their numbers. A cell belongs to the first member of its name that was
still in the league then."""
RESULTS_BY_NAME = _NUMBERED.format("league_results")
"""Reads the matrix of the fourth schema as that of the fifth."""
UPGRADES = {
    2: """
ALTER TABLE evaluations ADD COLUMN seats INTEGER NOT NULL DEFAULT 2;
ALTER TABLE evaluations ADD COLUMN mean_return REAL;
ALTER TABLE evaluations ADD COLUMN return_low REAL;
ALTER TABLE evaluations ADD COLUMN return_high REAL;
ALTER TABLE evaluations ADD COLUMN opponent_return REAL;
""",
    3: """
CREATE TABLE changes (
    "update" INTEGER NOT NULL, time REAL NOT NULL, setting TEXT NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL,
    PRIMARY KEY ("update", setting)
) WITHOUT ROWID;
""",
    4: """
CREATE TABLE league_members (
    number INTEGER PRIMARY KEY, "update" INTEGER NOT NULL, time REAL NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL,
    joined INTEGER NOT NULL, in_pool INTEGER NOT NULL, wins INTEGER NOT NULL, draws INTEGER NOT NULL,
    losses INTEGER NOT NULL, recent_games INTEGER NOT NULL, score REAL, low REAL, high REAL, rating REAL,
    rating_low REAL, rating_high REAL, forgotten INTEGER NOT NULL
);
CREATE TABLE league_results (
    learner TEXT NOT NULL, member TEXT NOT NULL, "update" INTEGER NOT NULL, time REAL NOT NULL, wins INTEGER NOT NULL,
    draws INTEGER NOT NULL, losses INTEGER NOT NULL, score REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL,
    PRIMARY KEY (learner, member)
) WITHOUT ROWID;
""",
    # Two members may have one name, so cells are kept by number.
    5: f"""
ALTER TABLE league_members ADD COLUMN per_game INTEGER NOT NULL DEFAULT 1;
ALTER TABLE league_results RENAME TO results_by_name;
CREATE TABLE league_results (
    learner TEXT NOT NULL, member TEXT NOT NULL, "update" INTEGER NOT NULL, time REAL NOT NULL, wins INTEGER NOT NULL,
    draws INTEGER NOT NULL, losses INTEGER NOT NULL, score REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL,
    number INTEGER NOT NULL, per_game INTEGER NOT NULL, PRIMARY KEY (learner, number)
) WITHOUT ROWID;
INSERT INTO league_results {_NUMBERED.format("results_by_name")};
DROP TABLE results_by_name;
""",
}
"""What each version of the schema adds to the one before. A database of an older version is upgraded when it is opened
to write."""
TABLES = (
    "metrics",
    "evaluations",
    "games",
    "ratings",
    "changes",
    "worker_events",
    "league_members",
    "league_results",
)
