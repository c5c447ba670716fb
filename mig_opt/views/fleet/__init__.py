"""Pictures of simulations."""
