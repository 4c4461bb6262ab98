"""Types of the compiled tensor (dlpack/*.c): memory that others take without a copy, and theirs.

All of it needs the GIL, as every Python object does; only deleters run without it, on any thread.
A subinterpreter cannot import it: deleters know the main interpreter alone.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from typing_extensions import CapsuleType, Self

_Object = TypeVar("_Object")

class Tensor:
    """Memory with a shape, kept alive by its owner and by each user of the tensor. [any thread].

    A subclass that works on a stream sets `_needs_sync` while there is work in flight; then
    `_before_export` is called before anybody sees the memory. It may raise to refuse, as a closed
    array does. Its argument is -1 where the consumer orders its work by the device's work stream
    (the C exchange table): then it does not wait. `_export_elsewhere` is called for copies and
    other devices. A subclass that can be closed calls `_end_memory` then: users of the memory keep
    it, exports under way included.

    `_data_type` is a number of a subclass for what elements stand for besides their DLPack type, as
    quantized integers do; 0 for nothing. A tensor that is made of another one by DLPack keeps that
    one, so that a tensor which comes back again and again keeps one other and no chain.

    Args:
        address: Of the first element. 0 only where there is no element.
        shape: At most 64 sizes.
        strides: In elements, of any sign; None for C order without gaps.
        dlpack_dtype: Code, bits and lanes (`modular_tf.abi.dlpack_elements`).
        dlpack_device: Type and number (`modular_tf.abi.dlpack_devices`); host, pinned and managed
            memory has number 0, whatever is given.
        owner: Kept as long as anybody has the memory.
        read_only: Whether consumers must not write.
        is_copied: Whether the memory was copied for the consumer who gets it.
        is_padded: Whether elements of less than 8 bits have bytes of their own.

    Raises:
        ValueError: The description is impossible, or the tensor has one already.
    """

    __dlpack_c_exchange_api__: Any
    _needs_sync: bool
    _data_type: int

    def __init__(
        self,
        address: int,
        shape: Sequence[int],
        strides: Sequence[int] | None,
        dlpack_dtype: tuple[int, int, int],
        dlpack_device: tuple[int, int],
        owner: object,
        read_only: bool = False,
        *,
        is_copied: bool = False,
        is_padded: bool = False,
    ) -> None: ...
    @property
    def address(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int:
        """Elements."""
    @property
    def nbytes(self) -> int:
        """Bytes of the elements, gaps not counted."""
    @property
    def dlpack_dtype(self) -> tuple[int, int, int]: ...
    @property
    def dlpack_device(self) -> tuple[int, int]: ...
    @property
    def read_only(self) -> bool:
        """Whether not to write; legacy producers cannot say, and count as read-only."""
    @property
    def is_copied(self) -> bool:
        """Whether the memory was copied by its producer for this import."""
    @property
    def is_padded(self) -> bool: ...
    @property
    def owner(self) -> object:
        """What keeps the memory: what was given, or the tensor that this one is a view of."""
    @property
    def _n_exports(self) -> int:
        """How many managed tensors, buffers and views there are, with exports under way."""

    @property
    def _is_ended(self) -> bool:
        """Whether `_end_memory` was called."""

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Return a capsule: legacy without `max_version`, else of version 1.3.

        Memory with negative strides is copied, unless `copy` is False: there are consumers that
        end the process over it.

        Raises:
            BufferError: The memory cannot be described or moved as asked.
            ValueError: An argument makes no sense, such as a stream for host memory.
        """
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> Any:
        """Return a copy as a numpy array (see `copy_to_numpy`); `__buffer__` gives a view."""
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def _before_export(self, stream: Any, /) -> None:
        """Wait until the memory may be read on `stream`; None is the host. Here: nothing."""
    def _export_elsewhere(
        self, stream: Any, dl_device: tuple[int, int] | None, copy: bool | None, /
    ) -> Tensor:
        """Return a tensor on `dl_device` (None: where it is). Here: host memory only.

        `BufferError` if it cannot be done, or only with a copy and `copy` is False.
        """
    def _end_memory(self) -> None:
        """Drop the owner once nobody uses the memory, and call `_before_export` for each export.

        Where that does not raise, exports are refused with a BufferError. A description that was
        borrowed by the C exchange table keeps the memory as long as the tensor.
        """

def consume(capsule: object, /) -> Tensor:
    """Take over what a capsule of either kind holds; the capsule is left alone on an error.

    `ValueError` if it is no DLPack capsule, or a consumed one. `BufferError` if it holds what
    cannot be used here: another major version, which its deleter gets back at once, a foreign
    kDLExtDev device, a handle instead of an address, unknown numbers, elements at NULL.
    """

