"""The names of a new project, from the one that its author gives."""

from __future__ import annotations

import pytest

from modular_tf.check.project_template.project import project_names
from modular_tf.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("name", "library", "scheme"),
    [
        ("store", "store", "store"),
        ("my-store", "my_store", "mystore"),
        ("My_Store2", "my_store2", "mystore2"),
        ("class", "class", "class"),  # a word of C++ is a name like others
        ("x-1", "x_1", "x1"),
    ],
)
def test_a_filesystem(name, library, scheme):
    names = project_names("filesystem", name)

    assert (names.project, names.library, names.registered) == (name, library, scheme)
    assert names.users_write == f"{scheme}://"


@pytest.mark.parametrize(
    ("name", "library", "device_type"),
    [("npu", "npu", "NPU"), ("My-Chip", "my_chip", "MY_CHIP"), ("x", "x", "X")],
)
def test_a_device(name, library, device_type):
    names = project_names("device", name)

    assert (names.project, names.library, names.registered) == (name, library, device_type)
    assert names.users_write == f"{device_type}:0"


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


def test_a_name_that_makes_no_scheme_is_refused_with_the_way_out():
    with pytest.raises(InvalidArgumentError, match=r"'s' cannot be a scheme.*--scheme"):
        project_names("filesystem", "s")


@pytest.mark.parametrize("device_type", ["", "npu", "NPU2", "_NPU", "MY-NPU", "N P", "GPU:0"])
def test_a_device_type_that_no_host_takes_is_refused(device_type):
    with pytest.raises(InvalidArgumentError, match=r"cannot be a device type.*--type"):
        project_names("device", "chip", device_type=device_type)


@pytest.mark.parametrize(
    ("kind", "name", "remedy"),
    [
        ("filesystem", "ram", "--scheme"),
        ("filesystem", "File", "--scheme"),
        ("device", "cpu", "--type"),
        ("device", "Host", "--type"),
        ("filesystem", "modular_tf", "--directory"),
        ("device", "tensorflow", "--directory"),
    ],
)
def test_a_name_that_somebody_has_is_refused(kind, name, remedy):
    with pytest.raises(InvalidArgumentError, match=f"taken already; .*{remedy}"):
        project_names(kind, name)


def test_an_option_of_the_other_kind_is_refused():
    with pytest.raises(InvalidArgumentError, match="give --scheme"):
        project_names("filesystem", "store", device_type="STORE")
    with pytest.raises(InvalidArgumentError, match="give --type"):
        project_names("device", "chip", scheme="chip")
