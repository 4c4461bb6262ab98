"""Rules of copies between host and device, and on the device."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "device.h"
_OBSERVED = "TensorFlow 2.21, observed"
_WRONG_TENSOR = "Tensors hold wrong numbers, and no operation fails."
_NEIGHBOUR = "A neighbouring tensor changes, in programs that have nothing to do with the copy."
_POOLED = "Under an allocator that pools, which most programs have, every tensor is wrong."
_BY_ADDRESS = "Take `opaque` as an address that the host has counted on, not as a handle."
_EXACTLY = "Copy exactly `size` bytes, whatever their number."

RULES: tuple[Rule, ...] = (
    Rule(
        "SE-200",
        "What sync_memcpy_htod takes to the device, sync_memcpy_dtoh brings back.",
        _WRONG_TENSOR,
        "Look at the direction and the size of both.",
        _HEADER,
    ),
    Rule(
        "SE-201",
        "sync_memcpy_dtod copies one memory into the other.",
        _WRONG_TENSOR,
        "Look at the order of its arguments: the target is first.",
        _HEADER,
    ),
    Rule(
        "SE-202",
        "memcpy_htod copies to the device, by the time that its stream is done.",
        _WRONG_TENSOR,
        "Enqueue the copy on the stream, and have those who wait for the stream wait for it.",
        _HEADER,
    ),
    Rule(
        "SE-203",
        "memcpy_dtoh copies to the host, by the time that its stream is done.",
        _WRONG_TENSOR,
        "Enqueue the copy on the stream, and have those who wait for the stream wait for it.",
        _HEADER,
    ),
    Rule(
        "SE-204",
        "memcpy_dtod copies on the device, by the time that its stream is done.",
        _WRONG_TENSOR,
        "Enqueue the copy on the stream; the target is the first of the two memories.",
        _HEADER,
    ),
    Rule(
        "SE-205",
        "Copies take any number of bytes, odd ones and one byte too.",
        "Small tensors, such as flags and scalars, are cut or overwrite what follows.",
        _EXACTLY,
        _HEADER,
    ),
    Rule(
        "SE-206",
        "A copy of no bytes succeeds, and writes nothing.",
        "Programs with empty tensors fail.",
        "Return OK where the size is 0, before the driver is asked.",
        _HEADER,
    ),
    Rule(
        "SE-207",
        "A copy to an address inside an allocation writes there.",
        _POOLED,
        _BY_ADDRESS,
        _OBSERVED,
    ),
    Rule(
        "SE-208",
        "A copy from an address inside an allocation reads there.",
        _POOLED,
        _BY_ADDRESS,
        _OBSERVED,
    ),
    Rule(
        "SE-209",
        "A copy on the device takes addresses inside allocations on both sides.",
        _POOLED,
        _BY_ADDRESS,
        _OBSERVED,
    ),
    Rule(
        "SE-210",
        "A copy to the host writes no byte beside the range.",
        "The heap of the process breaks, and it crashes later somewhere else.",
        "Copy exactly `size` bytes: no rounding up to words or pages.",
        _HEADER,
    ),
    Rule(
        "SE-211",
        "A copy to the device writes no byte beside the range.",
        _NEIGHBOUR,
        "Copy exactly `size` bytes: no rounding up to words or pages.",
        _HEADER,
    ),
    Rule(
        "SE-212",
        "A copy on the device writes no byte beside the range.",
        _NEIGHBOUR,
        "Copy exactly `size` bytes: no rounding up to words or pages.",
        _HEADER,
    ),
    Rule(
        "SE-213",
        "Copies leave their source as it is.",
        "A tensor changes because another one was made from it.",
        "Do not use the source as room for conversions.",
        _HEADER,
    ),
    Rule(
        "SE-214",
        "A mebibyte is copied whole, in each direction.",
        _WRONG_TENSOR,
        "Look at how large copies are cut into pieces, and at the last piece.",
        _HEADER,
    ),
    Rule(
        "SE-215",
        "64 MiB are copied whole, in each direction.",
        _WRONG_TENSOR,
        "Look at how large copies are cut into pieces, and at the last piece.",
        _HEADER,
    ),
    Rule(
        "SE-216",
        "A copy between ranges that overlap moves the bytes as they were, or is refused.",
        "Programs that shift data within a buffer get a mixture, and no error.",
        "Copy as memmove does, or set TF_INVALID_ARGUMENT.",
        "host recommendation",
        Severity.WARNING,
    ),
    Rule(
        "SE-217",
        "A host buffer may be written again once an event behind its copy is COMPLETE.",
        "TensorFlow gives the buffer to the next tensor, whose bytes end up on the device.",
        "Pass the event only when the bytes were taken.",
        _OBSERVED,
    ),
    Rule(
        "SE-218",
        "The sync_ copies are done when they return.",
        "The caller frees or rewrites its buffer while the device still reads it.",
        "Wait for the copy before returning.",
        _HEADER,
    ),
    Rule(
        "SE-219",
        "Copies take host buffers at any address.",
        "Slices of arrays, and buffers of other libraries, cannot be copied.",
        "Stage what the hardware cannot reach; ask for no alignment.",
        _HEADER,
    ),
    Rule(
        "SE-220",
        "Copies work with memory of host_memory_allocate on the host's side.",
        "TensorFlow's host buffers come from there: what is fast must be right too.",
        "Treat it as any other host buffer, only faster.",
        _OBSERVED,
    ),
    Rule(
        "SE-221",
        "The host sees in unified memory what was copied there.",
        "A program that reads the memory directly sees old bytes.",
        "Let unified memory be coherent by the time that the stream is done.",
        _HEADER,
    ),
)
