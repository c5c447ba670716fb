"""The benchmarks are tested in a checkout only."""

from places import BENCH, DOCS

collect_ignore_glob = [] if BENCH.is_dir() and DOCS.is_dir() else ["*"]
