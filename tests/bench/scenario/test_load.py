"""The loader says what is wrong in a file, where, and what is possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kvref_bench import scenario
from kvref_bench.errors import BenchError
from kvref_bench.load.work import Keys

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
version = 1
title = "t"
question = "q?"
source = "s"
sessions = [1, 2]

[table]
name = "demo"
mapping = "default"
keys = { count = 50, length = 12 }

[work]
verbs = { get = 1 }
depth = 2

[[series]]
name = "get"
over = "memcached"

[[series]]
name = "deep"
over = "memcached"
depth = 8

[[series]]
name = "select"
over = "sql"
statements = { get = "SELECT v FROM demo WHERE k = :key" }

[scale.small]
only = ["get"]
[scale.laptop]
measure = 1
[scale.full]
table.keys.count = 500
[scale.full.series.deep]
depth = 16
verbs = { set = 1 }
"""


def load(folder: Path, content: str, scale: str = "laptop", *overrides: str) -> scenario.Scenario:
    path = folder / "mine.toml"
    path.write_text(content)
    return scenario.load(str(path), scale, overrides)


def test_a_scale_changes_what_it_names(tmp_path: Path) -> None:
    assert [series.name for series in load(tmp_path, GOOD, "small").series] == ["get"]
    full = load(tmp_path, GOOD, "full")
    assert full.table.keys == Keys(500, length=12)
    assert [series.work.depth for series in full.series] == [2, 16, 2]
    assert [series.work.verbs for series in full.series] == [{"get": 1}, {"set": 1}, {"get": 1}]
    assert {series.work.keys.count for series in full.series} == {500}


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("measure=2.5", "measure", 2.5),
        ("sessions=1,8", "sessions", (1, 8)),
        ("sessions=[4]", "sessions", (4,)),
        ("rates=0.5", "rates", (0.5,)),
        ("hits=unknown", "hits", None),
        ("fresh=true", "fresh", True),
        ("settings.sync_binlog=0,1", "settings", {"sync_binlog": (0, 1)}),
        ("table.keys.count=7", "table.keys.count", 7),
        ("table.values.sizes=[1, 9]", "table.values.sizes", (1, 9)),
        ("work.depth=4", "series.1.work.depth", 4),
        ("work.keys.distribution=zipf", "series.1.work.keys.distribution", "zipf"),
        ("series.deep.depth=4", "series.1.work.depth", 4),
        ("series.deep.depth=4", "series.0.work.depth", 2),
        ("series.deep.verbs.set=3", "series.1.work.verbs", {"set": 3}),
        ("series.select.sessions=9", "series.2.sessions", (9,)),
        ("only=deep", "series.0.name", "deep"),
    ],
)
def test_values_set_by_hand(tmp_path: Path, override: str, path: str, value: object) -> None:
    found: Any = load(tmp_path, GOOD, "laptop", override)
    for part in path.split("."):
        found = found[int(part)] if part.isdigit() else getattr(found, part)
    assert found == value


