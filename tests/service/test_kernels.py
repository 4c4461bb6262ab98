"""A service registers the kernels and definitions of operations that plugins bring."""

from __future__ import annotations

import gc
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from modular_tf.errors import ClosedError, InvalidArgumentError
from modular_tf.service.configuration import Config
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from tests.contrib.built_plugin import built_plugin
from tests.fixtures.compiler import compile_object, link_library

SOURCE = Path(__file__).parents[1] / "loading" / "kernel_plugin.cc"


@pytest.fixture
def build(tmp_path):
    """Return a function that builds the plugin, with bytes of its own."""

    def make(*macros, name="libkernels.so"):
        built = link_library(name, [compile_object(SOURCE, macros)], ["-lstdc++"])
        (tmp_path / name).unlink(missing_ok=True)  # a mapped file stays as it is
        place = Path(shutil.copy(built, tmp_path))
        with place.open("ab") as stream:  # where no linker looks
            stream.write(os.urandom(16))
        return place

    return make


def open_service(*plugins, **settings):
    return PluginService(plugin_paths=plugins, bundled=False, config=Config(**settings))


@pytest.mark.parametrize("macros", [(), ("INIT=InitPlugin",)], ids=["TF_InitKernel", "draft"])
@pytest.mark.parametrize("load", ["eager", "lazy"])
def test_kernels_are_listed(load, macros, build):
    with open_service(build(*macros), load=load) as service:
        (record,) = service.load().plugins
        assert (record.state, record.reasons, record.warnings) == (State.LOADED, (), ())
        assert (record.kinds, record.kernels, record.ops) == (("kernel",), 2, 1)
        assert record.as_dict()["kernels"] == 2

        kernels = service.kernels()

        assert [(each.name, each.priority) for each in kernels] == [("First", 1), ("Second", 2)]
        assert {each.op for each in kernels} == {"FixtureOp"}
        assert {each.plugin for each in kernels} == {"kernels"}
        assert str(kernels[0].constraints["T"]) == "float"
        assert kernels[0].host_args == ("x",)
        (definition,) = service.op_definitions("FixtureOp")
        assert definition.source == "kernels"


def test_the_library_is_mapped_when_somebody_asks_for_kernels(build):
    plugin = build()
    with open_service(plugin, load="lazy", first_contact="always") as service:
        assert service.load()["kernels"].kernels == 2
        assert service.entry(plugin).library is None

        assert len(service.kernels("FixtureOp", "CPU", "kernels")) == 2
        assert service.entry(plugin).library is not None
        assert service.plugins()[0].warnings == ()


def test_services_share_the_kernels_of_a_library_and_none_of_another(build):
    plugin = build()
    with (
        open_service(plugin) as one,
        open_service(plugin) as two,
        open_service(build(name="liby.so")) as other,
    ):
        for service in (one, two, other):
            service.load()

        assert one.kernels() == two.kernels() != ()
        assert one.op_definitions("FixtureOp") == two.op_definitions("FixtureOp")
        assert [each.name for each in other.op_definitions("FixtureOp")] == ["FixtureOp"]
        assert not set(one.kernels()).intersection(other.kernels())


@pytest.mark.parametrize(
    ("macro", "warnings", "names"),
    [
        ("IN_CONSTRUCTOR", [], ["Early"]),
        ("NOTHING", ["KN-004"], []),
        ("PRINTS", ["LD-065"], ["First", "Second"]),
        ("PYTHON_EXITS", [], ["First", "Second"]),
    ],
)
def test_what_does_no_harm_is_loaded_with_what_it_registers(macro, warnings, names, build):
    with open_service(build(macro), first_contact="always") as service:
        (record,) = service.load().plugins

        assert (record.state, record.reasons) == (State.LOADED, ())
        assert [warning.rule for warning in record.warnings] == warnings
        assert [each.name for each in service.kernels()] == names


@pytest.mark.parametrize("first_contact", ["always", "never"])
def test_what_throws_registers_nothing(first_contact, build):
    with open_service(build("THROWS"), first_contact=first_contact) as service:
        (record,) = service.load().plugins

        assert record.state is State.FAILED
        assert [reason.rule for reason in record.reasons] == ["KN-005"]
        assert "no kernels today" in record.reasons[0].message
        assert service.kernels() == ()


def test_operations_of_a_closed_service_are_closed():
    with PluginService() as service:
        service.load("host_device", built_plugin("host_kernels"))
        device = service.device("CPU:0")
        add, variable = device.op("AddV2"), device.variable("float32")
        anywhere = service.op("AddV2")
        ones = np.ones(2, "float32")
        add(ones, ones)
        variable.assign(ones)

    for use in (
        lambda: add(ones, ones),
        lambda: add.explain(ones, ones),
        lambda: anywhere(ones, ones),
        lambda: device.op("AddV2"),
        lambda: device.run("AddV2", ones, ones),
        lambda: device.variable("float32"),
        lambda: variable.assign(ones),
        variable.value,
        service.kernels,
    ):
        with pytest.raises(ClosedError):
            use()


def test_an_array_of_another_service_is_refused():
    with PluginService() as one, PluginService() as two:
        for service in (one, two):
            service.load("host_device", built_plugin("host_kernels"))
        array = two.device("CPU:0").put(np.ones(2, "float32"))

        with pytest.raises(InvalidArgumentError, match="that of another plugin service"):
            one.device("CPU:0").op("Relu")(array)


def test_kernel_objects_end_with_a_device_that_was_closed(tmp_path):
    library = Path(shutil.copy(built_plugin("host_device"), tmp_path))

    def used_executor():
        device = service.device("CPU:0")
        device.op("Relu")(np.ones(2, "float32"))
        return device.executor

    with open_service(library, built_plugin("host_kernels")) as service:
        service.load()
        old = used_executor()
        other_bytes = library.read_bytes() + b"other"
        library.unlink()
        library.write_bytes(other_bytes)
        service.refresh()
        old.close()
        used_executor()
        del old
        gc.collect()
        assert (service.refresh(), service.draining) == ([], 0)


@pytest.mark.parametrize("device_type", ["CPU", "DEFAULT"])
def test_an_operation_finds_a_device_that_its_kernels_serve(device_type, build):
    with PluginService() as service:
        service.load("host_device", build(f'DEVICE_TYPE="{device_type}"'))

        assert [each.registration.name for each in explain(service)] == ["First", "Second"]
        assert explain(service) == explain(service.device("CPU:0"))


def explain(where):
    return where.op("FixtureOp").explain(np.ones(2, "float32"))


def test_a_renewed_plugin_brings_new_kernels_and_what_is_wrong_with_them(build):
    plugin = build()
    with open_service(plugin, load="eager") as service:
        service.load()
        for macros, rules in (((), []), (("TWICE",), ["KN-015"]), ((), [])):
            old = service.kernels()
            build(*macros)
            (change,) = service.refresh()

            assert change.record.kernels == len(service.kernels()) >= 2
            assert not set(service.kernels()).intersection(old)
            assert [each.rule_id for each in change.record.warnings] == rules
            assert service.plugins()[0].warnings == change.record.warnings
            assert service.op_definitions("FixtureOp")
