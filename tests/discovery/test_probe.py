"""The probe answers what dlopen would, and why, before anything is opened."""

import sys

import pytest

from modular_tf.discovery.candidate import Kind
from modular_tf.discovery.linking.dynamic_linker import running_program
from modular_tf.discovery.linking.host_exports import HostExports, host_exports
from modular_tf.discovery.linking.link_check import running_glibc
from modular_tf.discovery.linking.symbol_families import SymbolFamily
from modular_tf.discovery.probe import probe
from modular_tf.errors import NotFoundError
from tests.discovery.conftest import DEVICE, FILESYSTEM, make_candidate, rules_of
from tests.discovery.elf_builder import ElfBuilder
from tests.discovery.site_folder import install

TENSORFLOW = "libtensorflow_framework.so.2"
ITSELF = "libneedy.so needs 1 C++ function of TensorFlow"


def calls(*functions):
    """Return a filesystem plugin that calls functions that it does not define."""
    lines = [f"int {name}(void); int use_{name}(void) {{ return {name}(); }}" for name in functions]
    return "\n".join([FILESYSTEM, *lines])


@pytest.fixture
def dlopens(run_forked):
    """Return which of some libraries dlopen with RTLD_NOW accepts, in a process of its own."""
    code = """
        import ctypes, os, sys
        for path in sys.argv[1:]:
            try:
                ctypes.CDLL(path, os.RTLD_NOW)
            except OSError:
                continue
            print(path)
    """
    return lambda *paths: run_forked(code, *paths).stdout.splitlines()


def test_a_good_plugin(compile_library, prober):
    path = compile_library("libgood.so", FILESYSTEM + DEVICE, "-Wl,-soname,libgood.so.1")

    result = prober.probe(make_candidate(path))

    assert result.loadable
    assert result.problems == result.missing_symbols == ()
    assert result.kinds == {Kind.FILESYSTEM, Kind.DEVICE}
    assert result.candidate.path == str(path)
    assert result.elf.soname == "libgood.so.1"
    assert result.elf.init_symbols == ("TF_InitPlugin", "SE_InitPlugin")
    assert result.elf.size == path.stat().st_size
    assert result.elf.byte_order == sys.byteorder


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
def test_kinds(compile_library, prober, symbol, kind):
    result = prober.probe(make_candidate(compile_library("libx.so", f"void {symbol}(void) {{}}")))

    served = kind in {Kind.FILESYSTEM, Kind.DEVICE, Kind.KERNEL}
    assert (result.kinds, result.loadable) == ({kind}, served)
    assert rules_of(result) == ([] if served else ["LD-012"])
    if not served:
        assert result.problems[0].message == f"libx.so exports only {symbol}"


@pytest.mark.parametrize(
    ("source", "rules"),
    [
        ('__attribute__((visibility("hidden"))) void TF_InitPlugin(void) {}', ["LD-010"]),
        ("int TF_InitPlugin = 1; __thread int SE_InitPlugin;", ["LD-011", "LD-011"]),
    ],
)
def test_an_init_symbol_is_an_exported_function(compile_library, prober, source, rules):
    result = prober.probe(make_candidate(compile_library("libx.so", source)))

    assert rules_of(result) == rules
    if rules == ["LD-010"]:
        assert result.kinds == frozenset()
        assert result.elf is not None
    else:
        assert result.problems[0].message == "TF_InitPlugin of libx.so is data or thread-local"


_HERE = running_program().machine


@pytest.mark.parametrize(
    ("made", "rule_id", "kinds", "words"),
    [
        ({"machine": 243}, "LD-008", {Kind.FILESYSTEM}, "for riscv64, this process runs on"),
        ({"machine": 22, "order": ">"}, "LD-008", set(), "for s390x, this process runs on"),
        ({"machine": 8, "bits": 32}, "LD-008", set(), "is built for mips"),
        ({"machine": _HERE, "bits": 32}, "LD-006", set(), ""),
        ({"machine": _HERE, "order": ">"}, "LD-007", set(), ""),
    ],
)
def test_libraries_for_other_machines(tmp_path, prober, made, rule_id, kinds, words):
    """Of the supported word size and byte order, they are listed as what they are."""
    path = tmp_path / "libforeign.so"
    path.write_bytes(ElfBuilder(**made).build())

    result = prober.probe(make_candidate(path))

    assert (rules_of(result), result.kinds) == ([rule_id], kinds)
    assert words in result.problems[0].message


