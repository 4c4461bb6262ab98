"""Every row of the table of known defects says what it must, and names a test that is there."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path

import pytest

from modular_tf.loading.known_defects import defects_of, known_defects, workarounds_for
from modular_tf.loading.unread_settings import unread_setting
from modular_tf.loading.workarounds import NO_WORKAROUNDS, Workarounds, typed_workarounds

ROOT = Path(__file__).parents[2]
MEASURED = set(range(1, 19))  # the list that the table began as
IO, GCS = "libtensorflow_io_plugins.so", "libtensorflow_io_gcs_filesystem.so"


@pytest.mark.parametrize("row", known_defects(), ids=lambda row: row.id)
def test_the_row_names_a_test_of_its_own_name(row):
    path, _, function = row.test.partition("::")
    assert function == f"test_{row.id.replace('-', '_')}"
    tree = ast.parse((ROOT / path).read_text())
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", known_defects(), ids=lambda row: row.id)
def test_the_row_says_what_the_host_does(row):
    assert row.defect.endswith(".")
    assert row.workaround or row.always
    assert row.schemes


def test_names_are_unique_and_every_measured_defect_has_a_row():
    names = [row.id for row in known_defects()]
    assert len(set(names)) == len(names)
    assert {row.sheet for row in known_defects()} - {None} == MEASURED


@pytest.mark.parametrize(
    "scheme", ["az", "http", "https", "s3", "hdfs", "viewfs", "har", "oss", "gs"]
)
def test_the_rows_of_a_scheme_fit_together(scheme):
    library = GCS if scheme == "gs" else IO
    assert workarounds_for(f"/anywhere/{library}", scheme) != NO_WORKAROUNDS
    assert defects_of(f"/anywhere/{library}.2", scheme)


def test_a_plugin_that_nobody_knows_has_no_row():
    assert not workarounds_for("/anywhere/libother.so", "s3")
    assert not workarounds_for(f"/anywhere/{IO}", "gs")


def test_every_workaround_is_used_by_a_row():
    used = {name for row in known_defects() for name in row.workaround}
    assert used == {field.name for field in fields(Workarounds)}


def test_an_unknown_workaround_is_rejected():
    with pytest.raises(ValueError, match="unknown workarounds"):
        typed_workarounds({"disabled_operation": ["copy_file"]})


def test_the_environment_is_prepared_and_changes_against_the_users_will_are_told():
    workarounds = Workarounds(
        environment_defaults={"A": "1", "B": "1"},
        environment_forced={"C": "1", "D": "1"},
        environment_removed=frozenset({"E", "F"}),
    )
    environment = {"B": "user", "C": "user", "D": "1", "E": "user"}

    changed = workarounds.prepare_environment(environment)

    assert environment == {"A": "1", "B": "user", "C": "1", "D": "1"}
    assert changed == ["C was set to '1', from 'user'", "E was unset, from 'user'"]


@pytest.mark.parametrize(
    ("config", "environment", "told"),
    [
        ("[default]\nendpoint_url = http://store\n", {}, "default"),
        ("[profile work]\nendpoint_url=http://store\n", {"AWS_PROFILE": "work"}, "work"),
        ("[profile work]\nendpoint_url=http://store\n", {"AWS_DEFAULT_PROFILE": "work"}, "work"),
        ("[profile work]\nendpoint_url=http://store\n", {}, ""),
        (
            "[default]\nservices = mine\n[services mine]\ns3 =\n  endpoint_url = http://store\n",
            {},
            "default",
        ),
        (
            "[default]\nservices = mine\n[services mine]\nec2 =\n  endpoint_url = http://store\n",
            {},
            "",
        ),
        ("[default]\nendpoint_url = http://store\n", {"S3_ENDPOINT": "http://other"}, ""),
        (
            "[default]\nendpoint_url = http://store\n",
            {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
            "",
        ),
        ("no section\n", {}, ""),
        ("[default]\nregion = x\n", {}, ""),
        (None, {}, ""),
    ],
)
def test_an_endpoint_in_a_profile_is_told(tmp_path, config, environment, told):
    workarounds = workarounds_for("libtensorflow_io_plugins.so", "s3")
    file = tmp_path / "config"
    if config is not None:
        file.write_text(config)
    found = unread_setting(
        workarounds.unread_setting, {"AWS_CONFIG_FILE": str(file), **environment}
    )

    expected = (
        f"endpoint_url of the profile {told!r} in {file} is not read by the plugin; set S3_ENDPOINT"
        " to its value"
    )
    assert found == (expected if told else "")
