"""The results of probing and trying libraries, kept between runs."""

from __future__ import annotations

from modular_tf.service.kept.scan_cache.cache import ScanCache
from modular_tf.service.kept.scan_cache.cache_entry import CacheEntry

__all__ = ["CacheEntry", "ScanCache"]