# -- symbols that nobody offers -------------------------------------------------------------------


def test_missing_symbols_by_family(compile_library, prober):
    kernels = ["TF_RegisterKernelBuilder", *(f"TFE_Op{at}" for at in range(7))]
    others = ["TF_NewStatus", "_ZN3tsl5mutex6unlockEv", "nobody_knows", "PyLong_FromLong"]
    path = compile_library("libneedy.so", calls(*kernels, *others))

    result = prober.probe(make_candidate(path))

    by_family = {symbol.family: symbol for symbol in result.missing_symbols}
    absent = {SymbolFamily.PYTHON, SymbolFamily.C_LIBRARY, SymbolFamily.CXX_LIBRARY}
    assert set(by_family) == {*SymbolFamily} - absent
    mutex = by_family[SymbolFamily.TENSORFLOW_CXX]
    assert (mutex.name, mutex.readable) == ("_ZN3tsl5mutex6unlockEv", "tsl::mutex::unlock")
    assert rules_of(result) == ["LD-014"] * 4
    messages = {problem.message: problem.remedy for problem in result.problems}
    of_kernels = next(message for message in messages if "for kernels" in message)
    assert of_kernels.startswith("libneedy.so needs 8 symbols of TensorFlow's C API for kernels")
    assert of_kernels.endswith(" and 3 more")
    assert messages[of_kernels] == SymbolFamily.KERNEL_API.remedy
    assert f"{ITSELF} itself: tsl 1" in messages


ABSL = [f"_ZN4absl{len(name)}{name}Ev" for name in ("One", "Two", "Three")]
ORIGINS = [*ABSL, "AbslInternalSleepFor_x", "_ZN6google8protobuf3OneEv", "_ZN3tsl3OneEv"]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (ORIGINS, "6 C++ functions of TensorFlow itself: absl 4, protobuf 1, tsl 1"),
        (
            ["_ZN4absl12lts_202508143OneEv", "AbslInternalSleepFor_lts_20250814"],
            "2 C++ functions of TensorFlow itself: absl (LTS 20250814) 2",
        ),
        (
            ["_ZN6vendor4openEi"],
            "1 symbol of other libraries that no library defines: vendor::open",
        ),
    ],
    ids=["origins", "release of Abseil", "as people write them"],
)
def test_functions_are_counted_by_their_origins(compile_library, prober, names, words):
    result = prober.probe(make_candidate(compile_library("libneedy.so", calls(*names))))

    (problem,) = result.problems
    assert (problem.rule, problem.message) == ("LD-014", f"libneedy.so needs {words}")
    assert {symbol.name for symbol in result.missing_symbols} == set(names)


@pytest.mark.parametrize(
    ("requires", "named"),
    [
        ("tensorflow==2.21.*", " itself (its package requires tensorflow==2.21.*)"),
        (
            'tensorflow-cpu (<2.17.0,>=2.16.0) ; extra == "cpu"',
            " itself (its package requires tensorflow-cpu<2.17.0,>=2.16.0)",
        ),
        ("tensorflow", " itself"),
        (f"tensorflow=={'1' * 200}", " itself"),
        pytest.param(f"tensorflow==1{' ' * 100_000}$", " itself", id="many blanks"),
        pytest.param(None, " itself", id="no metadata"),
    ],
)
def test_the_tensorflow_that_a_package_requires_is_named(
    compile_library, prober, tmp_path, monkeypatch, requires, named
):
    if requires is not None:
        metadata = install(tmp_path / "site", "needy")
        with (metadata / "METADATA").open("a") as file:
            file.write(f"Requires-Dist: six\nRequires-Dist: {requires}\n\n")
            file.write("Requires-Dist: tensorflow==1\n")  # of the description
    monkeypatch.syspath_prepend(tmp_path / "site")
    path = compile_library("libneedy.so", calls("_ZN3tsl3OneEv"))

    (problem,) = prober.probe(make_candidate(path)._replace(distribution="needy")).problems

    assert problem.message == f"{ITSELF}{named}: tsl 1"


KERNELS = "void TF_NewKernelBuilder(void); void use(void) { TF_NewKernelBuilder(); }"


