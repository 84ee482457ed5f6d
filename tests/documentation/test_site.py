"""The site builds in strict mode, and its links lead somewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest
from documentation.blocks import DOCS, ROOT
from helpers.browser import browser_or_skip, document, opened

import check_links


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the built site."""
    folder = tmp_path_factory.mktemp("site")
    words = [
        "-W",
        "--keep-going",
        "-n",
        "-q",
        "-b",
        "html",
        "-d",
        str(folder / "doctrees"),
        str(DOCS),
        str(folder / "html"),
    ]
    subprocess.run([sys.executable, "-m", "sphinx", *words], cwd=ROOT, check=True, timeout=1200)
    return folder / "html"


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_the_site_builds_without_a_warning_and_without_a_dead_link(site: Path) -> None:
    assert check_links.dead_links(site) == []
    assert 'id="KV-MAP-001"' in (site / "reference" / "specification" / "mapping.html").read_text()
    assert (site / "search.html").is_file()


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_every_chart_of_a_notebook_has_an_alternative_text(site: Path) -> None:
    pages = "".join(page.read_text() for page in (site / "explanation" / "notebooks").glob("*.html"))
    alternatives = re.findall(r'<img [^>]*\balt="([^"]*)"', pages)
    assert len(alternatives) == pages.count("<img ")
    assert alternatives
    assert [each for each in alternatives if not each or each.endswith(".png")] == []


# Elements of the text that are wider than the screen and in no box that scrolls.
WIDE = """<script>
const scrolls = (box) => box.tagName !== "ARTICLE" && (
    ["auto", "scroll"].includes(getComputedStyle(box).overflowX) || scrolls(box.parentElement));
const wide = [...document.querySelectorAll("article *")].filter(
    (each) => each.getBoundingClientRect().right > innerWidth + 1 && !scrolls(each.parentElement));
parent.postMessage(`${innerWidth}: ${wide.map((each) => each.tagName)}`, "*");
</script></body>"""
# A window of the browser has 500 pixels or more, a frame can be as narrow as a phone.
PHONE = """<title></title><iframe src="measured.html" width="390" height="800" frameborder="0"></iframe>
<script>onmessage = (event) => { document.title = event.data; };</script>"""


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "page",
    [
        "index",
        "reference/settings",
        "reference/protocol",
        "reference/generated/facts",
        "reference/specification/mapping",
        "explanation/architecture",
        "explanation/speed",
        "explanation/notebooks/01_throughput",
        "how-to/migrate-from-the-plugin",
        "reference/after-the-plugin",
        "reference/differences/mysql-8.0-and-kvref/facts",
        "reference/differences/mysql-8.0-and-kvref/meta_set",
        "reference/generated/matrix",
        "reference/specification/by-id",
        "reference/specification/contradictions",
        "explanation/notebooks/03_articles",
        "reference/specification/index",
        "reference/api/client",
        "problems",
    ],
)
def test_a_page_is_not_wider_than_a_phone(site: Path, tmp_path: Path, page: str) -> None:
    text = (site / f"{page}.html").read_text()
    assert text.count("</body>") == 1
    folder = (site / page).parent
    (folder / "measured.html").write_text(text.replace("</body>", WIDE))
    (folder / "phone.html").write_text(PHONE)
    shown = opened(browser_or_skip(), folder / "phone.html", tmp_path)
    assert re.findall(r"<title>(.*?)</title>", shown)[0] == "390: "


# What a reader types, and the page that has to be the first result.
FOUND = {
    "TLS": "how-to/restrict-access",
    "SSL": "how-to/restrict-access",
    "certificate": "how-to/restrict-access",
    "password": "how-to/restrict-access",
    "timeout": "reference/limits",
    "backup": "how-to/back-up",
    "restore": "how-to/back-up",
    "ttl": "reference/protocol",
    "expiry": "reference/protocol",
    "maxconns": "reference/settings",
    "w_batch_size": "reference/settings",
    "flush_all": "reference/protocol",
    "incr": "reference/protocol",
    "row_cache_bytes": "reference/settings",
    "KV-MAP-001": "reference/specification/mapping",
    "kv-binget-004": "reference/specification/binary_get",
    "privileges": "reference/data-sources",
    "row cache": "how-to/cache-rows-of-mysql",
    "prometheus": "reference/metrics",
    "SERVER_ERROR": "reference/errors",
    "systemd": "how-to/production",
    "Docker": "how-to/containers",
    "Django": "how-to/django",
    "MappedClient": "reference/api/client",
}


class Quiet(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/favicon.ico":  # the site has none, and the browser would complain on its console
            self.send_response(HTTPStatus.NO_CONTENT)
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, *_words: object) -> None:
        pass


@pytest.fixture(scope="module")
def search(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], list[str]]]:
    """Return a function that searches the site in a browser and returns the pages of the results."""
    browser, folder = browser_or_skip(), tmp_path_factory.mktemp("search")

    def results(query: str) -> list[str]:
        url = f"http://127.0.0.1:{server.server_port}/search.html?q={quote(query)}"
        shown = document(browser, url, folder)
        return re.findall(r'<li class="kind-\w+"><a href="([^"]*?)\.html', shown)

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield results
        finally:
            server.shutdown()


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("query", FOUND)
def test_the_search_finds_the_right_page_first(search: Callable[[str], list[str]], query: str) -> None:
    assert search(query)[:1] == [FOUND[query]]


@pytest.mark.parametrize(
    ("link", "dead"),
    [
        ("other.html", False),
        ("other.html#there", False),
        ("#here", False),
        ("https://example.org/", False),
        ("missing.html", True),
        ("other.html#missing", True),
        ("../outside.html", True),
    ],
)
def test_a_dead_link_is_found(tmp_path: Path, link: str, dead: bool) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "other.html").write_text('<p id="there"></p>')
    (site / "page.html").write_text(f'<p id="here"></p><a href="{link}">x</a>')
    (tmp_path / "outside.html").write_text("")
    assert check_links.dead_links(site) == ([f"page.html: {link}"] if dead else [])
    assert check_links.main([str(site)]) == int(dead)


@pytest.mark.nightly
def test_a_missing_file_of_the_repository_is_an_error(tmp_path: Path) -> None:
    if shutil.which("sphinx-build") is None and not (Path(sys.executable).parent / "sphinx-build").exists():
        pytest.skip("Sphinx is not installed: pip install 'kvref[docs]'")
    (tmp_path / "index.md").write_text("# Page\n\n{src}`kvref/none.py`\n")
    (tmp_path / "conf.py").write_text(
        f"import sys\nfrom pathlib import Path\nsys.path.insert(0, {str(DOCS)!r})\n"
        "from generators.roles import setup_roles\nextensions = ['myst_parser']\n"
        f"def setup(app):\n    setup_roles(app, 'https://example.org', Path({str(ROOT)!r}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", str(tmp_path), str(tmp_path / "out")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "no file 'kvref/none.py' in the repository" in done.stderr
    assert done.returncode != 0
