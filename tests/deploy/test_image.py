"""The steps of the Dockerfile, run in a bare Debian that debootstrap makes, and the image's own health check."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from deploy.manifests import ROOT, Stage, dockerfile
from helpers.bare_debian import bare_debian, environment
from helpers.waiting import until

from kvref_testbed.targets.needs import tool

pytestmark = [pytest.mark.nightly, pytest.mark.live, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the image; return the folder that holds its files."""
    folder = tmp_path_factory.mktemp("image")
    bare = folder / "bare"
    bare_debian(bare)
    built: dict[str, Path] = {}
    for stage in dockerfile():
        root = built[stage.name] = folder / f"stage-{stage.name}"
        subprocess.run(["cp", "-a", str(bare), str(root)], check=True)
        build(stage, root, built)
    return built[dockerfile()[-1].name]


def build(stage: Stage, root: Path, built: dict[str, Path]) -> None:
    """Run the steps of a stage in its folder."""
    for kind, argument in stage.steps:
        if kind == "RUN":
            words = [tool("chroot"), str(root), "/bin/sh", "-c", argument]
            done = subprocess.run(
                words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
            )
            assert done.returncode == 0, f"{argument}\n{done.stdout[-3000:]}"
        elif kind == "COPY":
            copy(argument, root, built)


def copy(argument: str, root: Path, built: dict[str, Path]) -> None:
    """Copy files of the repository, or of an earlier stage."""
    *words, target = argument.split()
    source = ROOT
    if words[0].startswith("--from="):
        source = built[words.pop(0).partition("=")[2]]
    for word in words:
        goal = root / target.lstrip("/")
        if (source / word.lstrip("/")).is_dir():
            shutil.copytree(source / word.lstrip("/"), goal, symlinks=True, dirs_exist_ok=True)
        else:
            goal.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / word, goal)


@contextmanager
def container(root: Path, *more: str) -> Iterator[tuple[subprocess.Popen[bytes], list[str]]]:
    """Run the image, with further arguments; return the process, and the words that run commands in it."""
    stage = dockerfile()[-1]
    user = next(argument for kind, argument in stage.steps if kind == "USER")
    enter = [tool("chroot"), f"--userspec={user}:{user}", str(root)]
    words = [*enter, *stage.words("ENTRYPOINT"), *stage.words("CMD"), *more]
    with subprocess.Popen(words, env=stage.environment, stderr=subprocess.DEVNULL) as process:
        try:
            yield process, enter
        finally:
            process.kill()


def check(enter: list[str]) -> int:
    """Return the exit code of the image's health check."""
    stage = dockerfile()[-1]
    return subprocess.run(
        [*enter, *stage.words("HEALTHCHECK")], env=stage.environment, stderr=subprocess.DEVNULL, check=False
    ).returncode


def test_the_image_serves_keeps_its_items_and_stops(image: Path) -> None:
    for reply in (b"END\r\n", b"VALUE a 0 1\r\nx\r\nEND\r\n"):  # the volume outlives the container
        with container(image) as (process, enter):
            until(lambda: check(enter) == 0)
            with socket.create_connection(("127.0.0.1", 11211), timeout=5) as client:
                client.sendall(b"get a\r\n")
                assert client.recv(100) == reply
                client.sendall(b"set a 0 0 1\r\nx\r\n")
                assert client.recv(100) == b"STORED\r\n"
            process.terminate()
            assert process.wait(timeout=20) == 0
            assert check(enter) != 0
