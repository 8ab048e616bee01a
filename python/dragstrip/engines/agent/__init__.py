"""What the engines with a kernel share: the agent that drives it (crates/agent), and how it answers."""
