"""The judge on trial: every broken server is failed by a case of the requirement that it breaks, and the whole one is not."""

from __future__ import annotations

import importlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import Phase, settings

from kvref_conformance import endpoint, sql
from kvref_conformance.cases import CHAPTERS
from kvref_conformance.deviations import Deviations
from kvref_conformance.judge import Judge, new_tag
from kvref_conformance.machine import judge_machine
from kvref_conformance.options import DEFAULT_SEED as SEED
from kvref_conformance.shapes import judge_shapes
from kvref_conformance.sql import reload
from kvref_conformance.sql.settings import Settings
from kvref_conformance.sql.world import World
from kvref_conformance.verdict import FAILS, HOLDS, Verdict

SERVE = Path(__file__).with_name("serve_mutant.py")
START_SECONDS = 20.0
# A failure need not become small here.
settings.register_profile("mutants", phases=[Phase.generate])
GENERATED = {"machine": judge_machine, "shapes": judge_shapes}
EXAMPLES = 60


class Broken(NamedTuple):
    """A requirement that a mutant breaks, the chapter whose cases must say so, and which of them are tried."""

    requirement: str
    chapter: str
    cases: str


BROKEN = {
    # protocol_mutants.py
    "forgets_the_switch": Broken("KV-MAP-002", "mapping", "get-word"),
    "shares_the_binding": Broken("KV-MAP-028", "mapping", "a-connections-own"),
    "echoes_the_bare_key": Broken("KV-MAP-001", "mapping", "get-word"),
    "takes_unknown_for_default": Broken("KV-MAP-010", "mapping_words", "unknown"),
    "ignores_a_changed_delimiter": Broken("KV-DELIM-001", "delimiter", "colon"),
    "unbinds_at_a_failed_bind": Broken("KV-BIND-003", "bind", "unknown"),
    "switches_once_in_a_get": Broken("KV-MGET-008", "multiget", "mapping"),
    "stores_whatever_the_cas_number": Broken("KV-CORE-011", "storage", "cas"),
    "flushes_every_table": Broken("KV-FLUSH-002", "delete_flush", "flush"),
    "takes_default_for_an_alias": Broken("KV-DEF-004", "default_mapping", "no-alias"),
    "forgets_the_switch_of_a_silent_store": Broken("KV-SEQ-001", "machine", ""),
    "hides_expired_rows_from_get_only": Broken("KV-CORE-028", "storage", "expired"),
    "takes_thirty_days_for_a_date": Broken("KV-CORE-026", "storage", "expir"),
    "gives_appended_items_other_flags": Broken("KV-CORE-009", "storage", "keeps-flags"),
    "counts_on_text": Broken("KV-ARITH-016", "arithmetic", "no-number"),
    "narrows_amounts": Broken("KV-ARITH-025", "arithmetic", "large"),
    "flushes_at_once_whatever_the_delay": Broken("KV-FLUSH-004", "delete_flush", "flush-delay"),
    "ends_a_row_a_second_early": Broken("KV-EXP-020", "expiry", "second"),
    "compares_half_a_cas_number": Broken("KV-CAS-013", "cas", "cas-number"),
    "counts_below_zero": Broken("KV-ARITH-003", "arithmetic", "decr"),
    "answers_a_repeated_key_once": Broken("KV-MGET-003", "multiget", "repeated"),
    "shows_the_stored_spelling": Broken("KV-CORE-047", "retrieval", "letter-case"),
    "answers_silent_commands": Broken("KV-CONN-001", "connection", "noreply"),
    "counts_hits_twice": Broken("KV-STATS-005", "stats", "stats-of"),
    "ignores_the_second_bound": Broken("KV-RANGE-001", "ranges", "range-included"),
    "keeps_rows_over_a_reload": Broken("KV-LIFE-003", "reload", "changed"),
    "reads_rows_anew_each_time": Broken("KV-LIFE-003", "reload", "changed-row"),
    # table_mutants.py
    "cuts_long_values": Broken("KV-COL-015", "columns", "long-part"),
    "cuts_long_keys": Broken("KV-LIMIT-007", "limits", "key-wider"),
    "cuts_values_at_any_byte_of_the_separator": Broken("KV-COL-011", "columns", "empty-part"),
    "drops_surplus_parts": Broken("KV-COL-009", "columns", "surplus"),
    "clears_unmapped_columns": Broken("KV-TABLE-002", "table", "other-columns"),
    "keeps_low_bits_of_numbers": Broken("KV-TYPE-025", "value_integer", "too-"),
    "renames_keys": Broken("KV-SQL-015", "behind_sql", "spelling"),
    "hides_why_the_table_refused": Broken("KV-TABLE-010", "table", "refused"),
    "cuts_text_of_another_character_set": Broken("KV-TYPE-037", "value_column", "malformed"),
    "clears_columns_at_append": Broken("KV-COL-019", "columns_changed", "append"),
    "refuses_null_options": Broken("KV-FLAG-007", "optional_columns", "null"),
    "takes_a_column_for_two_purposes": Broken("KV-COL-037", "columns", "two-purposes"),
    "joins_columns_backwards": Broken("KV-COL-001", "columns", "columns-joined"),
    "shows_null_as_a_word": Broken("KV-NULL-001", "nulls", "null-value"),
    "stores_nothing_as_null": Broken("KV-NULL-013", "nulls", "null-and-empty"),
    "counts_bytes_for_characters": Broken("KV-TYPE-006", "value_column", "width"),
    "reads_flags_from_the_expiry": Broken("KV-FLAG-001", "optional_columns", "in-use"),
    "forgets_the_fourth_part": Broken("KV-SEQ-002", "shapes", "any-table"),
    "takes_keys_by_their_first_letters": Broken("KV-CORE-060", "delete_flush", "delete"),
    "compares_bounds_by_bytes": Broken("KV-RANGE-023", "ranges", "collation"),
    "takes_any_index": Broken("KV-KEY-044", "key_index", "index"),
    "takes_any_option_column": Broken("KV-FLAG-008", "optional_columns", "of-type"),
    "finds_option_columns_in_any_case": Broken("KV-FLAG-005", "optional_columns", "capitals"),
    "sees_new_rows_after_a_reload_only": Broken("KV-MAP-034", "mapping", "new-row"),
    "replaces_rows_of_equal_values": Broken("KV-TYPE-034", "value_column", "unique"),
    "ignores_the_option_separator": Broken("KV-SEP-005", "separator", "separator-comma"),
    "starts_cas_numbers_again_at_a_reload": Broken("KV-CAS-006", "cas", "reload"),
    "forgets_null_flags": Broken("KV-NULL-008", "nulls", "null-flags"),
    # batch_mutants.py
    "discards_acknowledged_writes": Broken("KV-BATCH-020", "failed_write", "kept-beside-add"),
    "keeps_the_count_over_a_switch": Broken("KV-BATCH-041", "batch_ends", "switch-and-count"),
    "counts_each_key_of_a_get": Broken("KV-RBATCH-013", "read_batch", "several-keys-are-one"),
    "commits_in_the_midst_of_requests": Broken("KV-IDLE-007", "idle_commit", "busy-batch"),
    "keeps_one_view_at_level_1": Broken("KV-RBATCH-003", "read_batch", "newest-committed-at-1"),
    "shows_deletes_before_their_commit": Broken("KV-RBATCH-008", "read_batch", "delete-unseen"),
    "passes_a_wait_for_a_miss": Broken("KV-LOCK-030", "lock_wait", "delete-gives-up"),
    "takes_one_write_more": Broken("KV-BATCH-003", "write_batch", "full-committed"),
    "counts_no_reads": Broken("KV-BATCH-030", "batch_ends", "get-commits-hit"),
    "begins_no_new_count": Broken("KV-BATCH-004", "write_batch", "next-batch"),
    "switches_without_a_commit": Broken("KV-BATCH-040", "batch_ends", "switch-by-bind"),
    "never_commits_idle_batches": Broken("KV-IDLE-001", "idle_commit", "idle-batch"),
    "drops_the_batch_of_a_lost_connection": Broken("KV-BATCH-044", "batch_ends", "end-by-close"),
    "shows_pending_writes_at_every_level": Broken("KV-ISO-005", "isolation", "pending-unseen-at-2"),
    "hides_pending_writes_at_level_0": Broken("KV-ISO-004", "isolation", "pending-seen-at-0"),
    "has_no_snapshots": Broken("KV-RBATCH-002", "read_batch", "same-for-four-reads-at-2"),
    "locks_no_rows": Broken("KV-LOCK-001", "locks", "waits-for-a-batch"),
    "keeps_locks_after_the_end": Broken("KV-LOCK-008", "locks", "lock-of-a-closed"),
    "notices_no_deadlock": Broken("KV-LOCK-009", "locks", "deadlock"),
    "never_gives_up_a_wait": Broken("KV-LOCK-030", "lock_wait", "set-gives-up"),
    "works_on_what_it_saw": Broken("KV-RBATCH-018", "read_batch", "incr-on-the-newest"),
    "hides_own_writes": Broken("KV-BATCH-011", "write_batch", "own-set"),
    "flushes_beside_batches": Broken("KV-LOCK-040", "lock_wait", "flush-waits"),
    "commits_the_batches_of_all": Broken("KV-BATCH-009", "write_batch", "own-count"),
    # binary_mutants.py
    "says_nothing_of_unknown_opcodes": Broken("KV-BINFRAME-014", "binary_frames", "unknown-opcodes"),
    "reads_opaques_as_signed": Broken("KV-BINFRAME-006", "binary_frames", "opaque"),
    "reads_bodies_of_unknown_opcodes": Broken("KV-BINFRAME-016", "binary_frames", "with-a-body"),
    "takes_appends_with_extras": Broken("KV-BINLEN-010", "binary_lengths", "append-with"),
    "answers_quiet_misses": Broken("KV-BINGET-005", "binary_get", "getq"),
    "says_not_found_for_getk": Broken("KV-BINGET-004", "binary_get", "getk"),
    "answers_without_cas_numbers": Broken("KV-BINSTORE-001", "binary_store", "bin-set"),
    "narrows_flags": Broken("KV-BINSTORE-003", "binary_store", "flags"),
    "says_not_stored_for_every_add": Broken("KV-BINSTORE-007", "binary_store", "add"),
    "answers_quiet_sets": Broken("KV-BINQUIET-001", "binary_quiet", "setq"),
    "fails_quietly": Broken("KV-BINQUIET-003", "binary_quiet", "addq"),
    "ignores_cas_numbers_of_all_but_sets": Broken("KV-BINCMD-004", "binary_commands", "wrong-cas"),
    "always_makes_counters": Broken("KV-BINARITH-015", "binary_arithmetic", "creates-nothing"),
    "adds_the_amount_to_the_initial_value": Broken("KV-BINARITH-013", "binary_arithmetic", "creates"),
    "loses_the_expiry_of_counters": Broken("KV-BINARITH-017", "binary_arithmetic", "created-expiry"),
    "takes_words_of_delete_for_keys": Broken("KV-BINMAP-012", "binary_mapping", "delete-word"),
    "cuts_keys_of_ranges": Broken("KV-BINRANGE-002", "binary_ranges", "range-key"),
    # meta_mutants.py
    "knows_no_touch": Broken("KV-TOUCH-001", "touch", "touch"),
    "runs_the_data_of_a_refused_ms": Broken("KV-MS-018", "meta_set", "ms-flag-0"),
    "touches_the_cas_number_too": Broken("KV-TOUCH-006", "touch", "keeps-cas"),
    "answers_a_gat_as_a_get": Broken("KV-TOUCH-025", "touch", "touch-column"),
    "answers_misses_to_q": Broken("KV-MG-012", "meta_get", "mg-q"),
    "lets_everybody_win": Broken("KV-MG-019", "meta_get", "mg-R"),
    "keeps_marks_over_a_write": Broken("KV-MD-014", "meta_delete", "md-I-set"),
    "deletes_what_it_should_mark": Broken("KV-MD-008", "meta_delete", "md-I"),
    "marks_under_the_old_number": Broken("KV-MD-009", "meta_delete", "md-I-cas"),
    "stores_whatever_c_says": Broken("KV-MS-010", "meta_set", "ms-C-other"),
    "takes_base64_for_the_key": Broken("KV-META-011", "meta_commands", "base64-and-plain"),
    "always_makes_numbers": Broken("KV-MA-004", "meta_arithmetic", "ma-missing"),
    "sorts_the_flags": Broken("KV-MG-010", "meta_get", "mg-order"),
    # cache_mutants.py
    "ends_sums_with_a_line": Broken("KV-POLICY-021", "cache_policies", "cache-only-sum-left"),
    "cuts_what_is_appended_to": Broken("KV-POLICY-022", "cache_policies", "cache-only-append"),
    "follows_no_policy": Broken("KV-POLICY-038", "cache_policies", "disabled-get"),
    "keeps_the_cache_over_a_reload": Broken("KV-POLICY-044", "cache_policies", "reload-empties"),
}


