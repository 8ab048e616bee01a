"""An author's own algorithm or discipline: skeletons, compiled Rust files, policies for the kernel."""
