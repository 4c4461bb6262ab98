"""`why` of names that nothing goes by: what brings them, what is near, where was looked."""

import pytest

from modular_tf.service.configuration import Config
from tests.discovery.site_folder import install


@pytest.mark.parametrize(
    ("name", "proper", "package"),
    [
        ("gcs://bucket", "gs", "tensorflow-io-gcs-filesystem"),
        ("s3a://bucket/key", "s3", "tensorflow-io"),
        ("abfss", "az", "tensorflow-io"),
    ],
)
def test_a_well_known_scheme_is_named_with_its_package(make_service, why, name, proper, package):
    answer = why(make_service(), name)

    assert not answer.known
    assert f"scheme {proper!r} comes with the package {package}" in answer.of("package")
    assert f"modular-tf fetch {package}" in answer.text
    assert not any("did you mean" in text for text in answer.of("suggestion"))


def test_a_package_that_is_installed_and_refused_is_not_offered_again(
    plugin_file, fixture_plugin, make_service, site, why
):
    plugin_file("venv/site-packages/io/libs3.so", "unresolved-symbol")
    install(site, "tensorflow_io", record=b"io/libs3.so,,\n")
    answer = why(make_service(), "s3")

    assert not answer.known
    assert "scheme 's3' comes with the package tensorflow-io, which is installed" in answer.text
    assert any("is rejected" in text and "libs3.so" in text for text in answer.of("package"))
    assert "[LD-014]" in answer.text
    assert "--no-deps" not in answer.text
    assert "modular-tf fetch" not in answer.text
    assert any(text.startswith("to have it: `pip install s3fs`") for text in answer.of("next"))


def test_another_name_of_a_scheme_that_is_served(plugin_file, make_service, why):
    service = make_service(plugin_file("liba.so", "good", scheme="s3"))
    service.load()
    answer = why(service, "s3n://bucket")

    assert answer.of("suggestion") == ["what other programs call s3n:// is s3:// here, served by a"]
    assert answer.of("package") == []


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("FIXTURE", "there is scheme fixture; upper and lower case differ"),
        ("fixtures", "did you mean scheme fixture?"),
        ("mystore", "did you mean plugin my_store?"),
        ("cpu", "there is device type CPU; upper and lower case differ"),
        ("tensorflow_oi", "did you mean the package tensorflow-io?"),
    ],
)
def test_what_is_near_is_suggested(plugin_file, make_service, why, name, suggestion):
    service = make_service(plugin_file("libmy_store.so"), bundled=True)
    service.load()
    answer = why(service, name)

    assert not answer.known
    assert suggestion in answer.of("suggestion")


def test_every_place_is_named_with_what_it_gave(plugin_file, make_service, why, tmp_path):
    plugin_file("here/liba.so")
    config = Config(plugin_dirs=(str(tmp_path / "here"), str(tmp_path / "absent")))
    searched = why(make_service(config=config), "nonsense").of("searched")

    assert f"config: {tmp_path / 'here'} (the configuration): 1 library" in searched
    assert f"config: {tmp_path / 'absent'} (the configuration): does not exist" in searched


def test_plugins_that_serve_nothing_are_named(plugin_file, make_service, why, tmp_path):
    for number in range(7):
        plugin_file(f"lib{number}.so", "unresolved-symbol")
    problems = why(make_service(tmp_path), "nonsense").of("problem")

    assert sum("is rejected" in text for text in problems) == 5
    assert "2 more plugins serve nothing; `modular-tf list` has them" in problems


def test_devices_and_local_paths_that_nobody_serves(make_service, why):
    service = make_service(bundled=True, config=Config(visible_devices=("CPU:0",)))
    service.load()
    beyond, hidden, unknown = (why(service, name) for name in ("CPU:5", "CPU:1", "GPU"))
    local = why(make_service(), "")

    assert {beyond.known, local.known} == {False}
    assert "no device 'CPU:5'; visible devices: ['CPU:0']" in beyond.text
    assert "host_device" in beyond.text
    assert "`visible_devices` in the configuration chooses CPU:0" in hidden.text
    assert unknown.of("suggestion") == []  # CPU means something else
    assert local.of("absent") == ["no plugin serves local paths"]


def test_a_file_that_is_not_there(make_service, why, tmp_path):
    (tmp_path / "libstore.so").write_text("")
    answer = why(make_service(), tmp_path / "libstor.so")

    assert not answer.known
    assert answer.of("absent") == [f"{tmp_path / 'libstor.so'} does not exist"]
    assert answer.of("suggestion") == [f"there is {tmp_path / 'libstore.so'}"]
    answer = why(make_service(), tmp_path / "no" / "liba.so")
    assert answer.of("suggestion") == [f"nor is there a directory {tmp_path / 'no'}"]


def test_a_package_that_is_not_installed(make_service, why):
    answer = why(make_service(), "TensorFlow_IO")

    assert not answer.known
    assert (
        "distribution tensorflow-io is not installed; it brings the schemes az, har" in answer.text
    )
    assert "modular-tf fetch tensorflow-io" in answer.text
    kernels = why(make_service(), "intel_extension_for_tensorflow_lib")
    assert "is not installed; it brings kernels for processors" in kernels.text
