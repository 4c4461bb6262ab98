"""What is read from the words of a process that a sanitizer has ended."""

from modular_tf.processes.ending import sanitizer_report

_OVERFLOW = """\
about to write
=================================================================
==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x603 at pc 0x7f bp 0x7f sp 0x7f
WRITE of size 1 at 0x603 thread T0
    #0 0x7fa in spill /src/mine.cc:38
    #1 0x7fb in exists (/plugins/libmine.so+0x1a)
    #2 0x7fc in ffi_call (/site-packages/_cffi_backend.cpython-311-x86_64-linux-gnu.so+0x29051)
    #3 0x7fd in _PyObject_Call Objects/call.c:343

0x603 is located 0 bytes after 24-byte region
allocated by thread T0 here:
    #0 0x7fe in malloc asan_malloc_linux.cpp:69
    #1 0x7fb in exists (/plugins/libmine.so+0x12)
    #2 0x7fc  (/site-packages/modular_tf/native/_core.abi3.so+0x28a74)
    #3 0x7fd in main (/usr/bin/something+0x2)

SUMMARY: AddressSanitizer: heap-buffer-overflow /src/mine.cc:38 in spill
Shadow bytes around the buggy address:
  0x0c: fa fa
==7==ABORTING
"""

_RACE = """\
==================
WARNING: ThreadSanitizer: data race (pid=7)
  Write of size 4 at 0x7b by thread T1:
    #0 count /src/mine.cc:12 (libmine.so+0x11)
SUMMARY: ThreadSanitizer: data race /src/mine.cc:12 in count
==================
"""

_UNDEFINED = """\
first words
/src/mine.cc:9:3: runtime error: shift exponent 40 is too large for 32-bit type 'int'
    #0 0x7fa in shift /src/mine.cc:9
"""


def test_frames_of_the_host_and_pictures_of_memory_are_left_out():
    found = sanitizer_report(_OVERFLOW)

    assert found is not None
    assert str(found) == "AddressSanitizer reported heap-buffer-overflow /src/mine.cc:38 in spill"
    assert [line.split()[0] for line in found.lines] == [
        "==7==ERROR:", "WRITE", "#0", "#1", "0x603", "allocated", "#0", "#1",
    ]  # fmt: skip


def test_a_race_and_undefined_behaviour_without_a_summary_are_reports():
    shift = "shift exponent 40 is too large for 32-bit type 'int'"
    for text, said, n_lines in (
        (_RACE, "ThreadSanitizer reported data race /src/mine.cc:12 in count", 3),
        (_UNDEFINED, f"UndefinedBehaviorSanitizer reported {shift}", 2),
    ):
        found = sanitizer_report(text)
        assert found is not None
        assert (str(found), len(found.lines)) == (said, n_lines)


def test_other_words_are_no_report():
    assert sanitizer_report("ERROR: nothing works\nSUMMARY: bad\n") is None
