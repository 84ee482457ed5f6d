"""What pyproject.toml cannot say: in a clone, extras install the folders of the clone.

`pip install '.[conformance]'` in a clone takes `kvref-conformance` from the folder `conformance`, because an index has
at best another state of it. Only the metadata by which an installer resolves requirements names folders. A wheel
requires the distributions by version, as pyproject.toml says, wherever it is built.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.editable_wheel import editable_wheel

ROOT = Path(__file__).resolve().parent
# Of each distribution, what it installs: itself and what it requires, by folder of the clone.
FOLDERS = {
    "kvref-conformance": {"kvref-conformance": "conformance"},
    "kvref-bench": {"kvref-conformance": "conformance", "kvref-bench": "bench"},
}


class InClone(Distribution):
    """A distribution whose extras name folders where they exist."""

    def parse_config_files(self, *arguments: Any, **options: Any) -> None:
        """Read pyproject.toml and replace requirements of the project's own distributions."""
        super().parse_config_files(*arguments, **options)
        if "dist_info" in sys.argv:  # what the hook prepare_metadata_for_build_wheel runs
            extras = self.extras_require.items()
            located = {name: [each for text in wanted for each in _located(text)] for name, wanted in extras}
            self.extras_require = self.metadata.extras_require = located


class Wheel(bdist_wheel):
    """A wheel with metadata of its own, not those by which the installer has resolved requirements."""

    def finalize_options(self) -> None:
        """Forget the folder of the installer's metadata."""
        self.dist_info_dir = None
        super().finalize_options()


class EditableWheel(editable_wheel):
    """As `Wheel`."""

    def finalize_options(self) -> None:
        """Forget the folder of the installer's metadata."""
        self.dist_info_dir = None
        super().finalize_options()


def _located(requirement: str) -> list[str]:
    """Return requirements by folder for one by version; others, and all where the folders are missing, as they are."""
    folders = {name: ROOT / folder for name, folder in FOLDERS.get(requirement.partition("==")[0], {}).items()}
    if not folders or not all((folder / "pyproject.toml").is_file() for folder in folders.values()):
        return [requirement]
    return [f"{name} @ {folder.as_uri()}" for name, folder in folders.items()]


if __name__ == "__main__":
    setup(distclass=InClone, cmdclass={"bdist_wheel": Wheel, "editable_wheel": EditableWheel})
