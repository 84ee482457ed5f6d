"""`config_options` and the schema of the configuration: rows that are missing, unknown or NULL."""

from __future__ import annotations

from kvref_conformance.case import Setup, case, sql
from kvref_conformance.cases.phrases import EVERYWHERE, hit, mapping, miss, store, unmap
from kvref_conformance.cases.test_columns import THREE

EMPTY = Setup(delimiter=None, separator=None)
UNKNOWN, UNKNOWN_NULL = Setup(others=(("kvc_unknown", "x"),)), Setup(others=(("kvc_unknown", None),))
AS_USUAL = (*EVERYWHERE, hit("@@{m2}.{k}", "2"), hit("{k}", "2"), store("@@{m}.{k}", "a|b"), hit("{k}", "a|b|"))

CASES = (
    case("no-options", "KV-CONF-003", *AS_USUAL, setup=EMPTY, shape=THREE, bind="m1"),
    case("unknown-option", "KV-CONF-004", *AS_USUAL, setup=UNKNOWN, shape=THREE, bind="m1"),
    case("unknown-option-null", "KV-CONF-006", *AS_USUAL, setup=UNKNOWN_NULL, shape=THREE, bind="m1"),
    case(
        "columns-of-the-configuration",
        "KV-CONF-011",
        sql(
            "SELECT db_schema, key_columns, value_columns, flags, cas_column, expire_time_column, "
            "unique_idx_name_on_key "
            "FROM {containers} WHERE name = '{m1}' AND db_table = '{t1}'",
            ("test", "c1", "c2", "c3", "c4", "c5", "PRIMARY"),
        ),
        sql("SELECT COUNT(*) FROM {options} WHERE name = 'separator' AND value = '|'", (1,)),
        sql(
            "SELECT policy_name, get_policy, set_policy, delete_policy, flush_policy FROM {policies}",
            ("cache_policy", "innodb_only", "innodb_only", "innodb_only", "innodb_only"),
        ),
    ),
    case(
        "table-of-the-schema-mysql",
        "KV-CONF-012",
        mapping(
            "{k2}",
            "help_keyword",
            "mysql",
            "name",
            key="name",
            values="help_keyword_id",
            flags="0",
            cas="0",
            expiry="0",
        ),
        hit("@@{k2}.help_date", "0"),
        miss("@@{k2}.kvc-no-such-keyword"),
        unmap("{k2}"),
        engine="mysql",
    ),
)