def test_a_device_plugin_may_ask_for_functions_for_kernels(compile_library, prober, monkeypatch):
    other = "void nobody_knows(void); void use_more(void) { nobody_knows(); }"
    plugin = make_candidate(compile_library("libd.so", DEVICE + KERNELS))

    result = prober.probe(plugin)
    refused = prober.probe(make_candidate(compile_library("libo.so", DEVICE + KERNELS + other)))

    assert (result.loadable, rules_of(result)) == (True, ["LD-017"])
    assert [symbol.name for symbol in result.missing_symbols] == ["TF_NewKernelBuilder"]
    assert (refused.loadable, sorted(rules_of(refused))) == (False, ["LD-014", "LD-017"])
    monkeypatch.setattr("modular_tf.discovery.linking.link_check.running_glibc", lambda: "2.27")
    assert "LD-014" in rules_of(prober.probe(plugin))  # it takes nothing in their place


@pytest.mark.parametrize("flag", ["-Wl,-z,lazy", "-Wl,-z,now"])
def test_what_the_host_offers_or_is_weak_is_not_missing(compile_library, prober, flag):
    """However the library is bound."""
    weak = "__attribute__((weak)) void TF_Absent(void); "
    weak += "void use(void) { if (TF_Absent) TF_Absent(); }"
    path = compile_library("libneedy.so", calls("TF_NewStatus", "nobody_knows") + weak, flag)
    offer = HostExports(symbols=frozenset({"TF_NewStatus", "nobody_knows"}))

    assert rules_of(prober.probe(make_candidate(path))) == ["LD-014", "LD-014"]
    result = probe(make_candidate(path), offer)
    assert (result.loadable, result.missing_symbols) == (True, ())
    assert ("TF_Absent", True) in {(symbol.name, symbol.weak) for symbol in result.elf.undefined}
    assert result.elf.binds_now is flag.endswith("now")


# -- libraries that nobody has --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sonames", "words"),
    [
        (
            [f"libgone{n}.so" for n in range(7)],
            (
                "7 libraries that are not found: libgone0.so, libgone1.so, libgone2.so,"
                " libgone3.so, libgone4.so and 2 more"
            ),
        ),
        (
            ["libsycl.so.99", "libmkl_sycl_blas.so.99", "libintlc.so.99"],
            (
                "3 libraries that are not found (all of Intel's oneAPI runtime):"
                " libsycl.so.99, libmkl_sycl_blas.so.99, libintlc.so.99"
            ),
        ),
        (["libcudart.so.99"], "libcudart.so.99 of NVIDIA's CUDA, which is not found"),
        (
            ["libfoo.so.99", "libsycl.so.99", "libcudart.so.99", "libirng.so.99"],
            (
                "4 libraries that are not found (2 of Intel's oneAPI runtime, 1 of NVIDIA's CUDA):"
                " libfoo.so.99, libsycl.so.99, libcudart.so.99, libirng.so.99"
            ),
        ),
    ],
    ids=["many", "of one family", "one", "of several families"],
)
def test_missing_libraries_are_one_sentence(compile_library, prober, sonames, words):
    gone = [
        compile_library(soname, f"int f{n}(void) {{ return 1; }}", f"-Wl,-soname,{soname}")
        for n, soname in enumerate(sonames)
    ]
    called = calls(*(f"f{n}" for n in range(len(sonames))))
    path = compile_library("libx.so", called, *map(str, gone))
    for library in gone:
        library.unlink()

    (problem,) = prober.probe(make_candidate(path)).problems

    assert (problem.rule, problem.message) == ("LD-013", f"libx.so needs {words}")


def test_a_missing_library_hides_symbols_of_unknown_origin(compile_library, prober):
    text = "int gone(void) { return 1; } int TF_NewTensor(void) { return 1; }"
    library = compile_library("libgone.so.4", text, "-Wl,-soname,libgone.so.4")
    path = compile_library("libx.so", calls("gone", "TF_NewTensor"), str(library))
    library.unlink()

    result = prober.probe(make_candidate(path))

    assert rules_of(result) == ["LD-013", "LD-014"]
    assert result.problems[0].message == "libx.so needs libgone.so.4, which is not found"
    assert [symbol.name for symbol in result.missing_symbols] == ["TF_NewTensor"]


def test_companions_are_checked_too(compile_library, tmp_path, prober):
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


