"""Which of several plugins serves, what they are called, and what the user decides."""

from __future__ import annotations

import pytest

from modular_tf.errors import NotFoundError, UnimplementedError
from modular_tf.service.configuration import Config
from modular_tf.service.report import State
from tests.discovery.site_folder import install

TRIED = Config(first_contact="new", load="lazy")


def _states(service):
    return {record.name: record.state.value for record in service.plugins()}


# ---- Sources ----


def test_earlier_sources_come_first_and_take_the_scheme(
    plugin_file, make_service, monkeypatch, site, tmp_path
):
    """From the last source to the first: each new one takes the scheme from the next."""
    install(site, "pkg", record=b"pkg/libdistribution.so,,\n")
    places = [
        ("user-directory", "user/libuser.so"),
        ("distribution", "venv/site-packages/pkg/libdistribution.so"),
        ("tensorflow-plugins", "venv/site-packages/tensorflow-plugins/libfolder.so"),
        ("config", "config/libconfig.so"),
        ("tf-environment", "tf/libtf.so"),
        ("environment", "env/libenv.so"),
        ("argument", "arg/libarg.so"),
    ]
    files = {source: plugin_file(path) for source, path in places}
    drop_ins = tmp_path / "data" / "modular_tf" / "plugins"
    drop_ins.parent.mkdir(parents=True)
    drop_ins.symlink_to(files["user-directory"].parent)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", str(files["tf-environment"].parent))
    monkeypatch.setenv("MODULAR_TF_PLUGIN_PATH", str(files["environment"].parent))
    service = make_service(
        files["argument"], config=Config(plugin_dirs=(str(files["config"].parent),))
    )
    service.load()
    records = [record for record in service.plugins() if record.schemes or record.reason]

    assert [record.source for record in records] == [source for source, _ in reversed(places)]
    assert [record.state for record in records] == [State.LOADED] + [State.SHADOWED] * 6
    assert service.schemes() == {"fixture": "arg"}
    assert {record.reason.rule for record in records[1:]} == {"FS-018"}


# ---- What is loaded ----


def test_only_what_is_named_is_loaded(plugin_file, make_service, tmp_path, monkeypatch):
    one = plugin_file("liba.so", scheme="aa")
    plugin_file("libb.so", "good", scheme="bb")
    service = make_service(tmp_path)
    service.load("b")
    assert _states(service) == {"a": "found", "b": "loaded"}
    service.load(one)
    assert _states(service) == {"a": "loaded", "b": "loaded"}
    monkeypatch.chdir(tmp_path)
    service.load("libb.so")
    assert service.schemes() == {"aa": "a", "bb": "b"}


def test_the_plugins_of_a_folder_may_be_named(plugin_file, make_service, tmp_path):
    service = make_service()
    plugin_file("folder/libx.so", "good", scheme="xx")
    plugin_file("folder/liby.so", "versioned-symbols", scheme="yy")
    service.load(tmp_path / "folder")

    assert service.schemes() == {"xx": "x", "yy": "y"}
    with pytest.raises(NotFoundError, match=r"name one of \['x', 'y'\]"):
        service.entry(str(tmp_path / "folder"))


