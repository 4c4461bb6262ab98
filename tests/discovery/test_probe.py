"""The probe answers what dlopen would, and why, before anything is opened."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modular_tf.discovery.candidate import Kind
from modular_tf.discovery.linking.dynamic_linker import running_program
from modular_tf.discovery.linking.host_exports import HostExports, host_exports
from modular_tf.discovery.linking.link_check import running_glibc
from modular_tf.discovery.linking.symbol_families import SymbolFamily
from modular_tf.discovery.probe import Prober, probe
from modular_tf.errors import NotFoundError
from modular_tf.rules import Severity, rule
from tests.discovery.conftest import DEVICE, FILESYSTEM, make_candidate
from tests.discovery.elf_builder import ElfBuilder
from tests.discovery.site_folder import install
from tests.fixtures.broken_libraries import BROKEN_LIBRARIES

if TYPE_CHECKING:
    from modular_tf.discovery.probe import Probe
    from tests.discovery.conftest import LibraryCompiler
    from tests.fixtures.broken_libraries import LibraryBreaker
    from tests.fixtures.wild import WildPlugins


def rules_of(result: Probe) -> list[str]:
    return [problem.rule for problem in result.problems]


def calls(*functions: str) -> str:
    """Return a filesystem plugin that calls functions that it does not define."""
    lines = [f"int {name}(void); int use_{name}(void) {{ return {name}(); }}" for name in functions]
    return "\n".join([FILESYSTEM, *lines])


def dlopens(path: Path) -> bool:
    """Tell whether dlopen with RTLD_NOW accepts a library, in a process of its own."""
    code = "import ctypes, os, sys; ctypes.CDLL(sys.argv[1], os.RTLD_NOW)"
    command = [sys.executable, "-c", code, str(path)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def open_files() -> list[Path]:
    return list(Path("/proc/self/fd").iterdir())


def test_a_good_plugin(compile_library: LibraryCompiler, prober: Prober) -> None:
    path = compile_library("libgood.so", FILESYSTEM + DEVICE, "-Wl,-soname,libgood.so.1")

    result = prober.probe(make_candidate(path))

    assert result.loadable
    assert result.problems == ()
    assert result.kinds == {Kind.FILESYSTEM, Kind.DEVICE}
    assert result.candidate.path == str(path)
    assert result.elf is not None
    assert result.elf.soname == "libgood.so.1"
    assert result.elf.init_symbols == ("TF_InitPlugin", "SE_InitPlugin")
    assert result.elf.size == path.stat().st_size
    assert result.elf.byte_order == sys.byteorder
    assert result.missing_symbols == ()


@pytest.mark.parametrize(
    ("symbol", "kind"),
    [
        ("TF_InitPlugin", Kind.FILESYSTEM),
        ("SE_InitPlugin", Kind.DEVICE),
        ("TF_InitKernel", Kind.KERNEL),
        ("TF_InitGraph", Kind.GRAPH),
        ("TF_InitProfiler", Kind.PROFILER),
        ("TFNPD_InitPlugin", Kind.NEXT_DEVICE),
        ("GetPjrtApi", Kind.NEXT_DEVICE),
    ],
)
def test_kinds(compile_library: LibraryCompiler, prober: Prober, symbol: str, kind: Kind) -> None:
    result = prober.probe(make_candidate(compile_library("libx.so", f"void {symbol}(void) {{}}")))

    assert result.kinds == {kind}
    served = kind in {Kind.FILESYSTEM, Kind.DEVICE, Kind.KERNEL}
    assert result.loadable is served
    assert rules_of(result) == ([] if served else ["LD-012"])
    if not served:
        assert result.problems[0].message == f"libx.so exports only {symbol}"


def test_no_init_symbol(compile_library: LibraryCompiler, prober: Prober) -> None:
    hidden = '__attribute__((visibility("hidden"))) void TF_InitPlugin(void) {}'

    result = prober.probe(make_candidate(compile_library("libx.so", hidden)))

    assert rules_of(result) == ["LD-010"]
    assert result.kinds == frozenset()
    assert result.elf is not None


def test_an_init_symbol_that_is_data(compile_library: LibraryCompiler, prober: Prober) -> None:
    source = "int TF_InitPlugin = 1; __thread int SE_InitPlugin;"
    result = prober.probe(make_candidate(compile_library("libx.so", source)))

    assert rules_of(result) == ["LD-011", "LD-011"]
    assert result.problems[0].message == "TF_InitPlugin of libx.so is data or thread-local"


@pytest.mark.parametrize(
    ("made", "kinds", "words"),
    [
        (ElfBuilder(machine=243), {Kind.FILESYSTEM}, "is built for riscv64, this process runs on"),
        (ElfBuilder(machine=22, order=">"), set(), "is built for s390x, this process runs on"),
        (ElfBuilder(machine=8, bits=32), set(), "is built for mips"),
    ],
)
def test_libraries_for_other_machines(
    tmp_path: Path, prober: Prober, made: ElfBuilder, kinds: set[Kind], words: str
) -> None:
    """Of the supported word size and byte order, they are listed as what they are."""
    path = tmp_path / "libforeign.so"
    path.write_bytes(made.build())

    result = prober.probe(make_candidate(path))

    assert rules_of(result) == ["LD-008"]
    assert words in result.problems[0].message
    assert result.kinds == kinds


def test_word_size_and_byte_order(tmp_path: Path, prober: Prober) -> None:
    machine = running_program().machine
    path = tmp_path / "libx.so"

    path.write_bytes(ElfBuilder(bits=32, machine=machine).build())
    assert rules_of(prober.probe(make_candidate(path))) == ["LD-006"]
    path.write_bytes(ElfBuilder(order=">", machine=machine).build())
    assert rules_of(prober.probe(make_candidate(path))) == ["LD-007"]


def test_missing_symbols_by_family(compile_library: LibraryCompiler, prober: Prober) -> None:
    path = compile_library(
        "libneedy.so",
        calls(
            "TF_NewStatus",
            "TF_RegisterKernelBuilder",
            "_ZN3tsl5mutex6unlockEv",
            "nobody_knows",
            "PyLong_FromLong",
            *(f"TFE_Op{at}" for at in range(7)),
        ),
    )

    result = prober.probe(make_candidate(path))

    by_family = {symbol.family: symbol for symbol in result.missing_symbols}
    assert set(by_family) == {
        SymbolFamily.PLUGIN_API,
        SymbolFamily.KERNEL_API,
        SymbolFamily.TENSORFLOW_CXX,
        SymbolFamily.OTHER,
    }
    mutex = by_family[SymbolFamily.TENSORFLOW_CXX]
    assert (mutex.name, mutex.readable) == ("_ZN3tsl5mutex6unlockEv", "tsl::mutex::unlock")
    assert rules_of(result) == ["LD-014"] * 4
    messages = {problem.message: problem.remedy for problem in result.problems}
    kernels = next(message for message in messages if "for kernels" in message)
    assert kernels.startswith("libneedy.so needs 8 symbols of TensorFlow's C API for kernels")
    assert kernels.endswith(" and 3 more")
    assert messages[kernels] == SymbolFamily.KERNEL_API.remedy
    cxx = next(message for message in messages if "C++" in message)
    assert cxx == "libneedy.so needs 1 C++ function of TensorFlow itself: tsl 1"


def test_functions_of_tensorflow_itself_are_counted_by_their_origins(
    compile_library: LibraryCompiler, prober: Prober
) -> None:
    absl = [f"_ZN4absl{len(name)}{name}Ev" for name in ("One", "Two", "Three")]
    names = [*absl, "AbslInternalSleepFor_x", "_ZN6google8protobuf3OneEv", "_ZN3tsl3OneEv"]
    path = compile_library("libneedy.so", calls(*names))

    result = prober.probe(make_candidate(path))

    (problem,) = result.problems
    assert problem.rule == "LD-014"
    assert problem.message == (
        "libneedy.so needs 6 C++ functions of TensorFlow itself: absl 4, protobuf 1, tsl 1"
    )
    assert {symbol.name for symbol in result.missing_symbols} == set(names)


def test_the_release_of_abseil_in_the_names_is_named(
    compile_library: LibraryCompiler, prober: Prober
) -> None:
    mangled = ["_ZN4absl12lts_202508143OneEv", "AbslInternalSleepFor_lts_20250814"]
    path = compile_library("libneedy.so", calls(*mangled))

    (problem,) = prober.probe(make_candidate(path)).problems

    assert problem.message == (
        "libneedy.so needs 2 C++ functions of TensorFlow itself: absl (LTS 20250814) 2"
    )


@pytest.mark.parametrize(
    ("requires", "named"),
    [
        ("tensorflow==2.21.*", " itself (its package requires tensorflow==2.21.*)"),
        ("numpy", " itself"),
        (
            'tensorflow-cpu (<2.17.0,>=2.16.0) ; extra == "cpu"',
            " itself (its package requires tensorflow-cpu<2.17.0,>=2.16.0)",
        ),
        ("tensorflow-io-gcs-filesystem==0.37.1", " itself"),
        ("tensorflow", " itself"),
        (f"tensorflow=={'1' * 200}", " itself"),
        pytest.param(f"tensorflow==1{' ' * 100_000}$", " itself", id="many blanks"),
    ],
)
def test_the_tensorflow_that_a_package_requires_is_named(
    compile_library: LibraryCompiler,
    prober: Prober,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    requires: str,
    named: str,
) -> None:
    metadata = install(tmp_path / "site", "needy")
    with (metadata / "METADATA").open("a") as file:
        file.write(f"Requires-Dist: six\nRequires-Dist: {requires}\n\n")
        file.write("Requires-Dist: tensorflow==1\n")  # of the description
    monkeypatch.syspath_prepend(tmp_path / "site")
    path = compile_library("libneedy.so", calls("_ZN3tsl3OneEv"))
    candidate = make_candidate(path)._replace(distribution="needy")

    (problem,) = prober.probe(candidate).problems

    assert problem.message == f"libneedy.so needs 1 C++ function of TensorFlow{named}: tsl 1"


def test_a_package_without_metadata_requires_nothing(
    compile_library: LibraryCompiler, prober: Prober
) -> None:
    path = compile_library("libneedy.so", calls("_ZN3tsl3OneEv"))

    (problem,) = prober.probe(make_candidate(path)._replace(distribution="gone")).problems

    assert problem.message == "libneedy.so needs 1 C++ function of TensorFlow itself: tsl 1"


def test_names_of_other_libraries_are_shown_as_people_write_them(
    compile_library: LibraryCompiler, prober: Prober
) -> None:
    path = compile_library("libneedy.so", calls("_ZN6vendor4openEi"))

    (problem,) = prober.probe(make_candidate(path)).problems

    assert problem.message.endswith(" that no library defines: vendor::open")


def test_missing_libraries_are_one_sentence(
    compile_library: LibraryCompiler, prober: Prober
) -> None:
    gone = [
        compile_library(f"libgone{n}.so", f"int gone{n}(void) {{ return 1; }}",
                        f"-Wl,-soname,libgone{n}.so")
        for n in range(7)
    ]  # fmt: skip
    called = calls(*(f"gone{n}" for n in range(7)))
    path = compile_library("libx.so", called, *map(str, gone))
    for library in gone:
        library.unlink()

    (problem,) = prober.probe(make_candidate(path)).problems

    shown = ", ".join(f"libgone{n}.so" for n in range(5))
    expected = f"libx.so needs 7 libraries that are not found: {shown} and 2 more"
    assert (problem.rule, problem.message) == ("LD-013", expected)


def missing_libraries_message(
    compile_library: LibraryCompiler, prober: Prober, *sonames: str
) -> str:
    """Return what is said of a library that needs others, which are not found."""
    gone = [
        compile_library(soname, f"int f{n}(void) {{ return 1; }}", f"-Wl,-soname,{soname}")
        for n, soname in enumerate(sonames)
    ]
    called = calls(*(f"f{n}" for n in range(len(sonames))))
    path = compile_library("libx.so", called, *map(str, gone))
    for library in gone:
        library.unlink()
    (problem,) = prober.probe(make_candidate(path)).problems
    assert problem.rule == "LD-013"
    return problem.message


def test_missing_libraries_of_one_family_are_named_by_it(
    compile_library: LibraryCompiler, prober: Prober
) -> None:
    sonames = ("libsycl.so.99", "libmkl_sycl_blas.so.99", "libintlc.so.99")

    message = missing_libraries_message(compile_library, prober, *sonames)

    assert message == (
        "libx.so needs 3 libraries of Intel's oneAPI runtime, which are not found:"
        " libsycl.so.99, libmkl_sycl_blas.so.99, libintlc.so.99"
    )


def test_one_missing_library_has_its_family_too(
    compile_library: LibraryCompiler, prober: Prober
) -> None:
    message = missing_libraries_message(compile_library, prober, "libcudart.so.99")

    assert message == "libx.so needs libcudart.so.99 of NVIDIA's CUDA, which is not found"


def test_missing_libraries_of_several_families_are_counted(
    compile_library: LibraryCompiler, prober: Prober
) -> None:
    sonames = ("libfoo.so.99", "libsycl.so.99", "libcudart.so.99", "libirng.so.99")

    message = missing_libraries_message(compile_library, prober, *sonames)

    assert message == (
        "libx.so needs 4 libraries that are not found (2 of Intel's oneAPI runtime, 1 of NVIDIA's"
        " CUDA): libfoo.so.99, libsycl.so.99, libcudart.so.99, libirng.so.99"
    )


def test_a_device_plugin_may_ask_for_functions_for_kernels(
    compile_library: LibraryCompiler, prober: Prober
) -> None:
    kernels = "void TF_NewKernelBuilder(void); void use(void) { TF_NewKernelBuilder(); }"
    device = "void SE_InitPlugin(void *p, void *s) {}"
    other = "void nobody_knows(void); void use_more(void) { nobody_knows(); }"

    result = prober.probe(make_candidate(compile_library("libd.so", device + kernels)))
    refused = prober.probe(make_candidate(compile_library("libo.so", device + kernels + other)))

    assert rules_of(result) == ["LD-017"]
    assert result.loadable
    assert [symbol.name for symbol in result.missing_symbols] == ["TF_NewKernelBuilder"]
    assert sorted(rules_of(refused)) == ["LD-014", "LD-017"]
    assert not refused.loadable


def test_an_old_glibc_takes_nothing_in_their_place(
    compile_library: LibraryCompiler, prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modular_tf.discovery.linking.link_check.running_glibc", lambda: "2.27")
    source = """
        void SE_InitPlugin(void *p, void *s) {}
        void TF_NewKernelBuilder(void); void use(void) { TF_NewKernelBuilder(); }
    """

    result = prober.probe(make_candidate(compile_library("libd.so", source)))

    assert "LD-014" in rules_of(result)


def test_what_the_host_offers_is_not_missing(compile_library: LibraryCompiler) -> None:
    path = compile_library("libneedy.so", calls("TF_NewStatus", "nobody_knows"))

    offer = HostExports(symbols=frozenset({"TF_NewStatus", "nobody_knows"}))

    assert probe(make_candidate(path), offer).loadable


def test_weak_symbols_may_be_missing(compile_library: LibraryCompiler, prober: Prober) -> None:
    weak = (
        "__attribute__((weak)) void TF_Absent(void); void use(void) { if (TF_Absent) TF_Absent(); }"
    )

    result = prober.probe(make_candidate(compile_library("libx.so", FILESYSTEM + weak)))

    assert result.loadable
    assert result.elf is not None
    assert ("TF_Absent", True) in {(symbol.name, symbol.weak) for symbol in result.elf.undefined}


@pytest.mark.parametrize("flag", ["-Wl,-z,lazy", "-Wl,-z,now"])
def test_lazily_bound_libraries_are_judged_alike(
    compile_library: LibraryCompiler, prober: Prober, flag: str
) -> None:
    path = compile_library("libx.so", calls("TF_AllocateTensor"), flag)

    result = prober.probe(make_candidate(path))

    assert rules_of(result) == ["LD-014"]
    assert result.elf is not None
    assert result.elf.binds_now is flag.endswith("now")


def test_a_missing_library_hides_symbols_of_unknown_origin(
    compile_library: LibraryCompiler, tmp_path: Path, prober: Prober
) -> None:
    gone = compile_library(
        "libgone.so.4", "int gone(void) { return 1; }", "-Wl,-soname,libgone.so.4"
    )
    path = compile_library("libx.so", calls("gone", "TF_NewTensor"), str(gone))
    gone.unlink()

    result = prober.probe(make_candidate(path))

    assert rules_of(result) == ["LD-013", "LD-014"]
    assert result.problems[0].message == "libx.so needs libgone.so.4, which is not found"
    assert [symbol.name for symbol in result.missing_symbols] == ["TF_NewTensor"]


def test_the_host_stands_in_for_tensorflows_libraries(
    compile_library: LibraryCompiler, prober: Prober
) -> None:
    soname = "libtensorflow_framework.so.2"
    stub = compile_library(soname, "int TF_X(void) { return 1; }", f"-Wl,-soname,{soname}")
    path = compile_library("libx.so", calls("TF_X"), str(stub))

    assert rules_of(prober.probe(make_candidate(path))) == ["LD-014"]
    offer = HostExports(symbols=frozenset({"TF_X"}))
    result = probe(make_candidate(path), offer)
    assert result.loadable
    assert soname not in {library.name for library in result.libraries}


@pytest.mark.parametrize("version", ["tensorflow", "VERS_1.0", "of_tomorrow"])
def test_versions_of_tensorflow_ask_nothing_of_the_host(
    compile_library: LibraryCompiler, tmp_path: Path, version: str
) -> None:
    soname = "libtensorflow_framework.so.2"
    script = tmp_path / "versions"
    script.write_text(f"{version} {{ *; }};")
    options = (f"-Wl,-soname,{soname}", f"-Wl,--version-script={script}")
    stub = compile_library(soname, "int TF_X(void) { return 1; }", *options)
    path = compile_library("libx.so", calls("TF_X"), str(stub))

    result = probe(make_candidate(path), HostExports(symbols=frozenset({"TF_X"})))

    assert result.loadable
    assert rules_of(result) == []


def test_companions_are_checked_too(
    compile_library: LibraryCompiler, tmp_path: Path, prober: Prober
) -> None:
    source = "int TF_Deep(void); int companion(void) { return TF_Deep(); }"
    companion = compile_library("deps/libcompanion.so", source, "-Wl,-soname,libcompanion.so")
    path = compile_library("libx.so", calls("companion"), str(companion), "-Wl,-rpath,$ORIGIN/deps")

    result = prober.probe(make_candidate(path))

    assert [(symbol.name, symbol.needed_by) for symbol in result.missing_symbols] == [
        ("TF_Deep", "libcompanion.so")
    ]
    (found,) = [library for library in result.libraries if library.is_companion]
    assert (found.name, found.path) == ("libcompanion.so", str(tmp_path / "deps/libcompanion.so"))
    companion.write_bytes(ElfBuilder(tags={0x6FFFFEF5: 1 << 60}).build())
    damaged = prober.probe(make_candidate(path))
    assert rules_of(damaged) == ["LD-005"]
    assert "libcompanion.so" in damaged.problems[0].message
    assert damaged.kinds == {Kind.FILESYSTEM}


def _versioned(compile_library: LibraryCompiler, tmp_path: Path, soname: str, version: str) -> Path:
    """Build a plugin that needs `version` of `soname`, and put the real thing out of sight."""
    script = tmp_path / "versions"
    script.write_text(f"{version} {{ *; }};")
    options = (f"-Wl,-soname,{soname}", f"-Wl,--version-script,{script}")
    stub = compile_library(f"stub/{soname}", "int from_there(void) { return 1; }", *options)
    return compile_library("libx.so", calls("from_there"), str(stub))


def test_a_newer_glibc(compile_library: LibraryCompiler, tmp_path: Path, prober: Prober) -> None:
    path = _versioned(compile_library, tmp_path, "libc.so.6", "GLIBC_2.999")

    result = prober.probe(make_candidate(path))

    assert "LD-015" in rules_of(result)
    problem = next(problem for problem in result.problems if problem.rule == "LD-015")
    expected = f"libx.so needs GLIBC_2.999, this process runs glibc {running_glibc()}"
    assert problem.message == expected
    assert result.elf is not None
    assert result.elf.glibc_floor == "GLIBC_2.999"
    assert not dlopens(path)


def test_a_newer_version_of_another_library(
    compile_library: LibraryCompiler, tmp_path: Path, prober: Prober
) -> None:
    path = _versioned(compile_library, tmp_path, "libm.so.6", "GLIBCXX_3.4.999")

    result = prober.probe(make_candidate(path))

    assert "LD-016" in rules_of(result)
    problem = next(problem for problem in result.problems if problem.rule == "LD-016")
    assert "libx.so needs version GLIBCXX_3.4.999 of libm.so.6" in problem.message
    assert not dlopens(path)


def test_the_answer_is_that_of_dlopen(
    compile_library: LibraryCompiler, tmp_path: Path, prober: Prober
) -> None:
    present = compile_library("deps/libp.so", "int p(void) { return 1; }", "-Wl,-soname,libp.so")
    other = compile_library("deps/libq.so", "int q(void) { return 1; }", "-Wl,-soname,libq.so")
    here = "-Wl,-rpath,$ORIGIN/deps"
    variants = {
        "plain": (FILESYSTEM, ()),
        "libc": (calls("getpid", "abs"), ()),
        "libm": (
            FILESYSTEM + "double cos(double); double c(double x) { return cos(x); }",
            ("-lm",),
        ),
        "libm unnamed": (calls("lgamma_r"), ()),
        "python": (calls("PyErr_Occurred"), ()),
        "companion": (calls("p"), (str(present), here)),
        "companion by rpath": (calls("p"), (str(present), here, "-Wl,--disable-new-dtags")),
        "companion unreachable": (calls("p"), (str(present),)),
        "both": (calls("p", "q"), (str(present), str(other), here)),
        "one unlinked": (calls("p", "q"), (str(present), here)),
        "nobody": (calls("nobody_knows"), ()),
        "nobody, lazily": (calls("nobody_knows"), ("-Wl,-z,lazy",)),
        "c++": (calls("_ZSt9terminatev"), ("-lstdc++",)),
        "nodlopen": (FILESYSTEM, ("-Wl,-z,nodlopen",)),
        "sysv hash": (FILESYSTEM, ("-Wl,--hash-style=sysv",)),
    }

    for name, (source, options) in variants.items():
        path = compile_library("libx.so", source, *options)
        result = prober.probe(make_candidate(path))
        assert result.loadable is dlopens(path), (name, result.problems)


@pytest.mark.parametrize("damage", BROKEN_LIBRARIES)
def test_broken_libraries(broken_library: LibraryBreaker, damage: str, prober: Prober) -> None:
    result = prober.probe(make_candidate(broken_library(damage)))

    if damage == "sections-behind-the-end":
        assert {symbol.family for symbol in result.missing_symbols} <= {SymbolFamily.PLUGIN_API}
        return
    assert not result.loadable
    assert result.problems[0].rule in {
        "LD-004",
        "LD-005",
        "LD-006",
        "LD-007",
        "LD-008",
        "LD-009",
    }
    assert result.problems[0].path is None or result.problems[0].path == result.candidate.path


def test_what_is_not_a_file(broken_library: LibraryBreaker, prober: Prober) -> None:
    for path in (
        broken_library.pipe(),
        broken_library.directory(),
        broken_library.dangling_link(),
    ):
        result = prober.probe(make_candidate(path))
        assert rules_of(result) == ["LD-002"]
        assert result.elf is None
        assert result.kinds == frozenset()


def test_a_probe_leaves_no_files_open(compile_library: LibraryCompiler, tmp_path: Path) -> None:
    good = compile_library("libx.so", calls("cos"), "-lm")
    bad = tmp_path / "libbad.so"
    bad.write_bytes(ElfBuilder(tags={6: 1 << 60}).build())
    before = len(open_files())

    for path in (good, bad, good, tmp_path / "none.so"):
        probe(make_candidate(path), HostExports())
    assert len(open_files()) == before


def test_library_path_of_the_environment(
    compile_library: LibraryCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dep = compile_library("deps/libp.so", "int p(void) { return 1; }", "-Wl,-soname,libp.so")
    path = make_candidate(compile_library("libx.so", calls("p"), str(dep)))
    environment = {"LD_LIBRARY_PATH": str(tmp_path / "deps")}

    assert not probe(path, HostExports(), environment={}).loadable
    assert probe(path, HostExports(), environment=environment).loadable
    monkeypatch.setattr("os.geteuid", lambda: 4711)  # the linker ignores the variable then
    assert not probe(path, HostExports(), environment=environment).loadable


def test_what_is_preloaded_offers_symbols(
    compile_library: LibraryCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = compile_library("libtool.so", "int q(void) { return 1; }")
    path = make_candidate(compile_library("libx.so", calls("q")))
    environment = {"LD_PRELOAD": f"{tmp_path}/gone.so {tool}"}

    assert rules_of(probe(path, HostExports(), environment={})) == ["LD-014"]
    assert probe(path, HostExports(), environment=environment).loadable
    monkeypatch.setattr("os.geteuid", lambda: 4711)
    assert not probe(path, HostExports(), environment=environment).loadable


def test_the_installed_host_runtime() -> None:
    offer = host_exports()

    assert {"TF_NewStatus", "TF_SetStatus", "TF_GetCode", "TF_Message"} <= offer.symbols
    assert "libtensorflow_framework.so.2" in offer.sonames
    assert host_exports() is offer


def test_an_installation_without_a_host_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[HostExports.__module__]  # the package offers a function of this name
    monkeypatch.setattr(module, "package_directories", lambda: ("/none",))

    with pytest.raises(NotFoundError, match="install it again"):
        host_exports.__wrapped__()


def test_problems_know_their_rule(prober: Prober) -> None:
    (problem,) = prober.probe(make_candidate("/nowhere/libx.so")).problems

    assert problem.severity is Severity.ERROR
    assert problem.is_error
    assert problem.remedy == rule(problem.rule).remedy


@pytest.mark.wild
def test_plugins_in_the_wild(wild_plugins: WildPlugins) -> None:
    io, gcs = (make_candidate(path) for path in (wild_plugins.io_library, wild_plugins.gcs_library))
    bare = HostExports()

    with Prober(bare, environment={}) as prober:
        lacking = prober.probe(io)
        assert lacking.kinds == {Kind.FILESYSTEM}
        assert len(lacking.missing_symbols) == 27
        assert "tsl::mutex::unlock" in {symbol.readable for symbol in lacking.missing_symbols}
        names = {symbol.name for symbol in prober.probe(gcs).missing_symbols}
    assert names == {
        "TF_DefaultThreadOptions",
        "TF_GetCode",
        "TF_GetTempFileName",
        "TF_JoinThread",
        "TF_NowSeconds",
        "TF_SetStatus",
        "TF_StartThread",
        "TF_VLog",
    }
    with Prober(host_exports()) as prober:
        assert prober.probe(io).problems == ()
        assert prober.probe(gcs).problems == ()
