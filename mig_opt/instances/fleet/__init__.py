"""Traces drawn at random, after the workloads of papers whose own traces are not public.

What a paper prints is used; what it does not print is a parameter, and a line among the assumptions of the family.
"""
