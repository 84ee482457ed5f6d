"""Write over_sql.json and the table of the documentation from fresh reports.

python -m kvref_conformance.reports.results DIR docs/reference/conformance-results.md
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from kvref.errors import SuiteError
from kvref_conformance.reports import results


def main(reports: str, readme: str) -> None:
    """Write both, or end with the reason why not."""
    page = Path(readme)
    try:
        record = results.collect(Path(reports))
        text = results.filled(page.read_text(encoding="utf-8"), record)
    except SuiteError as error:
        sys.exit(f"results: {error}")
    results.PATH.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    page.write_text(text, encoding="utf-8")


main(*sys.argv[1:])
