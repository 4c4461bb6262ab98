"""The page of a report, as a browser shows it."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from modular_tf.check.catalogue import all_checks
from modular_tf.check.level import Level
from modular_tf.check.outcome import Verdict
from modular_tf.check.report.pages import html_page
from modular_tf.check.report.report import Report
from tests.check.report.browser import Browser
from tests.check.report.outcomes import ALL_KINDS, CRASH, CRASHED, FAILED, outcome, plugin, report

pytestmark = [
    pytest.mark.beyond_core,  # which has no browser
    pytest.mark.xdist_group("browser"),  # one serves all
]

_SHOWN = "[...document.querySelectorAll({})].filter(e => e.checkVisibility()).map(e => e.innerText)"
_NASTY = (
    "<script>document.title = 'taken'</script></script></style></title>"
    "<img src=x onerror=\"document.title='taken'\"><img src='http://127.0.0.1:9/x.png'>"
    "<svg onload=\"document.title='taken'\"></svg><a href='javascript:alert(1)'>x</a>"
    "<!-- ]]> <iframe srcdoc='<script>parent.document.title=1</script>'></iframe> & \" '"
    " \x00\x1b[31m \udc80"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture
def browse(browser, tmp_path):
    """Open a page in a browser, and return what that reports of expressions."""

    def open_page(page, *expressions, scripting=True, refused=""):
        path = tmp_path / "report.html"
        path.write_bytes(page)
        seen = browser.opened(path, *expressions, scripting=scripting)
        assert seen.requests == [path.as_uri()]  # the page alone, and nothing beside it
        assert [refused in message for message in seen.messages] == [True] * bool(refused)
        return seen

    return open_page


def _shown(selector):
    return _SHOWN.format(json.dumps(selector))


def _choose(name, value):
    return f"void (filters.elements[{json.dumps(name)}].value = {json.dumps(value)})"


def test_the_page_shows_each_cause_with_what_to_do_and_folds_its_frames(browse):
    seen = browse(
        html_page(report(*ALL_KINDS)),
        "document.title",
        _shown(".cause > summary"),
        _shown(".frames li"),
        "document.querySelector('.frames > summary').click()",
        _shown(".frames li"),
        _shown(".calls li"),
    )
    title, causes, folded, _, frames, calls = seen.values

    assert title == "modular-tf check: mine"
    assert len(causes) == len(ALL_KINDS) - 2  # what passed and what was skipped is found below
    wrong = "FS-156 the bytes are not those of the file (1 check, 1 outcome)"
    assert any(wrong in cause for cause in causes)
    assert "libmine.so: does not conform" in seen.text
    assert (folded, frames, calls) == ([], [*CRASH.backtrace], [])
    assert browse(html_page(Report(()))).text.startswith("modular-tf check")


def test_what_plugins_wrote_is_text_and_runs_nothing(browse):
    nasty = replace(
        FAILED, message=_NASTY, expected=_NASTY, found=_NASTY, calls=(_NASTY,), subject=_NASTY
    )
    incident = replace(CRASH, last_call=_NASTY, backtrace=(_NASTY,), last_output=_NASTY)
    crashed = replace(CRASHED, incident=incident)
    nasty = plugin(nasty, crashed, path=f"/x/{_NASTY}.so", name=_NASTY, remarks=(_NASTY,))

    seen = browse(
        html_page(Report((nasty,)), Report((nasty,))),
        "document.title",
        "document.querySelectorAll('script, style, img, svg, iframe, a').length",
        "document.body.textContent.split('<script>document.title').length > 8",
    )

    title, elements, is_text = seen.values
    assert title.startswith("modular-tf check: <script>document.title = 'taken'</script>")
    assert (elements, is_text) == (1, True)


def test_a_script_that_got_into_the_page_would_not_run(browse):
    """The policy holds even where the escaping would not."""
    script = b"<script>document.title = 'taken'</script></body>"
    page = html_page(report(FAILED)).replace(b"</body>", script)

    seen = browse(page, "document.title", refused="to enable inline execution")

    assert seen.values == ["modular-tf check: mine"]


def test_level_and_family_filter_what_is_shown_without_scripts_too(browse):
    other = outcome("FS-237", Verdict.FAILED, message="renamed")
    family = all_checks()["FS-237"].group
    assert family != all_checks()["FS-156"].group
    low = next(check for check in all_checks().values() if check.level is Level.REGISTERS)
    lowest = outcome(low.id, Verdict.FAILED, message="not registered")
    heads = _shown(".cause > summary code")

    seen = browse(
        html_page(report(FAILED, other, lowest)),
        heads,
        _choose("family", family),
        heads,
        _choose("family", ""),
        _choose("level", f"{low.level:d}"),
        heads,
        scripting=False,
    )
    every, _, of_family, _, _, of_level = seen.values

    assert every == ["FS-156", "FS-237", low.id]
    assert of_family == ["FS-237"]
    assert of_level == [low.id]


def test_an_earlier_run_is_compared_and_everything_can_be_read_without_scripts(browse):
    before = report(replace(FAILED, verdict=Verdict.PASSED), outcome("FS-999", Verdict.PASSED))
    page = html_page(report(FAILED, CRASHED), before)

    seen = browse(page, _shown(".changes li"), scripting=False)

    assert "the bytes are not those of the file" in seen.text
    assert "crashed with SIGSEGV (signal 11) in read(" in seen.text
    assert "Since the earlier run" in seen.text
    counts = re.findall(r"(\w+) (\d)$", seen.text.partition("mine\n")[0], re.MULTILINE)
    assert counts == [("worse", "1"), ("better", "0"), ("added", "1"), ("gone", "1")]
    assert seen.values == [["FS-156 (libmine.so, mine:// raw): passed -> failed"]]
