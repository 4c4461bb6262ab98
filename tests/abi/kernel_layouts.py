"""The structs of the interface of kernels, tensors and operations (kernel-abi §1.2)."""

from __future__ import annotations

from modular_tf.abi.layouts import (
    LAYOUTS,
    Field,
    Kind,
    Layout,
    boolean,
    functions,
    pointer,
    signed,
    unsigned,
)

KERNEL_LAYOUTS = (
    Layout(
        "TF_AllocatorAttributes", None, 16, (unsigned("struct_size", 0), boolean("on_host", 8)), 9
    ),
    Layout(
        "TF_InputRange_Args",
        None,
        32,
        (
            unsigned("struct_size", 0),
            pointer("priv", 8),
            signed("start", 16),
            signed("stop", 20),
            pointer("status", 24),
        ),
    ),
    Layout(
        "TF_Buffer",
        None,
        24,
        (pointer("data", 0), unsigned("length", 8), *functions("data_deallocator", 16)),
    ),
    Layout("TF_StringView", None, 16, (pointer("data", 0), unsigned("len", 8))),
    Layout(
        "TF_TString_Large", None, 24, (unsigned("size", 0), unsigned("cap", 8), pointer("ptr", 16))
    ),
    Layout("TF_TString_View", None, 16, (unsigned("size", 0), pointer("ptr", 8))),
    Layout(
        "TF_TString_Offset",
        None,
        12,
        (unsigned("size", 0, 4), unsigned("offset", 4, 4), unsigned("count", 8, 4)),
    ),
    Layout(
        "TF_TString_Small", None, 24, (unsigned("size", 0, 1), Field("str", 1, 23, Kind.STRUCT))
    ),
    Layout("TF_TString", None, 24, (Field("u", 0, 24, Kind.STRUCT),)),
)
"""The structs that plugins and host read by their fields; all releases share them."""

ALL_LAYOUTS = {**LAYOUTS, **{(layout.name, layout.dialect): layout for layout in KERNEL_LAYOUTS}}
"""These and those that the loader reads."""
