"""Memory regions of the bundled plugins: read-only, and alive as long as a view of them."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from modular_tf.errors import ClosedError, InvalidArgumentError, NotFoundError

_LARGE = bytes(range(256)) * 4096 * 3


def test_a_region_is_a_read_only_buffer(place):
    uri = place.write("f", _LARGE)
    with place.fs.new_read_only_memory_region_from_file(uri) as region:
        assert len(region) == len(_LARGE)
        view = region.view()
        assert view.readonly
        assert view.nbytes == len(_LARGE)
        assert np.array_equal(np.frombuffer(view, np.uint8), np.frombuffer(_LARGE, np.uint8))
        with pytest.raises(TypeError):
            view[0] = 1


def test_a_view_outlives_its_region_and_its_file(place):
    uri = place.write("f", _LARGE)
    region = place.fs.new_read_only_memory_region_from_file(uri)
    view = region.view()[1:]
    numbers = np.frombuffer(region.view(), np.uint8)
    region.close()
    region.close()
    place.fs.delete_file(uri)
    gc.collect()

    assert view == _LARGE[1:]
    assert numbers[-1] == 255
    with pytest.raises(ClosedError, match="closed"):
        region.view()


def test_regions_of_nothing_are_refused_or_empty(place):
    uri = place.write("empty", b"")
    with pytest.raises(InvalidArgumentError):
        place.fs.new_read_only_memory_region_from_file(uri)
    with pytest.raises(NotFoundError):
        place.fs.new_read_only_memory_region_from_file(place / "absent")
