"""The names of a new project, from the one that its author gives."""

from __future__ import annotations

import pytest

from modular_tf.check.project_template.project import project_names
from modular_tf.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("kind", "name", "library", "registered"),
    [
        ("filesystem", "my-store", "my_store", "mystore"),
        ("filesystem", "My_Store2", "my_store2", "mystore2"),
        ("filesystem", "class", "class", "class"),  # a word of C++ is a name like others
        ("device", "npu", "npu", "NPU"),
        ("device", "My-Chip", "my_chip", "MY_CHIP"),
    ],
)
def test_a_name_makes_those_of_library_and_registration(kind, name, library, registered):
    names = project_names(kind, name)

    assert (names.project, names.library, names.registered) == (name, library, registered)
    assert names.users_write == f"{registered}{'://' if kind == 'filesystem' else ':0'}"


def test_what_is_registered_may_have_a_name_of_its_own():
    assert project_names("filesystem", "my-store", scheme="My.Store").registered == "My.Store"
    assert project_names("device", "npu2", device_type="NPU").registered == "NPU"


def test_what_is_no_name_or_taken_by_no_host_is_refused():
    for name in ("", "2fast", "-a", "a-", "a--b", "a.b", "a b", "../a", "ä", "a\n"):
        with pytest.raises(InvalidArgumentError, match="cannot be the name of a project"):
            project_names("device", name)
    for scheme in ("", "s", "9p", "my-store", "a/b"):
        with pytest.raises(InvalidArgumentError, match=r"cannot be a scheme.*--scheme"):
            project_names("filesystem", "chosen", scheme=scheme)
    for device_type in ("", "npu", "NPU2", "_NPU", "GPU:0"):
        with pytest.raises(InvalidArgumentError, match=r"cannot be a device type.*--type"):
            project_names("device", "chosen", device_type=device_type)


@pytest.mark.parametrize(
    ("kind", "name", "given", "error"),
    [
        ("filesystem", "ram", {}, "taken already; .*--scheme"),
        ("filesystem", "File", {}, "taken already; .*--scheme"),
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
