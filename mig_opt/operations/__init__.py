"""Real machines: drivers, states observed on them, scripts for them, plans carried out."""
