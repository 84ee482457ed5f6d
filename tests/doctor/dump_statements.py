"""Statements about one table, drawn at random, for a server to accept or refuse."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = ("k", "v", "w", "x", "Y")
TYPES = (
    "INT", "INTEGER UNSIGNED", "int(11) zerofill", "BIGINT UNSIGNED", "BOOL", "TINYINT", "VARCHAR(20)", "varchar(300)", "CHAR(3)", "CHAR",
    "VARCHAR(9) CHARACTER SET latin1", "VARCHAR(9) COLLATE utf8mb4_bin", "char(5) charset latin1 collate latin1_bin", "VARCHAR(5) BINARY",
    "TEXT", "TINYTEXT CHARACTER SET latin1", "TEXT(100)", "LONGTEXT", "MEDIUMTEXT CHARACTER SET ucs2", "VARBINARY(30)", "BINARY(4)", "BLOB", "BLOB(70000)",
    "VARCHAR(9) CHARACTER SET binary", "VARCHAR(9) CHARACTER SET cp1251", "NATIONAL VARCHAR(5)", "NCHAR(5)", "CHARACTER VARYING(7)", "LONG VARCHAR",
    "ENUM('a','b;''c')", "SET('x','y') CHARACTER SET ascii", "DECIMAL(10,2)", "DEC(5) UNSIGNED", "FLOAT", "FLOAT UNSIGNED", "DOUBLE PRECISION", "REAL",
    "DATE", "DATETIME(3)", "TIMESTAMP(6) NULL", "TIME", "YEAR", "BIT(3)", "JSON", "POINT", "INT3", "MIDDLEINT", "INT8",
)  # fmt: skip
ATTRIBUTES = (
    "",
    "",
    "NOT NULL",
    "NULL",
    "DEFAULT NULL",
    "NOT NULL DEFAULT '1'",
    "COMMENT 'a, (b;'",
    "UNIQUE",
    "PRIMARY KEY",
    "NOT NULL UNIQUE KEY",
)
GENERATED = (
    "INT GENERATED ALWAYS AS (1 + 1) VIRTUAL",
    "INT AS (length('a,)')) STORED",
    "VARCHAR(9) AS ('a') STORED UNIQUE",
)
OPTIONS = (
    "", "", "ENGINE=InnoDB", "ENGINE = MyISAM", "DEFAULT CHARSET=latin1", "CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci", "COLLATE=latin1_bin",
    "ROW_FORMAT=DYNAMIC COMMENT='x, engine=MyISAM'", "AUTO_INCREMENT=7", "DEFAULT CHARACTER SET cp1251", "PARTITION BY KEY (k) PARTITIONS 2",
)  # fmt: skip
names = st.sampled_from(NAMES)


@st.composite
def definitions(draw: st.DrawFn) -> str:
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(GENERATED))
    return f"{draw(st.sampled_from(TYPES))} {draw(st.sampled_from(ATTRIBUTES))}".rstrip()


@st.composite
def keys(draw: st.DrawFn) -> str:
    columns = []
    for name in draw(st.lists(names, min_size=1, max_size=2, unique_by=str.lower)):
        length = draw(st.sampled_from(("", "", "", "(3)")))
        columns.append(f"`{name}`{length}{draw(st.sampled_from(('', '', '', ' DESC', ' ASC')))}")
    if draw(st.integers(0, 7)) == 0:
        columns.append("(length('a,)') + 1)")
    kind = draw(st.sampled_from(("PRIMARY KEY", "PRIMARY KEY USING BTREE", "UNIQUE", "UNIQUE KEY u", "UNIQUE INDEX k USING BTREE", "KEY i", "FULLTEXT KEY f",
                                 "INDEX", "CONSTRAINT c1 UNIQUE", "CONSTRAINT PRIMARY KEY")))  # fmt: skip
    return f"{kind} ({', '.join(columns)})"


@st.composite
def constraints(draw: st.DrawFn) -> str:
    return draw(
        st.one_of(
            keys(),
            st.sampled_from(
                ("CHECK (1 = 1)", "CONSTRAINT ck CHECK ((`k` <> ')'))", "CHECK (`v` <> 'x' OR `w` <> 'y')",
                 "FOREIGN KEY (k) REFERENCES parent (k) ON DELETE CASCADE", "CONSTRAINT fk FOREIGN KEY (v) REFERENCES parent (k)")
            ),
        )
    )  # fmt: skip


@st.composite
def creations(draw: st.DrawFn, table: str) -> str:
    columns = draw(st.lists(names, min_size=2, max_size=4, unique_by=str.lower))
    elements = [f"{name} {draw(definitions())}" for name in columns]
    elements += draw(st.lists(constraints(), max_size=2))
    return f"CREATE TABLE {table} ({', '.join(elements)}) {draw(st.sampled_from(OPTIONS))}"


@st.composite
def actions(draw: st.DrawFn) -> str:
    name, other = draw(names), draw(names)
    place = draw(st.sampled_from(("", "", " FIRST", f" AFTER {other}")))
    index = draw(st.sampled_from(("PRIMARY", "u", "k", "i", "f", "k_2", "v", "c1", "functional_index")))
    return draw(
        st.one_of(
            definitions().map(lambda each: f"ADD COLUMN {name} {each}{place}"),
            definitions().map(lambda each: f"ADD ({name} {each}, z{other} INT)"),
            definitions().map(lambda each: f"MODIFY {name} {each}{place}"),
            definitions().map(lambda each: f"CHANGE COLUMN {name} {other} {each}{place}"),
            constraints().map(lambda each: f"ADD {each}"),
            st.sampled_from(
                (
                    f"DROP COLUMN {name}", f"DROP {name}", "DROP PRIMARY KEY", f"DROP INDEX `{index}`", f"DROP KEY {index}", "DROP FOREIGN KEY fk",
                    "DROP CONSTRAINT ck", f"DROP CONSTRAINT {index}", f"RENAME COLUMN {name} TO {other}", f"RENAME INDEX {index} TO {name}",
                    f"ALTER COLUMN {name} SET DEFAULT '3'", f"ALTER {name} DROP DEFAULT", "ENGINE=MyISAM", "ENGINE InnoDB", "ENGINE=InnoDB, FORCE",
                    "CONVERT TO CHARACTER SET utf8mb4", "CONVERT TO CHARACTER SET latin1 COLLATE latin1_bin", "CONVERT TO CHARACTER SET binary",
                    "DEFAULT CHARACTER SET latin1", "COLLATE utf8mb4_bin", "PARTITION BY KEY () PARTITIONS 2", "REMOVE PARTITIONING", "ORDER BY k",
                    "COMMENT='PARTITION BY KEY (k)'", "DISABLE KEYS", "AUTO_INCREMENT = 5",
                )
            ),
        )
    )  # fmt: skip


@st.composite
def changes(draw: st.DrawFn, table: str) -> str:
    part = f"{draw(names)}{draw(st.sampled_from(('', '(3)', ' DESC')))}"
    return draw(
        st.one_of(
            st.lists(actions(), min_size=1, max_size=2).map(lambda each: f"ALTER TABLE {table} {', '.join(each)}"),
            st.sampled_from(
                (
                    f"CREATE UNIQUE INDEX u2 ON {table} ({part})", f"CREATE UNIQUE INDEX u USING BTREE ON {table} ({part}) COMMENT 'x'",
                    f"CREATE FULLTEXT INDEX f2 ON {table} ({draw(names)})", f"DROP INDEX u ON {table}", f"DROP INDEX `PRIMARY` ON {table}",
                    f"DROP TABLE {table}", f"RENAME TABLE {table} TO old, old TO {table}", f"RENAME TABLE {table} TO old_{table}",
                    f"CREATE TABLE {table}b LIKE {table}", f"CREATE TABLE {table}c AS SELECT * FROM {table}", f"CREATE TABLE {table}d SELECT k, v FROM {table}",
                    f"CREATE TRIGGER t{table} BEFORE INSERT ON {table} FOR EACH ROW SET @a = 1", f"CREATE VIEW {table}e AS SELECT * FROM {table}",
                    f"CREATE TEMPORARY TABLE {table} (k INT)", f"DROP TEMPORARY TABLE {table}", f"ALTER TABLE {table} RENAME TO {table}b",
                    f"TRUNCATE {table}", f"INSERT INTO {table} (k) VALUES ('1')",
                )
            ),
            st.lists(actions(), min_size=1, max_size=1).map(lambda each: f"ALTER TABLE {table} {', '.join(each)}"),
            creations(table),
        )
    )  # fmt: skip


@st.composite
def usual(draw: st.DrawFn, table: str) -> str:
    """Draw a creation that is accepted."""
    key = draw(
        st.sampled_from(
            (
                "VARCHAR(20) NOT NULL",
                "INT NOT NULL AUTO_INCREMENT",
                "CHAR(9) CHARACTER SET latin1",
                "BIGINT UNSIGNED NOT NULL",
            )
        )
    )
    value = draw(st.sampled_from(("TEXT", "VARCHAR(30) DEFAULT 'x'", "INT", "LONGTEXT CHARACTER SET latin1", "BLOB")))
    index = draw(
        st.sampled_from(
            (
                "PRIMARY KEY (k)",
                "PRIMARY KEY (`k`) USING BTREE",
                "UNIQUE KEY u (k)",
                "UNIQUE KEY `u` (`k`), PRIMARY KEY (w)",
            )
        )
    )
    return f"CREATE TABLE {table} (k {key}, v {value}, w INT NOT NULL, {index}) {draw(st.sampled_from(OPTIONS[:7]))}"


@st.composite
def scripts(draw: st.DrawFn, tables: int) -> list[list[str]]:
    """Draw statements for each of several tables."""
    return [[draw(usual(f"t{n}")), *draw(st.lists(changes(f"t{n}"), min_size=1, max_size=6))] for n in range(tables)]