def repacked(tensor: Tensor, is_padded: bool, /) -> Tensor:
    """Return a copy in host memory whose elements of less than 8 bits are packed, or padded.

    Bits above a padded element are 0 in the copy. `BufferError` for a tensor that is not in host
    memory, or not compact.
    """

def bytes_of_elements(shape: Sequence[int], dtype: tuple[int, int, int], is_padded: bool, /) -> int:
    """Return the bytes of elements without gaps; padding gives each lane whole bytes of its own.

    `ValueError` if there is no such element type, or no memory is so large.
    """

def owned_pointer(pointer: int, free: int, /) -> object:
    """Return what owns memory of C until nobody has it; the collector does not finalize it.

    `free` is the address of a function that takes `pointer`, which is not 0; it is called without
    the GIL.
    """

def stat_path(
    function: int, filesystem: int, path: bytes, made_of: Callable[..., _Object], /
) -> _Object | int:
    """Return the statistics of a file, or the address of an error, which the caller frees.

    `function` is the address of the core's `mtf_stat_path`, called without the GIL; `filesystem` is
    that of an `mtf_filesystem`, which the caller keeps. `made_of` is the type of the result: a
    tuple of `length`, `mtime_nsec` and `is_directory`.
    """

def note_interpreter_ends() -> None:
    """Note that Python is about to end on this thread, which can still run deleters then."""

def import_by_table(producer: object, /) -> Tensor | None:
    """Take an object by its type's C exchange table; None where that has none of our version.

    None also for memory of devices, whose streams a table does not wait for, and for complex
    numbers, whose conjugation may be still to be done.
    """

def export_by_table(tensor: Tensor, consumer: type[_Object], /) -> _Object | None:
    """Make an object of `consumer` by its C exchange table; None where it has none of our version.

    It views the memory and keeps the tensor. Work in flight is done by then.
    """

def set_work_stream_query(function: Callable[[int, int], int], /) -> None:
    """Set the function that finds a device's work stream, for `current_work_stream` of the table.

    It takes the DLPack type and number of a device, and returns the address of the stream on which
    work comes after the device's present work; 0 for the default stream.
    """

class PreparedCall:
    """What a call of a kernel in host memory needs again, for inputs of the same types.

    It is over when the kernel object has ended, or something else is registered. `ValueError` for
    more than 8 inputs or outputs.

    Args:
        kernel: A weak reference to the kernel object, which has a method `raise_failure`.
        native: The address of its native part; so is `native_executor` of the executor's.
        executor: Of the device; the kernel keeps both.
        place: DLPack's type and number of the outputs' memory.
        inputs: Code, bits and lanes of DLPack, and TensorFlow's number, of each input; then the
            `_data_type` that arrays must have for it.
        outputs: Code, bits and lanes of each output, whose elements are whole bytes, and the
            `_data_type` of the array.
        registry: An object whose attribute `moment` was `moment` before the kernel was looked up.
        finish: Returns the result of a list of arrays; None where that is the only one, or None.
        default_device: Returns the device where no input is on one; None where it is fixed.
    """

    def __new__(
        cls,
        *,
        kernel: object,
        native: int,
        executor: object,
        native_executor: int,
        device: object,
        place: tuple[int, int],
        inputs: tuple[tuple[int, int, int, int, int], ...],
        outputs: tuple[tuple[int, int, int, int], ...],
        registry: object,
        moment: object,
        finish: Callable[[list[Any]], Any] | None,
        default_device: Callable[[], Any] | None,
    ) -> Self: ...
    @property
    def kernel(self) -> Callable[[], Any]: ...
    @property
    def moment(self) -> object: ...

def support_calls(
    functions: tuple[int, ...],
    array_type: type[Tensor],
    retained: dict[int, Any],
    drop_released: Callable[[], None],
    /,
) -> None:
    """Give `call_prepared` what it needs, before its first use; for good.

    `functions` are addresses of functions of the core (dlpack/prepared_call.c). `array_type` is
    that of outputs, with attributes `_device`, `_executor` and `_kept_memory`, which is None until
    somebody needs more than the memory's owner. `retained` gets what keeps an input that a kernel
    has retained, by the number of its keeper; when it is not empty `drop_released` is called, which
    drops what no kernel retains any more.
    """

def call_prepared(calls: tuple[PreparedCall, ...], inputs: tuple[Any, ...], /) -> Any:
    """Have a kernel compute by the first prepared call that fits. [any thread]

    Inputs are arrays of the device and arrays of numpy; the GIL is released while the kernel
    computes. Streams of the device finish their work before. NotImplemented, and nothing has
    happened, where none fits, an input is of another kind, closed, or not in C order.
    """
