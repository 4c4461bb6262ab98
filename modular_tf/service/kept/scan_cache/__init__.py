"""What was found out about libraries, kept between runs, so that most are not opened again."""

from __future__ import annotations

from modular_tf.service.kept.scan_cache.cache import ScanCache
from modular_tf.service.kept.scan_cache.cache_entry import CacheEntry

__all__ = ["CacheEntry", "ScanCache"]
