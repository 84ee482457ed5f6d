"""Yardsticks: what a restructuring must not change, and what it should make smaller, recorded and compared.

    python -m yardsticks record --only lines,trace      # into yardsticks/records; without --only: everything
    python -m yardsticks compare                        # measure again and compare with the records
    python -m yardsticks compare --only verdicts --target kvref-sqlite

Each yardstick is one module with one function `measure`, which returns what `json` can write, and one function
`differences`, which compares two of them:

* `verdicts.py`: the verdict of every case of the suite, by target. It must not change.
* `cases.py`: the exported cases of `kvref spec --json`, by profile. They must not change.
* `trace`: calls, functions, files and file changes of one command in the running server. They have budgets.
* `lines.py`: files and lines of Python by package.
* `coverage.py`: branch coverage by package, of the last `.ci/part coverage`.
* `tiers.py`: CPU and wall time of each tier of the tests.
* `speed.py`: `bench/pairs.py` and `bench/micro.py`, with the machine (`machine.py`). Nothing else may run meanwhile.
* `instructions.py`: instructions of the processor for each operation, by case of `bench/micro.py`.
"""
