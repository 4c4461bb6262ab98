"""`why` of plugins, files, folders, schemes, devices and packages that are there."""

import re

import pytest

from modular_tf.rules import Violation
from modular_tf.service.configuration import Config
from modular_tf.service.report import Outcome
from modular_tf.service.why import Fact
from tests.discovery.site_folder import install

TRIED = Config(first_contact="new")


class PythonDevices:
    device_type = "FIXTURE"
    platform = "PYTHON"
    priority = 300

    def device_count(self):
        return 2


# ---- Plugins ----


def test_a_plugin_has_its_way_explained(plugin_file, make_service, why):
    plugin = plugin_file("liba.so")
    service = make_service(plugin, config=TRIED)
    service.load()
    answer = why(service, "a")
    first, *_ = answer.facts

    assert first == Fact("plugin a", "state", f"plugin a is loaded: {plugin}")
    assert {fact.subject for fact in answer.facts} == {"plugin a"}
    assert answer.of("next") == ["its library is mapped at the first use of what it serves"]
    assert answer.of("serves") == ["fixture://"]
    assert answer.of("source") == ["found by argument: argument"]
    for stage in ("trust", "probe", "first-contact", "register"):
        (text,) = answer.of(stage)
        assert text.startswith("passed: "), stage


def test_what_keeps_a_plugin_from_serving_and_what_it_is_warned_of(
    plugin_file, fixture_plugin, make_service, why
):
    paths = [*map(fixture_plugin, ("unresolved-symbol", "filesystem-api")), plugin_file("liba.so")]
    service = make_service(*paths, config=Config(disable=("a*",)))
    service.load()
    refused, warned, disabled = (why(service, path) for path in paths)
    (symbol,) = (fact for fact in refused.facts if fact.rule == "LD-014")

    assert (symbol.stage, bool(symbol.remedy)) == ("probe", True)
    assert "TF_NobodyDefinesThis" in symbol.text
    assert refused.of("register") == []
    assert "plugin a is disabled" in disabled.text
    assert disabled.of("policy") == ["'a' matches 'a*' in `disable` of the configuration"]
    warnings = [warning.message for one in service.plugins() for warning in one.warnings]
    assert warned.of("warning") == warnings != []


def test_a_plugin_that_took_a_process_down(fixture_plugin, make_service, why):
    path = fixture_plugin("init-plugin-crashes")
    service = make_service(path, config=TRIED)
    service.load()
    name = service.plugins()[0].name
    answer = why(service, name)
    found = answer.of("quarantine")

    assert f"plugin {name} is quarantined" in answer.text
    since = r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d"
    assert any(re.fullmatch(since, text) for text in found)
    assert "ended by SIGSEGV" in found
    assert any(text.startswith("the last call was ") for text in found)
    assert any(f"`modular-tf quarantine retry {name}`" in text for text in answer.of("next"))
    later = make_service(path, config=TRIED)  # as in the next process
    later.load()
    assert "ended by SIGSEGV" in why(later, path).of("quarantine")


@pytest.mark.parametrize("reasons", [("FS-012", None), (None, "FS-012"), (None,), ("FS-012",)])
def test_where_no_reason_has_a_remedy_inspect_is_named(plugin_file, make_service, why, reasons):
    service = make_service(plugin_file("liba.so"))
    service.discover()
    failed = Outcome(reasons=tuple(Violation(rule, "it was bad", "init") for rule in reasons))
    service.entry("a").change(lambda plugin: plugin._replace(outcome=failed))

    told = ["`modular-tf -vv inspect a` shows what it logs and what its bytes say"]
    assert why(service, "a").of("next") == (told if reasons == (None,) else [])


def test_twins_namesakes_and_links(plugin_file, make_service, why, tmp_path):
    plugin = plugin_file("one/liba.so")
    other = plugin_file("two/liba.so")
    link = tmp_path / "liblink.so"
    link.symlink_to(plugin)
    assert f"a link to {plugin}" in why(make_service(link), "link").of("source")
    service = make_service(plugin, other, link)
    service.load()
    answer = why(service, link)

    assert answer.known
    assert answer.of("twin") == [
        f"the same file again, not listed: {link} (argument: argument)",
        f"another file of that name is a#2, shadowed: {other}",
    ]
    shadowed = why(service, "a#2")
    assert f"another file of that name is a, loaded: {plugin}" in shadowed.of("twin")
    assert "scheme 'fixture' of a#2 is taken by a" in shadowed.text


def test_python_contributions(make_service, why):
    class Store:
        def path_exists(self, path):
            """It does."""

    service = make_service()
    service.register_filesystem("mine", Store())
    answer = why(service, "mine")

    assert answer.known
    assert any("registered by Python code" in text for text in answer.of("serves"))
    name = service.plugins()[0].name
    assert f"plugin {name} is loaded: registered by Python code" in why(service, name).text


# ---- Files and folders ----


def test_a_file_that_nobody_searches_by_any_path(plugin_file, make_service, why, monkeypatch):
    plugin = plugin_file("elsewhere/liba.so")
    answer = why(make_service(), plugin)

    assert answer.of("source") == ["no source searches it; it is known because it was named"]
    assert "MODULAR_TF_PLUGIN_PATH" in answer.text
    configured = make_service(config=Config(plugin_dirs=(str(plugin.parent),)))
    for service in (configured, make_service(plugin), make_service(plugin.parent)):
        assert "no source searches" not in why(service, plugin).text
    monkeypatch.chdir(plugin.parent)
    for name in ("liba.so", "../elsewhere/liba.so"):
        assert f"plugin a is found: {plugin}" in why(make_service(), name).text


