"""Arguments that no file can meet end in an error that says so, whatever the plugin."""

from __future__ import annotations

import pytest

import modular_tf as mtf
from modular_tf.errors import ClosedError, InvalidArgumentError, ResourceExhaustedError


@pytest.fixture
def service():
    with mtf.PluginService(config=mtf.Config()) as service:
        service.load("ram_filesystem")
        yield service


@pytest.fixture
def reader(service):
    fs = service.filesystem("ram")
    with fs.new_writable_file("ram://f") as writer:
        writer.append(b"hello")
    with fs.new_random_access_file("ram://f") as reader:
        yield reader


@pytest.mark.parametrize(
    ("offset", "n"), [(-1, 1), (0, -1), (0, 1 << 63), (0, 1 << 64), (1 << 64, 1), (-(1 << 70), 1)]
)
def test_a_place_that_no_file_has(reader, offset, n):
    with pytest.raises(InvalidArgumentError, match="no file has") as caught:
        reader.read(offset, n)
    assert (caught.value.path, caught.value.operation) == ("ram://f", "read")


def test_more_than_memory_can_hold(reader):
    with pytest.raises(ResourceExhaustedError, match="no memory for"):
        reader.read(0, 1 << 62)


@pytest.mark.parametrize("buffer", ["text", None, 5])
def test_what_is_no_buffer(service, reader, buffer):
    with pytest.raises(TypeError, match="expected a buffer that can be written to, found"):
        reader.readinto(0, buffer)
    with (
        service.filesystem("ram").new_writable_file("ram://g") as writer,
        pytest.raises(TypeError, match="expected a buffer of bytes, found"),
    ):
        writer.append(buffer)


@pytest.mark.parametrize("scheme", [None, 5, b"zz"])
def test_a_scheme_that_is_no_text(service, scheme):
    class Nothing:
        def stat(self, uri):
            raise NotImplementedError

    with pytest.raises(InvalidArgumentError, match="FS-007"):
        service.register_filesystem(scheme, Nothing())
    assert list(service.schemes()) == ["ram"]


@pytest.mark.parametrize("name", ["a\0b", "/a\0b", "\ud800/x"])
def test_a_name_that_no_file_can_have_is_explained(service, name):
    assert not service.why(name).known


def test_one_text_is_no_list_of_texts():
    with pytest.raises(TypeError, match="expected a list of paths"):
        mtf.PluginService(plugin_paths="/plugin.so")
    with pytest.raises(TypeError, match=r"Config\.disable"):
        mtf.Config(disable="posix_*")


def test_a_closed_service_serves_nothing(service):
    fs = service.filesystem("ram")
    service.close()

    with pytest.raises(ClosedError):
        fs.flush_caches()
    with pytest.raises(ClosedError), service:
        pass


def test_a_detached_stream_keeps_nothing_from_being_closed(service):
    fs = service.filesystem("ram")
    stream = fs.open("ram://g", "w")
    below = stream.detach()
    service.close()

    assert fs.open_count == 0
    assert below.closed
