"""State that is kept between runs: the scan cache, the quarantine, notes of ended processes."""
