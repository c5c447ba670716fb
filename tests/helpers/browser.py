"""A browser without a window, in which tests open pages as a reader does: it has no network."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WANTED = "MIG_OPT_CHROMIUM"
"""Name of the variable with the path of a chromium that has to be there; else one is looked for."""

_FIGURES = """
const figures = view => view.model.type == "Figure" ? [view] : (view.child_views ?? []).flatMap(figures);
const all = [...Bokeh.index].flatMap(figures);
"""
_PLACE = """
const [number, head] = arguments;
const view = all[number], corner = view.el.getBoundingClientRect();
for (const {glyph, data_source: {data}} of view.model.renderers.filter(each => each.glyph?.type == "Quad")) {
  const index = [...data.head].indexOf(head);
  if (index < 0) continue;
  const x = (data.left[index] + data.right[index]) / 2, y = (data.top[index] + data.bottom[index]) / 2;
  return [corner.left + view.frame.x_scale.compute(x), corner.top + view.frame.y_scale.compute(y)];
}
return null;
"""
_LEGEND = """
const view = [...all[0].renderer_views.values()].find(each => each.model.type == "Legend");
return {columns: view.model.ncols, right: view.bbox.right, height: all[0].frame.bbox.height};
"""
_TEXTS = """
const found = [];
const walk = node => {
  if (node.shadowRoot) walk(node.shadowRoot);
  if (node.classList?.contains("bk-Tooltip")) found.push(node);
  for (const child of node.children ?? []) walk(child);
};
walk(document.body);
const words = node => [...(node.shadowRoot ? [node.shadowRoot] : []), ...node.childNodes]
  .map(child => child.nodeType == Node.TEXT_NODE ? child.textContent : child.tagName == "STYLE" ? "" : words(child))
  .join("");
return found.filter(node => node.getBoundingClientRect().width > 0).map(words);
"""


class Browser:
    """Debian's chromium, driven by its own chromium-driver."""

    def __init__(self, program: str, driver: str) -> None:
        webdriver = pytest.importorskip("selenium.webdriver", reason="drives the browser; the extra test has it")
        options = webdriver.ChromeOptions()
        options.binary_location = program
        # A container gives programs neither namespaces for the sandbox nor much shared memory.
        for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "window-size=1300,1000"):
            options.add_argument(f"--{argument}")
        options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND")  # whatever a page would load is not there
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))

    def open(self, path: Path) -> None:
        """Open a page and wait until everything is drawn."""
        self.driver.get(path.as_uri())
        self.wait(lambda: self.run(_FIGURES + "return all.length > 0 && all.every(each => each.frame.bbox.width > 0)"))

    def run(self, code: str, *arguments: object) -> Any:
        return self.driver.execute_script(code, *arguments)

    def wait(self, condition: Callable[[], object], seconds: float = 20.0) -> Any:
        """Return what a condition gives as soon as it is true."""
        until = time.monotonic() + seconds
        while True:
            found = condition()
            if found or time.monotonic() > until:
                assert found, "the page did not get there in time"
                return found
            time.sleep(0.05)

    def settled(self, reading: Callable[[], Any]) -> Any:
        """Return a reading as soon as it stays the same for half a second."""
        last = reading()
        while True:
            time.sleep(0.5)
            found = reading()
            if found == last:
                return found
            last = found

    def resized(self, width: int, reading: Callable[[], Any]) -> Any:
        """Return a reading in a window that is as wide as that."""
        self.driver.set_window_size(width, 1000)
        return self.settled(reading)

    def legend(self) -> dict[str, float]:
        """Return the columns and the right end of the legend of the first drawing, and how high that is inside."""
        return dict(self.run(_FIGURES + _LEGEND))

    def errors(self) -> list[str]:
        """Return the warnings and errors in the console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in {"WARNING", "SEVERE"}]

    def place(self, figure: int, head: str) -> tuple[float, float]:
        """Return the middle of a box of a drawing, in pixels of the window, which moves there."""
        self.run(_FIGURES + "all[arguments[0]].el.scrollIntoView({block: 'center'})", figure)
        return tuple(self.run(_FIGURES + _PLACE, figure, head))

    def mouse(self, kind: str, at: tuple[float, float], **more: object) -> None:
        """Let the mouse do something at a place."""
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": at[0], "y": at[1], **more})

    def dragged(self, figure: int, at: tuple[float, float], across: int) -> list[float] | None:
        """Drag a drawing by some pixels, and return what is in view then; None if it did not follow.

        On a busy machine a hand that moves too late has pressed, which is another gesture.
        """
        before, held = self.view(figure), {"button": "left", "buttons": 1, "clickCount": 1}
        self.mouse("mouseMoved", at)
        self.mouse("mousePressed", at, **held)
        for step in range(1, 11):
            self.mouse("mouseMoved", (at[0] + across * step / 10, at[1]), **held)
            time.sleep(0.02)
        self.mouse("mouseReleased", (at[0] + across, at[1]), **held)
        after = self.settled(lambda: self.view(figure))
        return None if after == before else after

    def hint(self, figure: int, head: str) -> str:
        """Point at a box, and return the only hint that comes up."""
        at = self.place(figure, head)
        self.mouse("mouseMoved", (at[0], at[1] - 1))
        self.mouse("mouseMoved", at)
        hints = self.wait(lambda: [text for text in self.run(_TEXTS) if head in text])
        assert len(hints) == 1
        return " ".join(hints[0].split())

    def view(self, figure: int) -> list[float]:
        """Return the seconds at the left and at the right edge of a drawing."""
        return self.run(_FIGURES + "const {start, end} = all[arguments[0]].model.x_range; return [start, end]", figure)

    def labels(self, figure: int) -> set[str]:
        code = "return all[arguments[0]].model.renderers.filter(each => each.glyph?.type == 'Text')"
        return set(self.run(_FIGURES + code + ".flatMap(each => [...each.data_source.data.text])", figure)) - {""}

    def colour(self, at: tuple[float, float]) -> str:
        import io

        from matplotlib.image import imread

        image = imread(io.BytesIO(self.driver.get_screenshot_as_png()))
        red, green, blue = (round(255 * value) for value in image[int(at[1]), int(at[0])][:3])
        return f"#{red:02x}{green:02x}{blue:02x}"

    def quit(self) -> None:
        self.driver.quit()


def start_browser() -> Browser:
    """Return a browser; the test that asks for one is skipped, with the reason, where there is none."""
    wanted = os.environ.get(WANTED)
    program, driver = wanted or shutil.which("chromium"), shutil.which("chromedriver")
    if not wanted and not (program and driver):
        pytest.skip("needs a browser: apt-get install chromium chromium-driver")
    assert program
    assert driver, f"{WANTED} is set, but there is no chromedriver"
    return Browser(program, driver)
