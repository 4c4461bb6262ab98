"""Filesystems of Python that do what none should: TensorFlow gets an error, and goes on."""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.xdist_group("tensorflow")]

_START = """
from modular_tf import RandomAccessFile

service = started()

class File(RandomAccessFile):
    def __init__(self, answer):
        self.uri = "bad://x"
        self.answer = answer
    def readinto(self, offset, buffer):
        return self.answer() if callable(self.answer) else self.answer
    def close(self):
        pass

class Bad:
    answer = None
    def new_random_access_file(self, uri):
        if isinstance(self.answer, Exception):
            raise self.answer
        return File(self.answer)
    def stat(self, uri):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer
    def get_children(self, uri):
        return self.answer

bad = Bad()
mtft.register_filesystem("bad", bad, service=service)
"""


def test_each_gives_a_typed_error_with_our_words(run_bridge):
    code = """
found = {}
def note(name, answer, call):
    bad.answer = answer
    found[name] = error_of(call)

read = lambda: g.GFile("bad://x", "rb").read(10)
note("raises ValueError", ValueError("broken"), read)
note("raises a broken name", ValueError("\\ud800 and \\udcff"), lambda: g.stat("bad://x"))
note("raises LookupError", LookupError("broken"), read)
note("too many bytes", 11 << 20, read)
note("negative", -1, read)
note("no number", "text", read)
note("stat of a wrong type", 5, lambda: g.stat("bad://x"))
note("names of a wrong type", [5], lambda: tf.io.gfile.listdir("bad://x"))
note("missing operation", None, lambda: g.mkdir("bad://x"))
def leave():
    raise SystemExit(3)
note("SystemExit", leave, read)
g.GFile("ram://goes-on", "w").write("on")
print(json.dumps(found))
"""
    done = run_bridge(_START + code)
    found = json.loads(done.stdout.splitlines()[-1])

    expected = {
        "raises ValueError": ("InvalidArgumentError: ", "broken"),
        "raises a broken name": ("InvalidArgumentError: ", ""),
        "raises LookupError": ("UnknownError: ", ""),
        "too many bytes": ("InternalError: ", "bytes"),
        "negative": ("InternalError: ", ""),
        "no number": ("InternalError: ", ""),
        "SystemExit": ("InternalError: ", "SystemExit"),
        "stat of a wrong type": ("", "Error: "),
        "names of a wrong type": ("", "Error: "),
        "missing operation": ("UnimplementedError: ", ""),
    }
    assert found.keys() == expected.keys()
    for name, (start, word) in expected.items():
        assert found[name].startswith(start), (name, found[name])
        assert word in found[name]


def test_a_filesystem_may_keep_what_it_is_given(run_bridge):
    code = """
from modular_tf import WritableFile

class Writer(WritableFile):
    uri = "keeping://x"
    def __init__(self):
        self.parts = []
    def append(self, data):
        self.parts.append(data)
    def tell(self):
        return sum(map(len, self.parts))
    def close(self):
        global whole
        whole = b"".join(self.parts)

class Keeping:
    def new_writable_file(self, uri):
        return Writer()

mtft.register_filesystem("keeping", Keeping(), service=service)
parts = [bytes([number]) * 100_000 for number in range(20)] + [b"x" * 600_000]
with g.GFile("keeping://x", "wb") as file:
    for part in parts:
        file.write(part)
assert whole == b"".join(parts)
"""
    run_bridge(_START + code)


def test_what_cannot_be_registered_is_refused(run_bridge):
    code = """
from modular_tf.errors import AlreadyExistsError, NotFoundError
def refused(kind, call):
    try:
        return f"nothing: {call()}"
    except kind as error:
        return str(error)

said = refused(AlreadyExistsError, lambda: mtft.register(["ram"], service=service))
assert "'ram'" in said and 'register({"ram2": "ram"})' in said, said
said = refused(NotFoundError, lambda: mtft.register(["nobody"], service=service))
assert "nobody" in said, said
said = refused(TypeError, lambda: mtft.register("ram", service=service))
assert "['ram']" in said, said
said = refused(TypeError, lambda: mtft.register_filesystem("odd", object(), service=service))
assert "operations" in said, said
assert "odd" not in service.schemes()
everything = mtft.register(service=service)
outcomes = {row.scheme: row.outcome.value for row in everything.rows}
assert outcomes.pop("gs", "taken") == "taken"  # TensorFlow up to 2.16 brings the plugin along
assert outcomes == {"ram": "taken", "bad": "rebound"}, outcomes
assert g.GFile("ram://x", "w").write("a") is None
"""
    run_bridge(_START + code)


def test_a_message_that_is_not_utf_8_is_told(run_bridge, fixture_plugin):
    library = fixture_plugin("read-fails-oddly")
    code = f"""
service.load({str(library)!r})
mtft.register(["fixture"], service=service)
with g.GFile("fixture://h/f", "w") as file:
    file.write("text")
said = error_of(lambda: g.GFile("fixture://h/f", "rb").read(4))
assert said.startswith("UnavailableError: read 'fixture://h/f'"), said
assert "na\u00efve \u20ac \\\\xff\\\\xe2\\\\x82" in said, said
"""
    run_bridge(_START + code)