@contextmanager
def serving(mutant: str, folder: Path) -> Iterator[Judge]:
    """Serve a mutant from a fresh file; give a judge of it."""
    server = Server(mutant, folder)
    try:
        target = endpoint.find(server.address, "kvref")
        with closing(sql.connect(server.store, "8.0.33")) as database:
            again = reload.chosen(f"kill -HUP $(cat {folder / 'pid'})", database, target.address)
            world = World(database, target, again, new_tag())
            world.create()
            settings = Settings(target.address, server.restart, world.clear, database.connect_again)
            yield Judge(target, Deviations([]), world, "", new_tag(), settings)
    finally:
        server.stop()


class Server:
    """A mutant that serves a file on a port, always the same one."""

    def __init__(self, mutant: str, folder: Path) -> None:
        self.store = f"sqlite:///{folder / 'kvref.sqlite'}"
        self.address = "127.0.0.1:0"
        self._mutant = mutant
        self._folder = folder
        self.address = self._start({})

    def restart(self, settings: Mapping[str, int]) -> str:
        """Start again with settings; the suite's hook."""
        self.stop()
        self._start(settings)
        return ""

    def stop(self) -> None:
        """End it in order."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(timeout=20)

    def _start(self, settings: Mapping[str, int]) -> str:
        """Return the address that it logs, as soon as it does."""
        command = [sys.executable, str(SERVE), self._mutant, "serve", "--listen", self.address, "--store", self.store]
        command += [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        log = self._folder / "log"
        with log.open("w") as out:
            self._process = subprocess.Popen(command, stderr=out)
        (self._folder / "pid").write_text(str(self._process.pid))
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            found = re.search(r"listening on (127\.0\.0\.1:\d+)", log.read_text())
            if found:
                return found[1]
            time.sleep(0.02)
        raise AssertionError(f"the mutant did not start:\n{log.read_text()}")


def verdicts(judge: Judge, broken: Broken) -> list[Verdict]:
    """Judge the cases of a chapter whose names hold a text."""
    module = importlib.import_module(f"kvref_conformance.cases.test_{broken.chapter}")
    chosen = [case for case in module.CASES if broken.cases in case.id]
    assert chosen, f"no case of {broken.chapter} is called {broken.cases}"
    generated = GENERATED.get(broken.chapter)
    if generated is not None:
        settings.load_profile("mutants")
        return [generated(judge, case, broken.chapter, EXAMPLES, SEED) for case in chosen]
    return [judge.judge(case, broken.chapter) for case in chosen]


@pytest.mark.parametrize("mutant", BROKEN)
def test_a_mutant_is_failed_by_the_requirement_it_breaks(mutant: str, tmp_path: Path) -> None:
    broken = BROKEN[mutant]
    with serving(mutant, tmp_path) as judge:
        failed = {name for each in verdicts(judge, broken) if each.verdict == FAILS for name in each.requirements}
    assert broken.requirement in failed


def test_the_unbroken_server_is_not_failed(tmp_path: Path) -> None:
    tried = sorted(set(BROKEN.values()), key=lambda broken: list(CHAPTERS).index(broken.chapter))
    with serving("none", tmp_path) as judge:
        judged = [each for broken in tried for each in verdicts(judge, broken)]
    assert [each.text for each in judged if each.verdict == FAILS] == []
    held = {name for each in judged if each.verdict == HOLDS for name in each.requirements}
    assert {broken.requirement for broken in BROKEN.values()} <= held


def test_every_mutant_is_on_trial() -> None:
    names = ("protocol", "table", "batch", "cache", "binary", "meta")
    sources = [Path(__file__).with_name(f"{name}_mutants.py").read_text() for name in names]
    pairs = [pair for source in sources for pair in re.findall(r'@mutant\ndef (\w+)|of_fact\("(\w+)"', source)]
    assert {name for pair in pairs for name in pair if name} == set(BROKEN)