def test_keys_of_a_file_next_to_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "trace.txt").write_text("one\ntwo\none\n")
    loaded = load(tmp_path, GOOD.replace("keys = { count = 50, length = 12 }", 'keys = { file = "trace.txt" }'))
    keys = loaded.series[0].work.keys
    assert (keys.distribution, keys.count, keys.file) == ("file", 3, str(tmp_path / "trace.txt"))
    assert loaded.table.keys == keys


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("measure", "'measure': write KEY=VALUE"),
        ("mesure=2", "mesure: there is no such key, did you mean 'measure': choose one of cooldown, fresh"),
        (
            "table.keys.size=2",
            "table.keys.size: there is no such key: choose one of count, distribution, file, length, shape",
        ),
        ("series.get.nope=2", "nope: there is no such key"),
        ("series.other.depth=2", "no series 'other'; possible: get, deep, select"),
        ("measure=fast", "measure: 'fast' is not of type 'number'"),
        ("sessions=0", "sessions.0: 0 is less than the minimum of 1"),
        ("sessions=two", "sessions.0: 'two' is not of type 'integer'"),
        ("work.depth=0", "work.depth: 0 is less than the minimum of 1"),
        ("work=1", "work: 1 is not of type 'object'"),
        ("only=nobody", "no series 'nobody'; possible: get, deep, select"),
    ],
)
def test_values_set_by_hand_that_are_not_possible(tmp_path: Path, override: str, words: str) -> None:
    with pytest.raises(BenchError) as error:
        load(tmp_path, GOOD, "laptop", override)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("version = 1", "version = ", "mine.toml: no TOML: "),
        ("version = 1", "", "'version' is a required property"),
        ("sessions = [1, 2]", "", "it has no sessions"),
        ("sessions = [1, 2]", "sesions = [1, 2]", "mine.toml: sesions: there is no such key, did you mean 'sessions': choose one of "),
        ("sessions = [1, 2]", "sessions = [1, 1]", "sessions: [1, 1] has non-unique elements"),
        ("sessions = [1, 2]", "sessions = [true]", "sessions.0: True is not of type 'integer'"),
        ("sessions = [1, 2]", "sessions = [1.0]", "sessions.0: 1.0 is not of type 'integer'"),
        ("version = 1", "version = 1\nkind = 'race'", "kind: 'race' is not one of ['load', 'lag']"),
        ("version = 1", "version = 1\nkind = 'lag'", "trials: kind = 'lag' needs at least 1"),
        ("version = 1", "version = 1\nhits = 2", "hits: 2 is "),
        ("version = 1", "version = 1\nsettings = { X = [1] }", "settings: 'X' does not match"),
        ('name = "demo"', 'name = "my demo"', "table.name: 'my demo' does not match"),
        ('name = "demo"', 'name = "demo\\n"', "table.name: 'demo\\n' does not match"),
        ('name = "demo"', "", "table: it has no name"),
        ("count = 50, ", "", "table.keys: it has no count"),
        ("length = 12", "lenght = 12", "table.keys.lenght: there is no such key, did you mean 'length': choose one of count, distribution, file, length, shape"),
        ("length = 12", "file = 'none.txt'", "No such file"),
        ("[work]", "values = { sizes = [9, 1] }\n[work]", "table.values.sizes = [9, 1]: the smallest comes first"),
        ("[work]", "values = { sizes = 'etc' }\n[work]", "table.values.sizes: 'etc' is"),
        ("verbs = { get = 1 }\ndepth", "depth", "series 'get': it has no verbs, and work has none"),
        ("verbs = { get = 1 }", "verbs = { grab = 1 }", "work.verbs: 'grab' is not one of ['get'"),
        ("depth = 2", "driver = 'horse'", "driver = 'horse': possible: wire, "),
        ("depth = 2", "protocol = 'mysql'", "series 'get': over = 'memcached' with protocol = 'mysql'; mysql is over sql"),
        ("depth = 2", "keys = { distribution = 'zipf', parameters = { alpha = 1 } }", "keys.parameters.alpha: there is no such parameter; possible: theta"),
        ("depth = 2", "keys = { distribution = 'own' }", "series 'get': the keys of the distribution own must not be there yet"),
        ("depth = 2", "operations = 5\ndepth = 2", "series 'get': operations = 5 is not a multiple of depth = 2"),
        ("count = 50, length = 12 }", "shape = 'int', count = 2_000_000_000 }\n[work.keys]\nmissing = 0.5", "series 'get': it names 4000000000 keys; an INT column has"),
        (":key", "?", "series.2.statements.get: 'SELECT v FROM demo WHERE k = ?' does not match"),
        ("statements = {", "verbs = { set = 1 }\nstatements = {", "series 'select': protocol mysql: statements has none for set"),
        ('name = "deep"', 'name = "get"', "two series have one name: get, get, select"),
        ('name = "deep"', "", "series.1: 'name' is a required property"),
        ('name = "deep"', 'name = "deep"\ndeep = 1', "series.1.deep: there is no such key"),
        ("[scale.small]", "[scale.tiny]", "scale.tiny: there is no such key"),
        ("measure = 1", "mesure = 1", "scale.laptop.mesure: there is no such key"),
        ("[scale.full.series.deep]", "[scale.laptop.series.shallow]", "no series 'shallow'; possible: get, deep, select"),
        ('only = ["get"]', 'only = "get"', "scale.small.only: 'get' is not of type 'array'"),
    ],
)  # fmt: skip
def test_errors_name_file_key_and_value(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in GOOD
    with pytest.raises(BenchError) as error:
        load(tmp_path, GOOD.replace(old, new, 1))
    assert words in str(error.value)


def test_a_document_without_series_or_scales(tmp_path: Path) -> None:
    head, _, rest = GOOD.partition("[[series]]")
    with pytest.raises(BenchError, match="'series' is a required property"):
        load(tmp_path, head + "[scale.small]\n[scale.laptop]\n[scale.full]\n")
    with pytest.raises(BenchError, match="'scale' is a required property"):
        load(tmp_path, head + "[[series]]" + rest.partition("[scale.small]")[0])


def test_what_is_no_scenario(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"no scenario 'ro-2m': choose one of binlog-batch, .*, or name a \.toml file"):
        scenario.load("ro-2m")
    with pytest.raises(BenchError, match="No such file or directory; name a file that can be read"):
        scenario.load(str(tmp_path / "none.toml"))
    with pytest.raises(BenchError, match="scale 'huge': possible: small, laptop, full"):
        scenario.load("ro-1m-int", "huge")
