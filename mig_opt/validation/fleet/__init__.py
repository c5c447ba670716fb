"""Rules of migrations and of logs of simulations."""
