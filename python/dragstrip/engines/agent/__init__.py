"""Common part of the engines with a kernel: the agent that drives it (crates/agent), and its answers."""
