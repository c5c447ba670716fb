"""Solvers behind one interface: CP-SAT, HiGHS, CBC."""
