"""Who could provide a symbol, and how people read it."""

import pytest

from modular_tf.discovery.elf import UndefinedSymbol
from modular_tf.discovery.linking.symbol_families import SymbolFamily, family_of, readable_name

FAMILIES = {
    SymbolFamily.PLUGIN_API: "TF_SetStatus TF_VLog TF_GetTempFileName TF_NowMicros TSL_NewStatus",
    SymbolFamily.KERNEL_API: (
        "TF_RegisterKernelBuilder TF_AllocateTensor TF_LogicalThing TFE_NewContext"
    ),
    SymbolFamily.TENSORFLOW_CXX: (
        "_ZN3tsl5mutex6unlockEv _ZN10tensorflow8internal15LogMessageFatalC1EPKci"
        " _ZTVN4absl12lts_202401166StatusE _ZN15stream_executor8PlatformD2Ev"
        " _ZN6google8protobuf7MessageC2Ev"
    ),
    SymbolFamily.PYTHON: "PyRun_SimpleStringFlags _Py_NoneStruct",
    SymbolFamily.CXX_LIBRARY: "_ZNSt6localeC1Ev _ZNSolsEi _ZTVSt9exception _Znwm",
    SymbolFamily.OTHER: "Python dnnl_primitive_create _ZN4dnnl5errorE",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_families(family):
    for name in FAMILIES[family].split():
        assert family_of(UndefinedSymbol(name, False, None)) is family, name


@pytest.mark.parametrize(
    ("name", "version", "family"),
    [
        ("TF_Log", "tensorflow", SymbolFamily.PLUGIN_API),
        ("malloc", "GLIBC_2.2.5", SymbolFamily.C_LIBRARY),
        ("__cxa_throw", "CXXABI_1.3", SymbolFamily.CXX_LIBRARY),
        ("", None, SymbolFamily.OTHER),
    ],
)
def test_families_by_version(name, version, family):
    assert family_of(UndefinedSymbol(name, False, version)) is family


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("_ZN3tsl5mutex6unlockEv", "tsl::mutex::unlock"),
        ("_ZN3tsl8internal10LogMessageC1EPKcii", "tsl::internal::LogMessage::LogMessage"),
        ("_ZN3tsl8internal10LogMessageD0Ev", "tsl::internal::LogMessage::~LogMessage"),
        ("_ZN3tsl7strings6StrCatB5cxx11ERKNS0_8AlphaNumES3_", "tsl::strings::StrCat"),
        ("_ZTVN3tsl2io5InputE", "tsl::io::Input"),
        ("_Z3foo3bar", "foo"),
        ("_ZNSo9_M_insertIbEERSoT_", "std::ostream::_M_insert"),
        ("TF_SetStatus", "TF_SetStatus"),
        ("_ZN", "_ZN"),
        ("_ZN999999x", "_ZN999999x"),
        ("", ""),
    ],
)
def test_readable_names(name, readable):
    assert readable_name(name) == readable
