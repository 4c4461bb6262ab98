"""The names of a new project, from the one that its author gives."""

from __future__ import annotations

import pytest

from modular_tf.check.project_template.project import project_names
from modular_tf.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("kind", "name", "library", "registered"),
    [
        ("filesystem", "store", "store", "store"),
        ("filesystem", "my-store", "my_store", "mystore"),
        ("filesystem", "My_Store2", "my_store2", "mystore2"),
        ("filesystem", "class", "class", "class"),  # a word of C++ is a name like others
        ("filesystem", "x-1", "x_1", "x1"),
        ("device", "npu", "npu", "NPU"),
        ("device", "My-Chip", "my_chip", "MY_CHIP"),
        ("device", "x", "x", "X"),
    ],
)
def test_a_name_makes_those_of_library_and_registration(kind, name, library, registered):
    names = project_names(kind, name)

    assert (names.project, names.library, names.registered) == (name, library, registered)
    assert names.users_write == f"{registered}{'://' if kind == 'filesystem' else ':0'}"


def test_what_is_registered_may_have_a_name_of_its_own():
    assert project_names("filesystem", "my-store", scheme="My.Store").registered == "My.Store"
    assert project_names("device", "npu2", device_type="NPU").registered == "NPU"


@pytest.mark.parametrize(
    "name", ["", "2fast", "-a", "a-", "a--b", "a.b", "a b", "a/b", "../a", "ä", "a\n", 'a"b']
)
@pytest.mark.parametrize("kind", ["filesystem", "device"])
def test_what_is_no_name_of_a_project_is_refused(kind, name):
    with pytest.raises(InvalidArgumentError, match="cannot be the name of a project"):
        project_names(kind, name)


@pytest.mark.parametrize("scheme", ["", "s", "9p", "my-store", "my_store", "a b", "s://", "a/b"])
def test_a_scheme_that_no_host_would_find_is_refused(scheme):
    with pytest.raises(InvalidArgumentError, match=r"cannot be a scheme.*--scheme"):
        project_names("filesystem", "store", scheme=scheme)


@pytest.mark.parametrize("device_type", ["", "npu", "NPU2", "_NPU", "MY-NPU", "N P", "GPU:0"])
def test_a_device_type_that_no_host_takes_is_refused(device_type):
    with pytest.raises(InvalidArgumentError, match=r"cannot be a device type.*--type"):
        project_names("device", "chip", device_type=device_type)


@pytest.mark.parametrize(
    ("kind", "name", "given", "error"),
    [
        ("filesystem", "ram", {}, "taken already; .*--scheme"),
        ("filesystem", "File", {}, "taken already; .*--scheme"),
        ("device", "cpu", {}, "taken already; .*--type"),
        ("device", "Host", {}, "taken already; .*--type"),
        ("filesystem", "modular_tf", {}, "taken already; .*--directory"),
        ("device", "tensorflow", {}, "taken already; .*--directory"),
        ("filesystem", "s", {}, "'s' cannot be a scheme.*--scheme"),
        ("filesystem", "store", {"device_type": "STORE"}, "give --scheme"),
        ("device", "chip", {"scheme": "chip"}, "give --type"),
    ],
)
def test_a_name_that_cannot_be_had_is_refused_with_the_way_out(kind, name, given, error):
    with pytest.raises(InvalidArgumentError, match=error):
        project_names(kind, name, **given)
