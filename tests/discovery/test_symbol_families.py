"""Who could provide a symbol, and how people read it."""

from __future__ import annotations

import subprocess

import pytest

from modular_tf.discovery.elf import UndefinedSymbol
from modular_tf.discovery.linking.host_exports import host_exports
from modular_tf.discovery.linking.symbol_families import SymbolFamily, family_of, readable_name


@pytest.mark.parametrize(
    ("name", "version", "family"),
    [
        ("TF_SetStatus", None, SymbolFamily.PLUGIN_API),
        ("TF_VLog", None, SymbolFamily.PLUGIN_API),
        ("TF_Log", "tensorflow", SymbolFamily.PLUGIN_API),
        ("TF_GetTempFileName", None, SymbolFamily.PLUGIN_API),
        ("TF_NowMicros", None, SymbolFamily.PLUGIN_API),
        ("TSL_NewStatus", None, SymbolFamily.PLUGIN_API),
        ("TF_RegisterKernelBuilder", None, SymbolFamily.KERNEL_API),
        ("TF_AllocateTensor", None, SymbolFamily.KERNEL_API),
        ("TF_LogicalThing", None, SymbolFamily.KERNEL_API),
        ("TFE_NewContext", None, SymbolFamily.KERNEL_API),
        ("_ZN3tsl5mutex6unlockEv", None, SymbolFamily.TENSORFLOW_CXX),
        ("_ZN10tensorflow8internal15LogMessageFatalC1EPKci", None, SymbolFamily.TENSORFLOW_CXX),
        ("_ZTVN4absl12lts_202401166StatusE", None, SymbolFamily.TENSORFLOW_CXX),
        ("_ZN15stream_executor8PlatformD2Ev", None, SymbolFamily.TENSORFLOW_CXX),
        ("_ZN6google8protobuf7MessageC2Ev", None, SymbolFamily.TENSORFLOW_CXX),
        ("PyRun_SimpleStringFlags", None, SymbolFamily.PYTHON),
        ("_Py_NoneStruct", None, SymbolFamily.PYTHON),
        ("Python", None, SymbolFamily.OTHER),
        ("malloc", "GLIBC_2.2.5", SymbolFamily.C_LIBRARY),
        ("_ZNSt6localeC1Ev", None, SymbolFamily.CXX_LIBRARY),
        ("_ZNSolsEi", None, SymbolFamily.CXX_LIBRARY),
        ("_ZTVSt9exception", None, SymbolFamily.CXX_LIBRARY),
        ("_Znwm", None, SymbolFamily.CXX_LIBRARY),
        ("__cxa_throw", "CXXABI_1.3", SymbolFamily.CXX_LIBRARY),
        ("dnnl_primitive_create", None, SymbolFamily.OTHER),
        ("_ZN4dnnl5errorE", None, SymbolFamily.OTHER),
        ("", None, SymbolFamily.OTHER),
    ],
)
def test_families(name: str, version: str | None, family: SymbolFamily) -> None:
    assert family_of(UndefinedSymbol(name, False, version)) is family


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("_ZN3tsl5mutex6unlockEv", "tsl::mutex::unlock"),
        ("_ZNK3tsl5mutex6lockedEv", "tsl::mutex::locked"),
        ("_ZN3tsl8internal10LogMessageC1EPKcii", "tsl::internal::LogMessage::LogMessage"),
        ("_ZN3tsl8internal10LogMessageD0Ev", "tsl::internal::LogMessage::~LogMessage"),
        ("_ZN3tsl7strings6StrCatB5cxx11ERKNS0_8AlphaNumES3_", "tsl::strings::StrCat"),
        ("_ZTVN3tsl2io5InputE", "tsl::io::Input"),
        ("_Z8functioni", "function"),
        ("_Z3foo3bar", "foo"),
        ("_ZNSt9bad_allocD1Ev", "std::bad_alloc::~bad_alloc"),
        ("_ZSt16__throw_bad_castv", "std::__throw_bad_cast"),
        ("_ZNSo9_M_insertIbEERSoT_", "std::ostream::_M_insert"),
        ("TF_SetStatus", "TF_SetStatus"),
        ("_Z", "_Z"),
        ("_ZN", "_ZN"),
        ("_ZN999999x", "_ZN999999x"),
        ("_ZN99999x", "_ZN99999x"),
        ("", ""),
    ],
)
def test_readable_names(name: str, readable: str) -> None:
    assert readable_name(name) == readable


def test_readable_names_agree_with_the_demangler() -> None:
    names = ["_ZN3tsl5mutex6unlockEv", "_ZN6google8protobuf7MessageD1Ev", "_ZNK1a1bIiE1cEv"]
    full = subprocess.run(
        ["c++filt", *names], capture_output=True, text=True, check=True
    ).stdout.splitlines()

    for name, text in zip(names, full, strict=True):
        assert text.startswith(readable_name(name))


def test_every_c_function_that_the_host_offers_is_of_the_c_api() -> None:
    offered = {name for name in host_exports().symbols if name.startswith(("TF_", "TSL_"))}

    assert offered
    others = {
        name
        for name in offered
        if family_of(UndefinedSymbol(name, False, None))
        not in {SymbolFamily.PLUGIN_API, SymbolFamily.KERNEL_API}
    }
    assert others == set()


def test_each_family_has_words_and_a_remedy() -> None:
    assert all(family.words and family.remedy.endswith(".") for family in SymbolFamily)
