"""Every row of the table of known defects is complete, and names a test and a class that exist."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli

from modular_tf.filesystem.workarounds import store_class
from modular_tf.filesystem.workarounds.gcs import Gcs
from modular_tf.filesystem.workarounds.s3 import S3
from modular_tf.filesystem.workarounds.store import Store
from modular_tf.loading.published import known_stores, stores_of

ROOT = Path(__file__).parents[2]
MEASURED = set(range(1, 19))  # the list that the table began as
IO, GCS = "libtensorflow_io_plugins.so", "libtensorflow_io_gcs_filesystem.so"
TABLE = tomli.loads((ROOT / "modular_tf/loading/known_defects.toml").read_text())
DEFECTS = [defect for store in TABLE["store"] for defect in store["defect"]]


def test_each_defect_names_its_test():
    for defect in DEFECTS:
        path, _, name = defect["test"].partition("::")
        row = f'"{defect["id"]}": ' if "[" in name else f"\ndef {name}("
        assert name in {f"DEFECTS[{defect['id']}]", f"test_{defect['id'].replace('-', '_')}"}
        assert row in (ROOT / path).read_text(), defect["id"]
        assert defect["defect"].endswith(".")


def test_names_are_unique_and_every_measured_defect_has_a_row():
    names = [defect["id"] for defect in DEFECTS]
    assert len(set(names)) == len(names)
    assert {defect["sheet"] for defect in DEFECTS if "sheet" in defect} == MEASURED


def test_every_scheme_of_a_store_has_its_class():
    for store in known_stores():
        for scheme in store.schemes:
            found = store_class(f"/anywhere/{store.library.replace('*', '.2')}", scheme)
            assert found is not None
            assert issubclass(found, Store)
            module = found.__module__.rpartition(".")[2]
            assert store.implementation == f"{module}.{found.__name__}"


def test_a_plugin_that_nobody_knows_has_no_class():
    assert store_class("/anywhere/libother.so", "s3") is None
    assert store_class(f"/anywhere/{IO}", "gs") is None
    assert store_class(f"/anywhere/{IO}", "ftp") is None
    assert stores_of(f"/anywhere/{GCS}")


def test_a_setting_that_the_plugin_can_live_with_stays_the_users():
    environment = {"GCS_STAT_CACHE_MAX_AGE": "7"}
    assert Gcs.prepare_environment(environment, guarded=False) == []
    assert environment == {**Gcs.defaults, **Gcs.forced, "GCS_STAT_CACHE_MAX_AGE": "7"}


@pytest.mark.parametrize("guarded", [True, False])
def test_single_requests_are_for_plugins_that_they_do_not_crash(guarded):
    single = "S3_DISABLE_MULTI_PART_DOWNLOAD"
    environment = {"AWS_ENDPOINT_URL": "http://store"}

    assert S3.prepare_environment(environment, guarded=guarded) == []
    assert environment["S3_ENDPOINT"] == "http://store"
    assert (single in environment) == guarded

    environment[single] = "1"
    changes = [] if guarded else [f"{single} was unset, from '1'"]
    assert S3.prepare_environment(environment, guarded=guarded) == changes
    assert (single in environment) == guarded


_HERE = "endpoint_url = http://store\n"
_OF_SERVICE = f"[default]\nservices = mine\n[services mine]\n%s =\n  {_HERE}"


@pytest.mark.parametrize(
    ("config", "environment", "profile"),
    [
        (f"[default]\n{_HERE}", {}, "default"),
        (f"[profile work]\n{_HERE}", {"AWS_PROFILE": "work"}, "work"),
        (f"[profile work]\n{_HERE}", {}, ""),
        (_OF_SERVICE % "s3", {}, "default"),
        (_OF_SERVICE % "ec2", {}, ""),
        (f"[default]\n{_HERE}", {"S3_ENDPOINT": "http://other"}, ""),
        (f"[default]\n{_HERE}", {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, ""),
        ("no section\n", {}, ""),
        (None, {}, ""),
    ],
)
def test_an_endpoint_in_a_profile_is_reported(tmp_path, config, environment, profile):
    file = tmp_path / "config"
    if config is not None:
        file.write_text(config)
    found = S3.unread_setting({"AWS_CONFIG_FILE": str(file), **environment})

    expected = (
        f"endpoint_url of the profile {profile!r} in {file} is not read by the plugin; set"
        " S3_ENDPOINT to its value"
    )
    assert found == (expected if profile else "")
