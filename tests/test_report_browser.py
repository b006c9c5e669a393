"""The page in a real browser: quiet, without requests, and nothing overlapping or cut off."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import factories
from nearfar.machine.topology import machine_from
from nearfar.records.run import Run, Sections
from nearfar.report.html.page import write_page

MACHINES = Path(__file__).parent / "fixtures" / "machines"
_BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    _BROWSER is None, reason="no chromium: the page was NOT looked at in a browser"
)

WIDE, NARROW = (1400, 2600), (390, 2600)
_DARK = "--blink-settings=preferredColorScheme=0"

#: Run inside a copy of the page: says what sticks out, and which labels lie on one another.
_PROBE = """
<script>
addEventListener("load", () => {
  document.querySelectorAll("details").forEach(d => d.open = true);
  const complaints = [];
  const room = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > room)
    complaints.push(`page ${document.documentElement.scrollWidth} in ${room}`);
  let shown = 0;
  for (const svg of document.querySelectorAll("figure svg")) {
    if (!svg.getBoundingClientRect().width) continue;
    shown++;
    const card = svg.closest("figure").getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].filter(t => t.textContent.trim()
      && getComputedStyle(t).opacity !== "0");
    const boxes = texts.map(t => [t.textContent, t.getBoundingClientRect()]);
    for (const [name, box] of boxes)
      if (box.left < card.left || box.right > card.right || box.bottom > card.bottom)
        complaints.push(`cut off: ${name}`);
    boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
      const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
      const down = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      if (across > 1 && down > 4) complaints.push(`overlap: ${a} on ${b}`);
    }));
  }
  for (const box of document.querySelectorAll("#changes .scroll, #advice .scroll"))
    if (box.scrollWidth > box.clientWidth + 1)
      complaints.push(`table ${box.scrollWidth} in ${box.clientWidth}`);
  parent.postMessage(JSON.stringify({shown, complaints}), "*");
});
</script>
"""

_FRAME = """<!DOCTYPE html><title>frame</title><body style="margin:0">
<iframe src="{page}" width="{width}" height="{height}" style="border:0"></iframe>
<script>addEventListener("message", e => document.body.append("RESULT" + e.data + "END"))</script>
"""


class Browser:
    """Headless Chromium with a profile of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def run(
        self, page: Path, size: tuple[int, int], *options: str, fragment: str = ""
    ) -> subprocess.CompletedProcess[str]:
        width, height = size
        if width < 500:  # no window is narrower: a frame is
            page = self.frame(page, size)
        assert _BROWSER is not None
        command = [
            _BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--hide-scrollbars",
            f"--user-data-dir={self.directory / 'profile'}",
            "--enable-logging=stderr",
            "--v=0",
            f"--window-size={width},{height}",
            *options,
            page.as_uri() + fragment,
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)

    def sheets(self, page: Path) -> int:
        """Number of sheets of paper that the page takes."""
        file = self.directory / f"{page.stem}.pdf"
        self.run(page, WIDE, f"--print-to-pdf={file}")
        return len(re.findall(rb"/Type\s*/Page\b", file.read_bytes()))

    def frame(self, page: Path, size: tuple[int, int]) -> Path:
        frame = self.directory / f"frame-{page.stem}-{size[0]}.html"
        frame.write_text(_FRAME.format(page=page.as_uri(), width=size[0], height=size[1]))
        return frame

    def look(
        self, page: Path, size: tuple[int, int], *options: str
    ) -> tuple[bytes, list[str], set[str]]:
        """Screenshot, console lines, and addresses that the page asked for."""
        picture, log = self.directory / "shot.png", self.directory / "net.json"
        done = self.run(page, size, f"--screenshot={picture}", f"--log-net-log={log}", *options)
        console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        return picture.read_bytes(), console, _asked(log)

    def measure(self, page: Path, size: tuple[int, int]) -> tuple[int, list[str]]:
        """Number of visible pictures, and defects of the layout, all details unfolded."""
        copy = self.directory / f"probe-{page.name}"
        text = re.sub(r"<meta http-equiv=[^>]*>", "", page.read_text())
        copy.write_text(text.replace("</body>", f"{_PROBE}</body>"))
        frame = self.frame(copy, size)
        done = self.run(frame, (1600, 1200), "--dump-dom", "--virtual-time-budget=4000")
        match = re.search(r"RESULT(\{.*\})END", done.stdout)
        assert match is not None, done.stderr
        result = json.loads(
            match[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        )
        return result["shown"], result["complaints"]


def _asked(log: Path) -> set[str]:
    """Addresses that a page asked for, files left out.

    The browser's own errands (updates, clock) are in the log too: they start from no origin.
    """
    asked = [event.get("params", {}) for event in json.loads(log.read_text())["events"]]
    pages = [p for p in asked if p.get("initiator", "not an origin") != "not an origin"]
    return {p["url"] for p in pages if not p["url"].startswith(("file:", "data:"))}


def _on(saved: Path) -> Run:
    """A run on a recorded machine of several nodes."""
    machine = machine_from(saved).model_dump(mode="json", exclude_none=True)
    sections = Sections(latency=factories.latency(("dram", "numa:1")))
    return factories.study(machine=machine, sections=sections)


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    return Browser(tmp_path)


@pytest.fixture(scope="module")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}
    directory = tmp_path_factory.mktemp("pages")

    def page(name: str) -> Path:
        if name not in made:
            saved = MACHINES / name
            run: Run = _on(saved) if saved.exists() else getattr(factories, name)()
            earlier = [(Path("nearfar-runs/earlier"), factories.earlier())]
            made[name] = write_page(directory / f"{name}.html", run, earlier)
        return made[name]

    return page


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("scheme", [(), (_DARK,)], ids=["light", "dark"])
def test_page_opens_quietly(
    browser: Browser, page_of: Callable[[str], Path], size: tuple[int, int], scheme: tuple[str, ...]
) -> None:
    picture, console, asked = browser.look(page_of("study"), size, *scheme)
    assert console == []
    assert asked == set()
    empty = browser.directory / "empty.html"
    empty.write_text("<!DOCTYPE html><title>empty</title>")
    blank, _, _ = browser.look(empty, size)
    assert len(picture) > 5 * len(blank)


