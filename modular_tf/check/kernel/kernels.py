"""Calls of kernels through this package: announced, made, and looked at from all sides."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from modular_tf.check.kernel.samples import Output
from modular_tf.check.memory_watch import MEMORY_RULES, raise_harm_to_heap
from modular_tf.device.arrays.array_content import ArrayContent, content_of
from modular_tf.device.device import DeviceArray
from modular_tf.errors import ModularTFError, NotFoundError
from modular_tf.kernel.inputs import Given, place_input
from modular_tf.kernel.prepared_kernel import PreparedKernel
from modular_tf.kernel.registration import DEFAULT_DEVICE, DEVICE_PLUGGABLE
from modular_tf.kernel.registry import KernelRegistry
from modular_tf.kernel.running import KernelRunner
from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from modular_tf.check.calls import CallJournal
    from modular_tf.check.kernel.samples import Sample, SampleTensor
    from modular_tf.device.device import Device
    from modular_tf.kernel.op_definition import OpDefinition
    from modular_tf.kernel.registration import KernelRegistration
    from modular_tf.kernel.site import KernelInput, KernelSite
    from modular_tf.service.service import PluginService


class LostCallError(Exception):
    """The call ended the process of an earlier check."""


class Kernels:
    """The kernels of a plugin, and the devices that they work on. [any thread]

    `kernels` are in the plugin's order; `lost_calls` are those of `Target`.
    """

    def __init__(
        self,
        service: PluginService,
        kernels: Sequence[KernelRegistration],
        lost_calls: Mapping[str, str],
        journal: CallJournal,
    ) -> None:
        self.kernels = kernels
        self._service = service
        self._devices = service.devices()
        self._runner = KernelRunner(KernelRegistry())  # what it runs is chosen here
        self._lost_calls = lost_calls
        self._journal = journal

    def definition_of(self, registration: KernelRegistration) -> OpDefinition | None:
        """Return the definition of a kernel's operation, None where nobody defines it."""
        with suppress(NotFoundError):
            return self._service.op_definitions(registration.op)[0]
        return None

    def device_of(self, registration: KernelRegistration) -> Device | None:
        """Return a device that a kernel works on, None where there is none."""
        wanted = registration.device_type
        is_any = wanted in (DEFAULT_DEVICE, DEVICE_PLUGGABLE)
        return next((d for d in self._devices if is_any or d.device_type == wanted), None)

    def prepare(self, sample: Sample) -> PreparedKernel:
        """Return a new kernel object for a sample.

        Raises:
            ModularTFError: The plugin cannot make it.
            LostCallError: It ended a process before.
        """
        registration = sample.registration
        with self._called(sample.call("create")):
            device = self.device_of(registration)
            if device is None:
                raise LostCallError(f"no device of type {registration.device_type}")
            site = self._runner.site_of(device)
            return PreparedKernel(registration, sample.node, sample.definition, site)

    def run(self, kernel: PreparedKernel, sample: Sample) -> list[Output]:
        """Have a kernel object compute a sample, and return what came out.

        Raises:
            ModularTFError: The kernel failed.
            LostCallError: It ended a process before.
        """
        outputs = self.compute(kernel, sample, self.placed(kernel, sample))
        kinds = kernel.node.output_types
        return [
            Output(kind, array.shape, _bytes_of(array))
            for kind, array in zip(kinds, outputs, strict=True)
        ]

    def placed(self, kernel: PreparedKernel, sample: Sample) -> list[KernelInput]:
        """Return the tensors of a sample where a kernel wants them."""
        site = kernel.site
        return [
            place_input(site, _given(each, site, on_host=on_host), on_host=on_host)
            for each, on_host in zip(sample.tensors, kernel.host_inputs, strict=True)
        ]

    def compute(
        self, kernel: PreparedKernel, sample: Sample, placed: Sequence[KernelInput]
    ) -> list[DeviceArray]:
        """Have a kernel object compute; raises as `run`."""
        with self._called(sample.call("compute")):
            outputs = self._runner.run(kernel, placed, frozenset(), None)
            kernel.site.device.synchronize()
        return outputs

    def handles(self) -> int:
        """Return how many tensors plugins have."""
        return int(lib.mtf_kernel_tensor_handles())

    def close(self) -> None:
        """End all kernel objects."""
        self._runner.close()

    @contextmanager
    def _called(self, call: str) -> Iterator[None]:
        name = call.partition("(")[0]
        if name in self._lost_calls:
            raise LostCallError(f"{name} ended a process: see {self._lost_calls[name]}")
        self._journal.enter(call)
        came = ""
        try:
            yield
        except ModularTFError as error:
            came = error.message
            raise
        finally:
            self._journal.leave(call, came)
            raise_harm_to_heap(call, MEMORY_RULES["kernel"])


def input_bytes(placed: KernelInput) -> bytes:
    """Return what an input holds now."""
    if placed.is_on_host:
        return bytes(ffi.buffer(ffi.cast("char *", placed.address), placed.n_bytes))
    return _bytes_of(placed.kept[0])


def _bytes_of(output: Any) -> bytes:
    if isinstance(output, DeviceArray):
        return bytes(content_of(output.to_host()).data)
    return repr(output.tolist()).encode()  # strings, of any length each


def _given(tensor: SampleTensor, site: KernelSite, *, on_host: bool) -> Given:
    dtype: Any = tensor.kind.dlpack
    content = ArrayContent(tensor.shape, dtype, is_padded=False, data=tensor.data)
    source = content if on_host and not site.is_host else site.device.put(content)
    return Given(tensor.kind, tensor.shape, source)
