"""Where the figures come from that pages quote."""