def test_hostile_record_stays_quiet(browser: Browser, page_of: Callable[[str], Path]) -> None:
    _, console, asked = browser.look(page_of("hostile"), WIDE)
    assert (console, asked) == ([], set())


def test_dark_is_another_picture(browser: Browser, page_of: Callable[[str], Path]) -> None:
    light, _, _ = browser.look(page_of("interrupted"), WIDE)
    dark, _, _ = browser.look(page_of("interrupted"), WIDE, _DARK)
    assert light != dark


@pytest.mark.parametrize(
    ("name", "pictures", "width"),
    [
        *(("study", 16, width) for width in (1400, 900, 700, 390, 320)),
        *(("oversubscribed", 6, width) for width in (1400, 390)),
        *(("allocators", 4, width) for width in (1400, 390)),
        ("interrupted", 2, 390),
        *(("advised", 2, width) for width in (1200, 400)),
        *(("close_knees", 2, width) for width in (1400, 390, 320)),
        *(
            (name, 2, width)
            for name in ("optane-appdirect", "cxl-expander")
            for width in (1400, 320)
        ),
    ],
)
def test_nothing_overlaps_or_is_cut_off(
    browser: Browser, page_of: Callable[[str], Path], name: str, pictures: int, width: int
) -> None:
    assert browser.measure(page_of(name), (width, 1200)) == (pictures, [])


def test_a_link_of_the_contents_bar_opens_its_topic(
    browser: Browser, page_of: Callable[[str], Path]
) -> None:
    done = browser.run(page_of("study"), WIDE, "--dump-dom", fragment="#topic-bandwidth")
    found = re.findall(r'class="topic"( open="")?>.*?id="topic-([\w-]+)"', done.stdout, re.DOTALL)
    assert [slug for opened, slug in found if opened] == ["machine", "bandwidth"]


def test_paper_has_the_topics_that_are_folded_on_screen(
    browser: Browser, page_of: Callable[[str], Path]
) -> None:
    text = page_of("study").read_text()
    unfolded = browser.directory / "unfolded.html"
    unfolded.write_text(text.replace('class="topic">', 'class="topic" open>'))
    assert unfolded.read_text() != text
    assert browser.sheets(page_of("study")) == browser.sheets(unfolded) > 8


def test_the_checks_find_their_errors(browser: Browser) -> None:
    page = browser.directory / "loud.html"
    page.write_text(
        "<!DOCTYPE html><title>loud</title><body><img src='http://127.0.0.1:9/x.png'>"
        "<script>console.error('loud')</script><figure style='width:50px'>"
        "<svg width=500 height=50><text x=0 y=20>one</text><text x=2 y=20>two</text>"
        "<text x=400 y=20>far</text></svg></figure><div style='width:3000px'>wide</div></body>"
    )
    _, console, asked = browser.look(page, WIDE)
    assert any("loud" in line for line in console)
    assert asked == {"http://127.0.0.1:9/x.png"}
    shown, complaints = browser.measure(page, WIDE)
    assert shown == 1
    assert {"cut off: far", "overlap: one on two"} <= set(complaints)
    assert any(complaint.startswith("page ") for complaint in complaints)
