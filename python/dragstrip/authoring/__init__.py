"""An author's own algorithm or discipline: skeletons in a clone, and Rust files compiled for one command."""
