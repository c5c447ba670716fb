"""``python -m mig_opt`` is ``mig-opt``."""

from mig_opt.cli import main

if __name__ == "__main__":
    main()
