"""Rules of SE_InitPlugin, beyond what a host needs to accept a plugin."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "device.h"
_OBSERVED = "TensorFlow 2.21, observed"
_OVERRUN = "TensorFlow has these structs on its stack: what lies behind them is overwritten."
_FIELDS = "Assign fields one by one, of the header that the host has; never memset by a guess."

RULES: tuple[Rule, ...] = (
    Rule(
        "SE-101",
        "SE_InitPlugin writes no further than the structs of TensorFlow 2.21 go.",
        _OVERRUN,
        "Build against the header of the TensorFlow that is to load it; never memset by a guess.",
        _OBSERVED,
    ),
    Rule(
        "SE-102",
        "Name and type of the platform stay the same once SE_InitPlugin has returned.",
        "TensorFlow keeps the pointers: it registers the platform by a freed name.",
        "Use string literals, or memory that lives until destroy_platform.",
        _OBSERVED,
    ),
    Rule(
        "SE-103",
        "create_device_fns writes no further than SP_DeviceFns goes.",
        _OVERRUN,
        _FIELDS,
        _HEADER,
    ),
    Rule(
        "SE-104",
        "create_stream_executor writes no further than SP_StreamExecutor goes.",
        _OVERRUN,
        _FIELDS,
        _HEADER,
    ),
    Rule(
        "SE-105",
        "SE_InitPlugin accepts the struct sizes that TensorFlow 2.21 sets.",
        "TensorFlow passes the plugin's status on and aborts the whole process.",
        "Compare sizes with >=, and with the *_STRUCT_SIZE macros instead of sizeof.",
        _OBSERVED,
    ),
    Rule(
        "SE-107",
        "SE_InitPlugin sets its status.",
        "None where the host presets OK, as TensorFlow does; another host may not.",
        'Call TF_SetStatus(status, TF_OK, "") at the end.',
        _HEADER,
        Severity.NOTE,
    ),
    Rule(
        "SE-108",
        "The destroy functions write no further than their structs go, and do not free them.",
        "The memory is the host's: freeing it ends the process, here and in TensorFlow.",
        "Release only what the plugin itself put into the struct.",
        _HEADER,
    ),
    Rule(
        "SE-109",
        "A platform that was destroyed can be set up again.",
        "A service that is closed and opened again in one process loses its devices.",
        "Keep no state from the first SE_InitPlugin that forbids a second one.",
        "design 5",
        Severity.WARNING,
    ),
)
