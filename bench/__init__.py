"""Studies and benchmarks: each is one command, ``python -m bench.FOLDER.STUDY``."""
