"""Files of traces, fleet states, and logs of simulations."""
