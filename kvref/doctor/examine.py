"""Judge a configuration: each row as the plugin's start-up would, its options and policies, the default mapping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kvref import profiles
from kvref.doctor import features, predicates
from kvref.doctor.features import KVREF
from kvref.doctor.predicates import Subject
from kvref.engine.cache.memory import Policies, Policy
from kvref.engine.mapping import MAX_OPTION, default_name
from kvref.errors import ConfigError, RowError
from kvref.storage.config.catalog import BUILT_IN, POLICY_KINDS, ROW_CACHE, read_options, read_policies
from kvref.storage.config.containers import check, table_name

if TYPE_CHECKING:
    from kvref.doctor.features import Finding
    from kvref.doctor.source import Source
    from kvref.engine.mapping import Mapping
    from kvref.profiles import Profile
    from kvref.storage.config.containers import Container

SEPARATOR: Final = "separator"
DELIMITER: Final = "table_map_delimiter"


@dataclass(frozen=True, slots=True)
class Options:
    """The configuration outside the rows of `containers`.

    Args:
        rows: of `config_options`; None if the table is missing.
        policies: of the first row of `cache_policies`; None if it has none.
        candidates: names of containers in the order in which they may be the default mapping.
        chosen: the default mapping's; None if no row is usable, or that is not known.
        complete: every row that decides on the default mapping could be read.
    """

    rows: dict[str, bytes | None] | None
    policies: Policies | None
    candidates: tuple[str, ...]
    chosen: str | None
    complete: bool

    def value(self, name: str) -> bytes:
        return ((self.rows or {}).get(name) or BUILT_IN[name])[:MAX_OPTION]


def _of_option(word: str, name: str) -> dict[str, Callable[[Options], list[str]]]:
    """Return the predicates of one option; the names of their features begin with a word."""

    def when(test: Callable[[bytes | None], object]) -> Callable[[Options], list[str]]:
        return lambda o: [name] if o.rows and name in o.rows and test(o.rows[name]) else []

    return {
        f"{word}-of-several-bytes": when(lambda value: len(value or b"") > 1),
        f"{word}-too-long": when(lambda value: len(value or b"") > MAX_OPTION),
        f"{word}-empty": when(lambda value: value == b""),
        f"{word}-null": when(lambda value: value is None),
        f"{word}-missing": lambda o: [name] if o.rows and name not in o.rows else [],
        f"{word}-in-capitals": lambda o: [each for each in o.rows or {} if each != name and each.lower() == name],
    }


def _unknown(options: Options) -> dict[str, bytes | None]:
    known = (*BUILT_IN, ROW_CACHE)
    return {name: value for name, value in (options.rows or {}).items() if name.lower().partition(".")[0] not in known}


def _policy(policy: Policy) -> Callable[[Options], list[str]]:
    return lambda o: [f"{kind}_policy" for kind in POLICY_KINDS if o.policies and getattr(o.policies, kind) is policy]


def _skipped_rows(options: Options) -> list[str]:
    if options.chosen is None or not options.complete:
        return []
    return list(options.candidates[: options.candidates.index(options.chosen)])


PREDICATES: Final[dict[str, Callable[[Options], list[str]]]] = {
    "options-missing": lambda o: ["config_options"] if o.rows is None else [],
    "options-empty": lambda o: ["config_options"] if o.rows is not None and not o.rows else [],
    "policies-empty": lambda o: ["cache_policies"] if o.policies is None else [],
    "policies-cache-only": _policy(Policy.CACHE),
    "policies-caching": _policy(Policy.BOTH),
    "policies-disabled": _policy(Policy.OFF),
    **_of_option("separator", SEPARATOR),
    **_of_option("delimiter", DELIMITER),
    "unknown-option": lambda o: list(_unknown(o)),
    "unknown-option-null": lambda o: [name for name, value in _unknown(o).items() if value is None],
    "default-by-name": lambda o: ["default"] if o.chosen == "default" else [],
    "default-by-order": lambda o: [o.chosen] if o.chosen not in (None, "default") and o.complete else [],
    "rows-passed-over": _skipped_rows,
    "default-passed-over": lambda o: [name for name in _skipped_rows(o) if name == "default"],
    "default-in-other-case": lambda o: [
        name for name in o.candidates if name != "default" and name.lower() == "default"
    ],
    "no-usable-row": lambda o: ["containers"] if o.chosen is None and o.complete else [],
}


USABLE: Final = "usable"
UNUSABLE: Final = "unusable"
CANNOT_TELL: Final = "cannot tell"
# Which profile a server's own plugin has; of 5.7 none was ever observed.
PLUGINS: Final = {"5.6": "mysql-5.6", "5.7": "", **dict.fromkeys(("8.0", "8.1", "8.2"), "mysql-8.0")}
NEWEST: Final = "mysql-8.0"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A profile's verdict on a row.

    Args:
        state: USABLE, UNUSABLE or CANNOT_TELL.
        fault: what is wrong and how to fix it; empty if usable.
        mapping: what the row defines; None if it is not usable.
    """

    state: str
    fault: str = ""
    rule: str = ""
    mapping: Mapping | None = None


