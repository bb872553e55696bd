"""The built-in benchmarks. Each is registered through the entry-point group `leadline`."""