def test_a_folder_and_one_that_nobody_searches(plugin_file, make_service, why, tmp_path):
    folder = plugin_file("here/liba.so").parent
    plugin_file("here/libb.so", "unresolved-symbol")
    (folder / "libb.dll").touch()
    service = make_service(folder)
    service.load()
    answer = why(service, folder)

    assert answer.facts[0].text == f"{folder} is a directory with 2 libraries"
    good, bad = (fact for fact in answer.facts if fact.stage == "holds")
    assert good.text == f"plugin a is loaded: {folder / 'liba.so'}"
    assert bad.text.startswith(f"plugin b is rejected: {folder / 'libb.so'}: ")
    assert (bad.rule, bool(bad.remedy)) == ("LD-014", True)
    assert answer.of("source") == ["searched as argument: argument"]
    assert why(make_service(), folder).of("source") == ["no source searches it"]

    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "libb.dll").touch()
    (text,) = why(make_service(), tmp_path / "empty").of("next")
    assert text == "of a directory, files that end in .so or .so.N count; it has 1 others"


# ---- Schemes and devices ----


def test_a_contest_for_a_scheme(plugin_file, make_service, why, tmp_path):
    plugin_file("liba.so")
    plugin_file("libb.so")
    service = make_service(tmp_path)
    service.load()
    answer = why(service, "fixture://host/path")
    (contest,) = (fact for fact in answer.facts if fact.stage == "contest")

    assert answer.facts[0].text == "scheme 'fixture' is served by a"
    assert (contest.text, contest.rule) == ("b: scheme 'fixture' of b is taken by a", "FS-018")
    assert answer.of("next") == ["to choose another: scheme_pins = { 'fixture' = NAME }"]
    assert why(service, "a").of("contest") == ["b: scheme 'fixture' of b is taken by a"]
    assert why(service, "b").of("contest") == []


def test_a_pin(plugin_file, make_service, why, tmp_path):
    plugin_file("libb.so")
    plugin_file("libc.so", "good", scheme="other")
    plugin_file("libd.so", "unresolved-symbol")
    for pinned, text in {
        "b": "",
        "c": ", which does not offer it",
        "d": ", which is rejected",
        "e": ", and there is no plugin of that name",
    }.items():
        service = make_service(tmp_path, config=Config(scheme_pins={"fixture": pinned}))
        service.load()
        answer = why(service, "fixture")

        assert answer.known
        assert f"pinned to {pinned!r} in the configuration{text}" in answer.of("contest")
        assert ("served by b" in answer.text) is (pinned == "b")
        assert any("is pinned to" in line for line in answer.of("contest")) is (pinned != "b")


def test_a_contest_for_a_device_type(device_file, make_service, why):
    config = Config(priorities={"FIXTURE:PYTHON": 310}, first_contact="never")
    service = make_service(device_file("liba.so"), config=config)
    service.load()
    service.register_device_factory(PythonDevices())
    answer = why(service, "FIXTURE")
    winner, *others = (fact for fact in answer.facts if fact.subject == "device type FIXTURE")

    assert winner.text.startswith("device type FIXTURE: PythonDevices (platform PYTHON, priority 3")
    assert winner.text.endswith("is serving")
    assert any(fact.rule == "SE-052" and "a (platform" in fact.text for fact in others)
    assert "priority 310 for FIXTURE:PYTHON is set in the configuration" in answer.of("contest")
    assert any("not a (platform" in text for text in why(service, "PythonDevices").of("contest"))
    assert why(service, "a").of("contest") == []


@pytest.mark.parametrize("name", ["FIXTURE:1", "/physical_device:FIXTURE:1"])
def test_a_device(make_service, why, name):
    service = make_service()
    service.register_device_factory(PythonDevices())
    answer = why(service, name)

    assert answer.facts[0] == Fact(
        f"device {name}", "state", f"device {name} is FIXTURE:1, served by PythonDevices"
    )
    assert len(answer.of("serves")) == 1


# ---- Packages ----


def test_a_package_with_a_plugin(plugin_file, make_service, site, why):
    plugin = plugin_file("venv/site-packages/store/liba.so")
    install(site, "my_store", record=b"store/liba.so,,\n")
    service = make_service()
    answer = why(service, "My.Store")

    assert answer.facts[-2].text == f"distribution my-store is installed: my-store 1.0, {site}"
    assert answer.of("holds") == [f"plugin my-store is found: {plugin}"]
    service.discover()
    (origin,) = why(service, plugin).of("source")
    assert origin == "found by distribution: my-store 1.0, of distribution my-store"


def test_a_package_without_a_plugin(make_service, site, why):
    install(site, "no_store", record=b"store/data.txt,,\n")
    answer = why(make_service(), "no-store")

    assert answer.known
    assert "it brings no plugin" in answer.text
    # Our own package brings what is bundled.
    holds = why(make_service(bundled=True), "Modular_TF").of("holds")

    bundled = [text.split()[1] for text in holds]
    assert bundled == ["host_device", "posix_filesystem", "ram_filesystem"]


def test_a_device_type_without_devices_or_a_count_is_shown_as_such(device_file, make_service, why):
    without = PythonDevices()
    without.device_count = lambda: 0
    service = make_service()
    service.register_device_factory(without)
    of_type, of_plugin = why(service, "FIXTURE"), why(service, "PythonDevices")
    assert "is serving, but has no device here" in of_type.text
    assert of_plugin.of("problem") == ["it serves no device: it has none of type FIXTURE"]
    assert of_plugin.of("serves") == []

    service = make_service(device_file("liba.so"), config=Config(load="lazy"))
    service.load()
    told = "device type FIXTURE"
    uncounted = f"{told}, whose devices are counted when one is first wanted"
    assert why(service, "a").of("serves") == [uncounted]
    service.devices()
    assert why(service, "a").of("serves") == [told]