@dataclass(frozen=True, slots=True)
class RowReport:
    """One row of `containers`.

    Args:
        default: the row is the default mapping.
        kvref: the verdict of profile `kvref` if it differs, else None.
        findings: what the mapping depends on, or why the row is rejected.
        subject: what the findings are about; None if no profile accepts the row.
        not_cached, not_granted: see `Source`.
    """

    row: Container
    verdict: Verdict
    default: bool
    kvref: Verdict | None
    findings: tuple[Finding, ...]
    subject: Subject | None
    not_cached: str = ""
    not_granted: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """A configuration.

    Args:
        refused: why the endpoint does not start with it; empty if it starts.
        kvref_refused: the same of profile `kvref`.
        problems: of options that are missing, so that the built-in value is used.
        default: which row is the default mapping, and why; or why none is.
        findings: what the configuration as a whole depends on.
        rows: in the order of their names' collation.
        notes: what could not be read.
        log_refusal: see `Source`.
        level: the profile's default of `innodb_api_trx_level`.
        plugin: the report for the plugin's profile, if `profile` is kvref and the server is MySQL.
    """

    source: str
    profile: str
    refused: str
    kvref_refused: str
    problems: tuple[str, ...]
    default: str
    findings: tuple[Finding, ...]
    rows: tuple[RowReport, ...]
    notes: tuple[str, ...]
    log_refusal: str
    level: int
    plugin: Report | None = None

    @property
    def exit_code(self) -> int:
        """Return 0 if every row is usable, 1 if one is not, 2 if one could not be read and none is unusable."""
        states = {each.verdict.state for each in self.rows}
        if self.refused or UNUSABLE in states or not self.rows:
            return 1
        return 2 if CANNOT_TELL in states else 0


def examine(source: Source, profile: Profile) -> Report:
    """Judge every row. Raises ConfigError if the table `containers` is missing."""
    report = _report_for(source, profile)
    if profile.name != KVREF or not source.of_mysql:
        return report
    return replace(report, plugin=_report_for(source, profiles.load(PLUGINS.get(_series(source.version)) or NEWEST)))


