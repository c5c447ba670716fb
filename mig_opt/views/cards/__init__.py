"""Appearance of objects in notebooks: small cards as HTML, and tables as pandas frames.

The classes call these functions by name when a notebook asks for them, so that the package stays fast to import. pandas
is optional (``pip install "mig-opt[frames]"``).
"""
