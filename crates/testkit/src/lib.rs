//! Models, random scenarios and fixtures that the other crates test with; never a dependency of shipped code.
