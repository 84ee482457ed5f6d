"""`kvref config`: show the configuration of `kvref serve` with the origin of each value, or check a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
from click.core import ParameterSource

from kvref import profiles
from kvref.cli.serve import DEFAULT_ADDRESS, listeners, stores_of
from kvref.cli.serve import command as serve
from kvref.server.settings import SERVER_KEYS, origins, parse, read_file
from kvref.storage.base import without_password
from kvref.storage.stores import scheme_of

_ORIGINS: Final[dict[ParameterSource | None, str]] = {
    ParameterSource.COMMANDLINE: "option",
    ParameterSource.ENVIRONMENT: "environment",
    ParameterSource.DEFAULT_MAP: "file",
}
_LISTENERS: Final = "listener"


class _Value(NamedTuple):
    """One value and where it comes from: option, environment, file or default."""

    name: str
    value: Any
    origin: str


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
        click.echo(json.dumps({each.name: {"value": each.value, "origin": each.origin} for each in values}, indent=2))
        return
    width = max(len(each.name) for each in values)
    for each in values:
        value = "" if each.value is None else each.value if isinstance(each.value, str) else json.dumps(each.value)
        click.echo(f"{each.name:{width}}  {each.origin:11}  {value}".rstrip())


def _values(context: click.Context) -> list[_Value]:
    """Return the values of `kvref serve` with these parameters.

    Raises:
        ConfigError: one of them is invalid.
    """

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
    came = origins(pairs, config)
    for name, number in parse(pairs, config, facts).items():
        found.append(_Value(f"settings.{name}", number, origin("pairs") if came[name] == "option" else came[name]))
    address = given["address"] or DEFAULT_ADDRESS
    tables = read_file(config).listeners
    listeners({"address": given["address"]} if given["address"] else {}, config, [])
    if tables:
        found.append(_Value(_LISTENERS, tables, "file"))
    else:
        found.append(_Value("listen", address, origin("address")))
    return found


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

    Exit code 0: `kvref serve --config FILE` accepts it; 2: it does not, with one line that names the value and the fix.
    """
    parent = click.get_current_context().parent
    with serve.make_context("serve", ["--config", str(file)], parent=parent) as context:
        _values(context)
    click.echo(f"{file}: valid")
