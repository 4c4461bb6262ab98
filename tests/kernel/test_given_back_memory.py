"""Memory that kernels give back while work of theirs may be queued that uses it."""

from __future__ import annotations

from tests.kernel.kernels import library_to_open_again

CODE = """
    import ctypes, gc, sys, threading, time
    from modular_tf import PluginService
    from modular_tf.device.device import Device
    from modular_tf.native.ffi import lib

    Device.is_host = property(lambda self: False)  # kernels of the device have its streams

    with PluginService() as service:
        service.load("host_device", sys.argv[1])
        device = service.device("CPU:0")
        operation = device.op("MtfTemporaryInThread")
        executor = device.executor
        held = lambda: lib.mtf_executor_held_objects(executor.native)
        stream = executor.context.compute

        def await_threads():  # which go on after `done`
            while running.value:
                time.sleep(0.001)

        def settled():
            await_threads()
            operation()
            await_threads()
            stream.block_until_done()
            gc.collect()
            return held()

        operation(late=True)  # maps the library, which finds the host only so
        library = ctypes.CDLL(sys.argv[1])
        running = ctypes.c_int.in_dll(library, "temporary_kernels_running")
        before = settled()
        passes = threading.Event()
        stream.add_callback(lambda: passes.wait(30))
        for late in (False, True):
            output = operation(late=late)
            await_threads()
            assert held() == before + 2, (late, before, held())  # the output and the temporary
            del output
            before += 1
        passes.set()
        assert settled() <= before - 2
"""


def test_temporaries_of_other_threads_stay_until_the_stream_has_passed(run_forked):
    run_forked(CODE, library_to_open_again("temporary_kernels"))
