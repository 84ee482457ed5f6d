"""The state transfer of a Galera cluster whose nodes stand on one machine: the donor copies its folder to the joiner.

MariaDB's own scripts for that come with `mariadb-server`, whose installation would start a server of the machine's own,
and the one with rsync fails as root. See `wsrep_sst_backup` and `wsrep_sst_common` for the arguments of a script.
A joiner that lacks only the last transactions gets them by Galera itself; then the donor receives the option to bypass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

METHOD: Final = "kvref_copy"
# The joiner's answer goes to the donor as it is, which so learns where to copy to.
_SCRIPT: Final = r"""#!/bin/sh
set -eu
role= address= data= gtid= domain= bypass= parent=
while [ $# -gt 0 ]; do
  case $1 in
    --role) role=$2 ;;
    --address) address=$2 ;;
    --datadir) data=${2%/} ;;
    --gtid) gtid=$2 ;;
    --gtid-domain-id) domain=$2 ;;
    --parent) parent=$2 ;;
    --bypass) bypass=yes ;;
  esac
  shift
done
if [ "$role" = joiner ]; then
  rm -f "$data/arrived"
  echo "ready ${address%%/*}$data"
  until [ -e "$data/arrived" ]; do
    kill -0 "$parent"
    sleep 0.05
  done
  cat "$data/arrived"
  rm "$data/arrived"
  exit
fi
to=/${address#*/}
state="$gtid $domain"
if [ -z "$bypass" ]; then
  rm -f "$data/tables_flushed" "$data/sst_error"
  echo 'flush tables'
  until grep -qs : "$data/tables_flushed"; do
    if [ -e "$data/sst_error" ]; then exit 255; fi
    sleep 0.05
  done
  state=$(cat "$data/tables_flushed")
  rm "$data/tables_flushed"
  # What each node has of its own.
  find "$to" -mindepth 1 -maxdepth 1 ! -name galera.cache ! -name 'g*state.dat' -exec rm -rf {} +
  find "$data" -mindepth 1 -maxdepth 1 ! -name galera.cache ! -name 'g*state.dat' ! -name arrived \
    -exec cp -a {} "$to" \;
  echo continue
fi
echo "$state" >"$to/arrived.new"
mv "$to/arrived.new" "$to/arrived"
echo "done $state"
"""


def install(folder: Path) -> None:
    """Write the script of METHOD into a new folder, which must come first in the PATH of each node."""
    folder.mkdir()
    script = folder / f"wsrep_sst_{METHOD}"
    script.write_text(_SCRIPT)
    script.chmod(0o700)
