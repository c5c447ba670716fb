"""The schedulers; :func:`mig_opt.policies` lists them."""
