"""``python -m mig_opt.cli`` is ``mig-opt``."""

from mig_opt.cli import main

if __name__ == "__main__":
    main()