def _series(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _report_for(source: Source, profile: Profile) -> Report:
    view = _ProfileView(source, profile)
    kvref_view = view if profile.name == KVREF else _ProfileView(source, profiles.load(KVREF))
    options = view.options()
    findings = features.found("configuration", lambda name: PREDICATES[name](options), profile.name)
    rows = sorted(view.rows, key=lambda each: view.candidates.index(each.name))
    return Report(
        source.name, profile.name, view.refused, kvref_view.refused, tuple(view.problems), view.default_reason(),
        findings, tuple(_row_report(row, view, kvref_view, options) for row in rows),
        (*source.notes, *_version_note(source.version, profile.name)), source.log_refusal,
        profile.number("isolation.default_level"),
    )  # fmt: skip


def _version_note(version: str, profile: str) -> list[str]:
    series = _series(version)
    if series not in PLUGINS or profile in {KVREF, PLUGINS[series]}:
        return []
    plugin = PLUGINS[series]
    advice = f"--profile {plugin} matches its plugin" if plugin else "no profile matches its plugin: check with both"
    return [f"the server is MySQL {version}, and this is profile {profile}: {advice}"]


class _ProfileView:
    """A configuration as one profile sees it."""

    def __init__(self, source: Source, profile: Profile) -> None:
        self.source = source
        self.profile = profile
        self.catalog = source.catalog(profile)
        self.rows = self.catalog.containers()
        self.verdicts = {row.name: self._judge(row) for row in self.rows}
        self.candidates = list(default_name(list(self.verdicts), self.catalog.naming().order))
        self.chosen = next((name for name in self.candidates if self.verdicts[name].state == USABLE), None)
        count = None if self.chosen is None else self.candidates.index(self.chosen)
        self.skipped = self.candidates[:count]
        self.complete = all(self.verdicts[name].state != CANNOT_TELL for name in self.skipped)
        self.refused, self.problems = "", list[str]()
        self.policies = Policies()
        try:
            _, _, self.problems = read_options(self.catalog, profile)
            self.policies, ignored_policies = read_policies(self.catalog, profile)
            self.problems += ignored_policies
        except ConfigError as error:
            self.refused = str(error)
        if not self.refused and self.chosen is None and self.complete:
            self.refused = "no row of containers can be used"

    def named(self, row: Container) -> tuple[str, str] | None:
        return None if row.db_schema is None or row.db_table is None else table_name(row, self.profile)

    def options(self) -> Options:
        try:
            rows: dict[str, bytes | None] | None = self.catalog.options()
        except ConfigError:  # here a missing table is a finding; `read_options` reports it as an error
            rows = None
        policies = self.policies if self.catalog.policies() is not None else None
        return Options(rows, policies, tuple(self.candidates), self.chosen, self.complete)

    def subject(self, row: Container, options: Options) -> Subject | None:
        """Return a row's mapping with what is known of it; None if the row defines none."""
        mapping, named = self.verdicts[row.name].mapping, self.named(row)
        table = None if mapping is None or named is None else self.catalog.table(*named)
        if mapping is None or named is None or table is None:
            return None
        others = tuple(each for each in self.rows if each is not row and self.named(each) == named)
        details = self.source.details(*named)
        return Subject(row, mapping, table, details, options.value(DELIMITER), options.value(SEPARATOR), others)

    def default_reason(self) -> str:
        """Return which row is the default mapping and why."""
        unknown = [name for name in self.skipped if self.verdicts[name].state == CANNOT_TELL]
        if self.chosen is None and unknown:
            return f"not known: {unknown[0]!r} is the first row that may be usable, and cannot be read"
        if self.chosen is None:
            return "none: no row of containers can be used" if self.rows else "none: containers is empty"
        if self.chosen == "default":
            return "'default', by its name"
        over = ", ".join(f"{name!r} ({self.verdicts[name].state})" for name in self.skipped)
        reason = f"{self.chosen!r}, the first usable row in the order of names, as no usable row is named 'default'"
        return f"{reason}; passed over: {over}" if over else reason

    def _judge(self, row: Container) -> Verdict:
        try:
            return Verdict(USABLE, mapping=check(row, self.catalog, self.profile))
        except ConfigError as error:
            rule = error.rule if isinstance(error, RowError) else ""
            named = self.named(row) if rule == "no-table" else None
            reason = str(error) if rule == "unseen" else "" if named is None else self.source.why_missing(*named)
            return Verdict(CANNOT_TELL, reason, "unseen") if reason else Verdict(UNUSABLE, str(error), rule)


def _row_report(row: Container, view: _ProfileView, kvref_view: _ProfileView, options: Options) -> RowReport:
    verdict, of_kvref = view.verdicts[row.name], kvref_view.verdicts[row.name]
    subject = view.subject(row, options) or kvref_view.subject(row, options)
    findings: tuple[Finding, ...] = ()
    if verdict.state == UNUSABLE:
        findings = features.refusal(verdict.rule, view.profile.name)
    elif subject is not None:
        of_mapping = predicates.PREDICATES
        findings = features.found("mapping", lambda name: dict.fromkeys(of_mapping[name](subject)), view.profile.name)
    differs = of_kvref if (of_kvref.state, of_kvref.fault) != (verdict.state, verdict.fault) else None
    not_cached = "" if verdict.mapping is None else view.source.not_cached(verdict.mapping)
    not_granted = "" if verdict.mapping is None else view.source.not_granted(verdict.mapping, view.profile)
    return RowReport(row, verdict, row.name == view.chosen, differs, findings, subject, not_cached, not_granted)
