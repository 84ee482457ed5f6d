"""`kvref config`: show the configuration of `kvref serve` with the origin of each value, or check a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
from click.core import ParameterSource

from kvref import profiles
from kvref.cli.serve import DEFAULT_ADDRESS, DEFAULT_PROFILE, listeners, metrics_address, servable, stores_of
from kvref.cli.serve import command as serve
from kvref.errors import Collected, ConfigError, Part
from kvref.server.listeners.listener import fitting, listener
from kvref.server.settings import SERVER_KEYS, of_file, origins, parse, read_file, server_parameters
from kvref.server.workers.plan import refuse_settings
from kvref.storage.base import without_password
from kvref.storage.several import placement
from kvref.storage.stores import scheme_of

_ORIGINS: Final[dict[ParameterSource | None, str]] = {
    ParameterSource.COMMANDLINE: "option",
    ParameterSource.ENVIRONMENT: "environment",
    ParameterSource.DEFAULT_MAP: "file",
}


class _Value(NamedTuple):
    name: str
    value: Any
    origin: str  # option, environment, file or default


@click.group(name="config")
def command() -> None:
    """Show or check the configuration of `kvref serve`.

    An option overrides the environment, the environment overrides the file of --config, and the file overrides the
    default.
    """


def _show(**given: Any) -> None:
    context = click.get_current_context()
    as_json = given.pop("as_json")
    values = _values(context)
    if as_json:
        click.echo(json.dumps({name: {"value": value, "origin": origin} for name, value, origin in values}, indent=2))
        return
    width = max(len(each.name) for each in values)
    for each in values:
        value = "" if each.value is None else each.value if isinstance(each.value, str) else json.dumps(each.value)
        click.echo(f"{each.name:{width}}  {each.origin:11}  {value}".rstrip())


def _values(context: click.Context) -> list[_Value]:
    """Return the values of `kvref serve` with these parameters. Raises ConfigError if one is invalid."""

    def origin(parameter: str) -> str:
        return _ORIGINS.get(context.get_parameter_source(parameter), "default")

    given, config = context.params, context.params["config"]
    found = []
    for key, parameter in SERVER_KEYS.items():
        value = given[parameter]
        if key == "store":
            placed = stores_of(value, config)
            if value is not None:
                scheme_of(value)
                value = without_password(value)
            elif placed is not None:
                dsns = [{"name": name, "dsn": without_password(dsn)} for name, dsn in placed.dsns.items()]
                found += [_Value(key, dsns, "file"), _Value("mapping", read_file(config).mappings, "file")]
                continue
        found.append(_Value(key, list(value) if isinstance(value, tuple) else value, origin(parameter)))
    facts = profiles.load(given["profile"])
    pairs = list(given["pairs"])
    sources = origins(pairs, config)
    for name, number in parse(pairs, config, facts).items():
        source = sources[name]
        found.append(_Value(f"settings.{name}", number, origin("pairs") if source == "option" else source))
    listeners({"address": given["address"]} if given["address"] else {}, config, [])
    if tables := read_file(config).listeners:
        return [*found, _Value("listener", tables, "file")]
    return [*found, _Value("listen", given["address"] or DEFAULT_ADDRESS, origin("address"))]


command.add_command(
    click.Command(
        "show",
        callback=_show,
        params=[
            *serve.params,
            click.Option(
                ["--json", "as_json"], is_flag=True, help="Print an object with the value and origin of each."
            ),
        ],
        help="Print the configuration that `kvref serve` uses with these options, and the origin of each value.",
    )
)


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
def check(file: Path) -> None:
    """Check a configuration file.

    Exit code 0: `kvref serve --config FILE` accepts it; 2: it does not, with a line for each error that names the value
    and the fix.
    """
    found = Collected()
    with found.part():
        _check(file, found.part)
    if found.errors:
        texts = [str(each).removeprefix(f"configuration file {file}: ") for each in found.errors]
        each = texts[0] if len(texts) == 1 else f"{len(texts)} errors:" + "".join(f"\n  {text}" for text in texts)
        raise ConfigError(f"configuration file {file}: {each}")
    click.echo(f"{file}: valid")


def _check(file: Path, part: Part) -> None:
    given = _converted(server_parameters(file, part), part)
    facts = profiles.load(DEFAULT_PROFILE)
    with part():
        facts = servable(given.get("profile", DEFAULT_PROFILE))
    if "metrics" in given:
        with part():
            metrics_address(given["metrics"])
    tables = read_file(file, part)
    settings = of_file(tables.settings, file, facts, part)
    found = placement(tables.stores, tables.mappings, part)
    dsns = list(found.dsns.values()) if found is not None else [given["dsn"]] if "dsn" in given else []
    for dsn in dsns:
        with part():
            refuse_settings(given.get("workers", 1), facts, settings, scheme_of(dsn))
    for table in tables.listeners:
        valid = fitting(table, part)
        if valid.keys() >= table.keys() & {"address"}:
            with part():
                listener(valid)


def _converted(given: dict[str, Any], part: Part) -> dict[str, Any]:
    context, found = click.Context(serve, info_name="serve"), {}
    for each in serve.params:
        if each.name in given:
            with part():
                try:
                    found[each.name] = each.type_cast_value(context, given[each.name])
                except click.BadParameter as error:
                    key = next(key for key, parameter in SERVER_KEYS.items() if parameter == each.name)
                    raise ConfigError(f"{key} = {given[each.name]!r}: {error.message.rstrip('.')}") from error
    return found
