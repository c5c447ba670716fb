"""The claims of the papers, measured one by one."""
