"""Write an sdist again as the same commit always gives it: setuptools puts the time and the owner of the build into it.

Usage: repack.py FILE.tar.gz, with SOURCE_DATE_EPOCH set.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import tarfile
from pathlib import Path


def repack(path: Path, moment: int) -> None:
    """Sort the members of a tar.gz and give all of them the same time, owner and rights.

    Args:
        path: of the file, which is replaced.
        moment: seconds since 1970.
    """
    plain = io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda each: each.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = moment, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            # A time with fractions stands in a header of its own.
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, moment) as packed:
        packed.write(plain.getvalue())


if __name__ == "__main__":
    repack(Path(sys.argv[1]), int(os.environ["SOURCE_DATE_EPOCH"]))