@pytest.mark.parametrize(
    ("soname", "version", "rule_id", "words"),
    [
        ("libc.so.6", "GLIBC_2.999", "LD-015", f", this process runs glibc {running_glibc()}"),
        ("libm.so.6", "GLIBCXX_3.4.999", "LD-016", " of libm.so.6"),
    ],
)
def test_a_newer_version_of_a_library_of_the_system(
    compile_library, tmp_path, prober, dlopens, soname, version, rule_id, words
):
    script = tmp_path / "versions"
    script.write_text(f"{version} {{ *; }};")
    options = (f"-Wl,-soname,{soname}", f"-Wl,--version-script,{script}")
    stub = compile_library(f"stub/{soname}", "int from_there(void) { return 1; }", *options)
    path = compile_library("libx.so", calls("from_there"), str(stub))

    result = prober.probe(make_candidate(path))

    problem = next(problem for problem in result.problems if problem.rule == rule_id)
    needed = f"version {version}" if rule_id == "LD-016" else version
    assert f"libx.so needs {needed}{words}" in problem.message
    assert rule_id == "LD-016" or result.elf.glibc_floor == version
    assert dlopens(path) == []


def test_the_answer_is_that_of_dlopen(compile_library, prober, dlopens):
    p = str(compile_library("deps/libp.so", "int p(void) { return 1; }", "-Wl,-soname,libp.so"))
    q = str(compile_library("deps/libq.so", "int q(void) { return 1; }", "-Wl,-soname,libq.so"))
    here = "-Wl,-rpath,$ORIGIN/deps"
    cosine = FILESYSTEM + "double cos(double); double c(double x) { return cos(x); }"
    variants = {
        "plain": (FILESYSTEM, ()),
        "libc": (calls("getpid", "abs"), ()),
        "libm": (cosine, ("-lm",)),
        "libm-unnamed": (calls("lgamma_r"), ()),
        "python": (calls("PyErr_Occurred"), ()),
        "companion": (calls("p"), (p, here)),
        "companion-by-rpath": (calls("p"), (p, here, "-Wl,--disable-new-dtags")),
        "companion-unreachable": (calls("p"), (p,)),
        "both": (calls("p", "q"), (p, q, here)),
        "one-unlinked": (calls("p", "q"), (p, here)),
        "nobody": (calls("nobody_knows"), ()),
        "nobody-lazily": (calls("nobody_knows"), ("-Wl,-z,lazy",)),
        "c++": (calls("_ZSt9terminatev"), ("-lstdc++",)),
        "nodlopen": (FILESYSTEM, ("-Wl,-z,nodlopen",)),
        "sysv-hash": (FILESYSTEM, ("-Wl,--hash-style=sysv",)),
    }

    for name, (source, options) in variants.items():
        path = compile_library(f"{name}.so", source, *options)
        result = prober.probe(make_candidate(path))
        assert result.loadable is bool(dlopens(path)), (name, result.problems)


def test_variables_of_the_linker_count(compile_library, tmp_path, monkeypatch):
    dep = compile_library("deps/libp.so", "int p(void) { return 1; }", "-Wl,-soname,libp.so")
    tool = compile_library("libtool.so", "int q(void) { return 1; }")
    needing = make_candidate(compile_library("libx.so", calls("p"), str(dep)))
    asking = make_candidate(compile_library("liby.so", calls("q")))
    paths = {"LD_LIBRARY_PATH": str(tmp_path / "deps")}
    # Without its folder, whose name may have a blank: that would end the name in LD_PRELOAD.
    preloaded = {"LD_PRELOAD": f"gone.so {tool.name}", "LD_LIBRARY_PATH": str(tmp_path)}

    for plugin, environment, rule_id in ((needing, paths, "LD-013"), (asking, preloaded, "LD-014")):
        assert rules_of(probe(plugin, HostExports(), environment={})) == [rule_id]
        assert probe(plugin, HostExports(), environment=environment).loadable
        with monkeypatch.context() as patch:
            patch.setattr("os.geteuid", lambda: 4711)  # the linker ignores them then
            assert not probe(plugin, HostExports(), environment=environment).loadable


def test_the_installed_host_runtime(monkeypatch):
    offer = host_exports()
    assert {"TF_NewStatus", "TF_SetStatus", "TF_GetCode", "TF_Message"} <= offer.symbols
    assert TENSORFLOW in offer.sonames
    assert host_exports() is offer

    module = sys.modules[HostExports.__module__]  # the package offers a function of this name
    monkeypatch.setattr(module, "package_directories", lambda: ("/none",))
    with pytest.raises(NotFoundError, match="install it again"):
        host_exports.__wrapped__()
