"""Texts of configuration files, and variables beside them: right, wrong and spoilt."""

from __future__ import annotations

from dataclasses import fields

from modular_tf.service.configuration import Config

KEYS = tuple(entry.name for entry in fields(Config) if entry.name != "path")
"""The keys of a configuration file."""
MEMORY_KEYS = ("fraction", "garbage_collection", "growth", "host_limit_bytes", "limit_bytes")
"""The keys of its table `memory`."""

_WORDS = r"""
    a * NPU GPU:CUDA s3 file CUDA ~ ~nobody/x /p é always never new lazy eager auto 1 true \u0000
    ~\u0000 LD-064 0.5 growth limit_bytes fraction a/../b \uFFFD $HOME [ **
"""
_INTEGERS = "0 1 2 4 5 -1 30 220 1024 9223372036854775807"
_OTHER_NUMBERS = f"""
    1e3 0.5 1e300 1e-300 1000000 -0.0 1.0 1.5 1e400 inf -inf nan 0x10 0b1 1_000 true false
    1979-05-27 07:32:00 1979-05-27T07:32:00Z {"1" * 5000} {"1" + "0" * 60} {"0x" + "f" * 5000} 0o17
"""
_PIECES = [*"\"'[]{}=,\n#.\\ \té", "[[", '"""']
_VARIABLES = {
    "MODULAR_TF_FIRST_CONTACT": ("", "always", "never", "new", "Always", "sometimes", "\udcff"),
    "MODULAR_TF_FROZEN": ("", "0", "1", "yes", "2"),
    "MODULAR_TF_LOAD": ("", "lazy", "eager", "EAGER"),
    "TF_FORCE_GPU_ALLOW_GROWTH": ("", "true", "false", "1", "TRUE", "yes"),
    "TF_ENABLE_GPU_GARBAGE_COLLECTION": ("", "true", "0", "False", "no"),
    "TF_GPU_HOST_MEM_LIMIT_IN_MB": ("", "0", "1", "64", "-1", "9" * 30, "\u0661", "1.5"),
}
_TRUST = {
    "owners": '[] ["root"] [0,1000] ["nobody-of-that-name"] [-1] [true] "root"',
    "groups": r'[] ["root"] [0] [""] ["\u0000"] [[]]',
    "allow_executable_stack": r'[] ["/opt/**"] ["\u0000"] [1] "/opt"',
    "allow_writable": r'[] ["/tmp/**"] ["\u0000"] ["["] [1] "/tmp"',
    "require_record": "true false 1",
    "frozen": 'true false "true"',
    "lock": r'"x.lock" "/a/x.lock" "~\u0000" "" 5',
    "unknown": "1",
}


def make(dice):
    keys = dice.sample((*KEYS, "path", "unknown", "a.b"), dice.choice((0, 1, 1, 2, 3, 5, 8)))
    text = "\n".join(f"{key} = {_value(dice, key)}" for key in keys)
    if dice.random() < 0.3:
        text = _spoilt(text, dice)
    if dice.random() < 0.01:
        text += f"\nenable = {'[' * dice.choice((50, 20_000))}"
    content = text.encode("utf-8", "surrogatepass")
    if dice.random() < 0.03:
        at = dice.randrange(len(content) + 1)
        content = content[:at] + dice.randbytes(3) + content[at:]
    chosen = dice.sample(sorted(_VARIABLES), dice.choice((0, 0, 0, 1, 2)))
    return content, {name: dice.choice(_VARIABLES[name]) for name in chosen}


def _value(dice, key):
    form = dice.choice(("fitting", "fitting", "word", "number", "list", "table", "words"))
    if form == "fitting":
        form = _FITTING.get(key, dice.choice(("word", "number", "words", "table")))
    return _FORMS[form](dice)


def _word(dice):
    return f'"{dice.choice(("", "a b", *_WORDS.split()))}"'


def _integer(dice):
    return dice.choice(_INTEGERS.split())


def _number(dice):
    return dice.choice(_INTEGERS.split() + _OTHER_NUMBERS.split())


def _list_of(*entries):
    return lambda dice: (
        f"[{', '.join(dice.choice(entries)(dice) for _ in range(dice.randrange(4)))}]"
    )


def _table(dice):
    return _tabled(
        (f'{_word(dice)[:-1]}{at}"', _value(dice, "")) for at in range(dice.randrange(3))
    )


def _table_of(entry):
    names = ('"A"', '"B:C"', '"s3"')
    return lambda dice: _tabled((name, entry(dice)) for name in dice.sample(names, 2))


def _memory(dice, depth=0):
    entries = [(key, _number(dice)) for key in dice.sample(MEMORY_KEYS, dice.randrange(3))]
    if depth < 2 and dice.random() < 0.4:
        entries.append((dice.choice(("GPU", "NPU", "gpu", "_X")), _memory(dice, depth + 1)))
    return _tabled(entries)


def _trust(dice):
    chosen = dice.sample(sorted(_TRUST), dice.randrange(4))
    return _tabled((name, dice.choice(_TRUST[name].split())) for name in chosen)


def _tabled(entries):
    return "{" + ", ".join(f"{key} = {value}" for key, value in entries) + "}"


_FORMS = {
    "word": _word,
    "number": _number,
    "list": _list_of(_word, _number),
    "words": _list_of(_word),
    "table": _table,
    "int table": _table_of(_integer),
    "str table": _table_of(_word),
    "memory": _memory,
    "trust": _trust,
}
_KEYS_OF_FORMS = {
    "memory": "memory",
    "trust": "trust",
    "words": "plugin_dirs enable disable visible_devices first_contact_accept",
    "int table": "priorities device_count",
    "str table": "scheme_pins dlpack_types",
    "word": "name_prefix first_contact load",
    "number": "copy_streams first_contact_timeout_s first_contact_memory_mib watch_poll_interval_s",
}
_FITTING = {key: form for form, keys in _KEYS_OF_FORMS.items() for key in keys.split()}


def _spoilt(text, dice):
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(len(text) + 1)
        cut = at + dice.choice((0, 0, 1, 1, 5, 40))
        text = text[:at] + dice.choice((*_PIECES, "", chr(dice.randrange(0xD800)))) + text[cut:]
    return text
