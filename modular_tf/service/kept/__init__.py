"""State that is kept between runs: caches, quarantine, marks."""
