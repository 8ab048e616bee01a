"""An author's own algorithm or discipline: skeletons in a clone, compiled Rust files, policies for the kernel."""