@pytest.mark.parametrize("name", ["absent", "dir/absent", "/absent/lib.so", "empty", ""])
def test_a_name_that_leads_to_nothing_is_an_error(name, make_service, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    service = make_service()
    for ask in (service.load, service.entry):
        with pytest.raises(NotFoundError) as failure:
            ask(name)
        assert failure.value.message


def test_loading_again_changes_nothing_and_finds_what_is_new(plugin_file, make_service, tmp_path):
    plugin_file("liba.so", scheme="aa")
    service = make_service(tmp_path)
    first = service.load()
    assert service.load() == first
    plugin_file("libb.so", "good", scheme="bb")
    assert service.discover()["b"].state is State.FOUND
    assert service.load()["b"].state is State.LOADED
    assert service.schemes() == {"aa": "a", "bb": "b"}


def test_a_new_file_with_the_inode_of_a_deleted_one_is_new(plugin_file, make_service, tmp_path):
    old = plugin_file("libold.so", scheme="old")
    service = make_service(tmp_path)
    service.discover()
    new = old.rename(tmp_path / "libnew.so")  # the same inode, for certain
    new.write_bytes(plugin_file("elsewhere/x.so", scheme="new").read_bytes())
    service.load(new)
    assert service.schemes() == {"new": "new"}
    assert service.entry(str(new)).plugin.name == "new"
    assert service.load()["old"].state is State.FAILED
    assert service.report()["old"].reason.rule == "LD-050"


def test_discovering_runs_nothing(plugin_file, make_service, fixture_plugin, tmp_path):
    service = make_service(fixture_plugin("init-plugin-crashes"), fixture_plugin("companion"))
    report = service.discover()

    assert [record.state for record in report.plugins] == [State.FOUND] * 2
    assert service.schemes() == {}
    assert all(service.entry(record.name).library is None for record in report.plugins)


# ---- What the user decides ----


@pytest.mark.parametrize(
    ("config", "loaded"),
    [
        (Config(), {"alpha", "beta"}),
        (Config(disable=("al*",)), {"beta"}),
        (Config(enable=("alpha",)), {"alpha"}),
        (Config(enable=("*a",), disable=("b*",)), {"alpha"}),
        (Config(disable=("*",)), set()),
        (Config(disable=("ALPHA",)), {"alpha", "beta"}),
    ],
)
def test_enable_and_disable(config, loaded, plugin_file, make_service, tmp_path):
    plugin_file("libalpha.so", scheme="aa")
    plugin_file("libbeta.so", "good", scheme="bb")
    service = make_service(tmp_path, config=config)
    service.load()

    assert set(service.schemes().values()) == loaded
    for record in service.plugins():
        if record.name not in loaded:
            assert record.state is State.DISABLED
            assert (record.reason.stage, record.reason.rule) == ("policy", "LD-054")
            assert "the configuration" in record.reason.message
            assert service.entry(record.name).library is None


BUNDLED = {"": "posix_filesystem", "file": "posix_filesystem", "ram": "ram_filesystem"}
BOTH = {"fixture": "b", "fixture2": "b"}
WITH_BUNDLED = {**BUNDLED, **BOTH}


def _pin(scheme, plugin, **options):
    return {"config": Config(scheme_pins={scheme: plugin}, path="/etc/x.toml"), **options}


NO_RAM = {"bundled": True, "config": Config(disable=("ram_*",))}
# The scheme of plugin a, the service's options, and who serves what then; b has two schemes.
SERVED = {
    "the first, and the other the rest": ("fixture", {}, {"fixture": "a", "fixture2": "b"}),
    "a pin": ("fixture", _pin("fixture", "b"), BOTH),
    "a pin to nobody": ("fixture", _pin("fixture", "c"), {"fixture2": "b"}),
    "of no bundled one": ("ram", {}, {"ram": "a", **BOTH}),
    "of a disabled bundled one": ("ram", NO_RAM, {**WITH_BUNDLED, "ram": "a"}),
    **{
        f"of a bundled one by a pin, {scheme!r}": (
            scheme,
            _pin(scheme, "a", bundled=True),
            {**WITH_BUNDLED, scheme: "a"},
        )
        for scheme in BUNDLED
    },
}


@pytest.mark.parametrize("case", SERVED)
def test_who_serves_a_scheme(case, plugin_file, make_service, tmp_path):
    scheme, options, schemes = SERVED[case]
    plugin_file("liba.so", scheme=scheme)
    plugin_file("libb.so", "two-schemes", scheme="fixture")
    service = make_service(tmp_path, **options)
    report = service.load()

    assert service.schemes() == schemes
    assert report["b"].state is State.LOADED
    assert report["a"].state is (State.LOADED if "a" in schemes.values() else State.SHADOWED)
    assert all(reason.rule == "FS-018" for name in "ab" for reason in report[name].reasons)


def test_a_pin_is_the_reason_and_named_where_nobody_serves(plugin_file, make_service):
    service = make_service(plugin_file("liba.so"), **_pin("fixture", "b"))

    assert "pinned to 'b' in /etc/x.toml" in service.load()["a"].reason.message
    with pytest.raises(UnimplementedError, match="fixture"):
        service.filesystem("fixture")


@pytest.mark.parametrize("scheme", BUNDLED)
def test_schemes_of_bundled_plugins_are_not_taken_by_presence(
    scheme, plugin_file, make_service, tmp_path
):
    mine = plugin_file("libmine.so", scheme=scheme)
    service = make_service(mine if scheme == "ram" else tmp_path, bundled=True)
    record = service.load()["mine"]

    assert service.schemes() == BUNDLED
    assert (record.state, record.reason.rule) == (State.SHADOWED, "FS-018")
    assert f"scheme {scheme!r} of mine belongs to {BUNDLED[scheme]}" in record.reason.message
    assert f'scheme_pins = {{ "{scheme}" = "mine" }}' in record.reason.remedy
    assert any("belongs to" in line for line in service.why(scheme).lines)


@pytest.mark.parametrize("scheme", ["", "ram"])
def test_what_names_only_the_file_says_how_to_name_it_for_the_scheme(
    scheme, plugin_file, make_service
):
    """Whoever loads a file may not know that it offers plain local paths too."""
    mine = plugin_file("libmine.so", scheme=scheme)
    next_step = f'scheme_pins = {{ "{scheme}" = "mine" }}'

    for _ in range(2):  # the second knows what the trial of the first found
        service = make_service(bundled=True, config=TRIED)
        reason = service.load(mine)["mine"].reason
        assert service.schemes() == {}
        with pytest.raises(UnimplementedError) as by_scheme:
            service.filesystem(scheme)
        with pytest.raises(UnimplementedError) as by_uri:
            service.filesystem_for(f"{scheme}://x" if scheme else "/x")

        for text in (reason.remedy, str(by_scheme.value), str(by_uri.value)):
            assert next_step in text
