"""Rules of deployments and of their changes."""
