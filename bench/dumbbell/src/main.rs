//! The dumbbell that `make bench` races against ns-3 and ns-2.
fn main() {}
